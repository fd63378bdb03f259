package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
)

// Bounds of what is kept decoded. Sessions of one agent in one workspace share
// rules; those of a hundred workspaces have a hundred, and mostly the same tools
// and instructions in them.
const (
	maxRules  = 256
	maxShared = 64
)

// offer is a set of tools: as rules have it, and as a model gets it.
type offer struct {
	json   []byte // in rules
	specs  []belay.ToolSpec
	digest belay.Digest // of specs
	defs   []model.ToolDef
}

// rulesInForce is the rules that a thread's decider has, and their name. The decider
// never changes what it was supplied with.
type rulesInForce struct {
	of    belay.Digest
	rules *thread.Rules
}

// noteRules lets the effects of a thread have the rules that its decider has
// decoded. The goroutine that owns the decider calls it.
func (v *drive) noteRules() {
	d, ok := v.d.(*thread.Decider)
	if !ok || d.Rules() == nil {
		return
	}
	of := d.State().Turn.Rules.Digest
	if have := v.inForce.Load(); have == nil || have.of != of {
		v.inForce.Store(&rulesInForce{of, d.Rules()})
	}
}

// rules are the rules that an effect names. They are decoded once and shared:
// read only.
func (v *drive) rules(ctx context.Context, ref belay.Ref) (*thread.Rules, error) {
	if r := v.inForce.Load(); r != nil && r.of == ref.Digest {
		return r.rules, nil
	}
	v.e.mu.Lock()
	r := v.e.kept.rules[ref.Digest]
	v.e.mu.Unlock()
	if r != nil {
		return r, nil
	}
	raw, err := v.e.c.Store.Get(ctx, ref.Digest)
	if err != nil {
		return nil, fmt.Errorf("rules %s: %w", ref.Digest.Short(), err)
	}
	r, err = v.e.decodeRules(raw)
	if err != nil {
		return nil, fmt.Errorf("rules %s: %w", ref.Digest.Short(), err)
	}
	v.e.keepRules(ref.Digest, r)
	return r, nil
}

// keepRules lets others have rules that were decoded.
func (e *Engine) keepRules(of belay.Digest, r *thread.Rules) {
	e.mu.Lock()
	defer e.mu.Unlock()
	room(e.kept.rules, maxRules)
	e.kept.rules[of] = r
}

// KeepRules keeps rules as content, for the turns that will name it. Tools that
// are the very same as those of rules before aren't encoded again, and who needs
// the rules here has them decoded: from what is kept, without its tools.
func (e *Engine) KeepRules(ctx context.Context, r *thread.Rules) (belay.Ref, error) {
	type shared struct{} // the field that is put behind the others
	rest, err := json.Marshal(struct {
		thread.Rules
		Tools *shared `json:"tools,omitempty"`
	}{Rules: *r})
	if err != nil {
		return belay.Ref{}, err
	}
	o, err := e.offered(r.Tools)
	if err != nil {
		return belay.Ref{}, err
	}
	decoded, err := e.decodeRules(rest)
	if err != nil {
		return belay.Ref{}, err
	}
	decoded.Offer(o.specs, o.digest)
	ref, err := e.c.Store.Put(ctx, o.join(rest), "application/json")
	if err == nil {
		e.keepRules(ref.Digest, decoded)
	}
	return ref, err
}

// join is rules with their tools.
func (o *offer) join(rest []byte) []byte {
	const field = `,"tools":`
	b := make([]byte, 0, len(rest)+len(field)+len(o.json))
	b = append(b, rest[:len(rest)-1]...) // without the end of the object
	return append(append(append(b, field...), o.json...), '}')
}

// offered are tools as they come back when rules are decoded.
func (e *Engine) offered(specs []belay.ToolSpec) (*offer, error) {
	if len(specs) == 0 {
		return e.offer([]byte("[]"))
	}
	e.mu.Lock()
	o := e.kept.given[&specs[0]]
	e.mu.Unlock()
	if o != nil && len(o.specs) == len(specs) {
		return o, nil
	}
	raw, err := json.Marshal(specs)
	if err != nil {
		return nil, err
	}
	if o, err = e.offer(raw); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	room(e.kept.given, maxShared)
	e.kept.given[&specs[0]] = o
	return o, nil
}

// supplyRules hands rules to a thread's decider, if it is rules that it misses
// and they can be read. Without their content it hands over only what is decoded
// already.
func (e *Engine) supplyRules(to core.Decider, ref belay.Ref, content []byte) bool {
	d, ok := to.(*thread.Decider)
	if !ok || !d.MissesRules(ref) {
		return false
	}
	e.mu.Lock()
	r := e.kept.rules[ref.Digest]
	e.mu.Unlock()
	if r == nil {
		if content == nil {
			return false
		}
		var err error
		if r, err = e.decodeRules(content); err != nil {
			return false
		}
		e.keepRules(ref.Digest, r)
	}
	d.SupplyRules(ref, r)
	return true
}

// rulesCache is what rules are decoded to, shared by those who have the same.
type rulesCache struct {
	rules  map[belay.Digest]*thread.Rules
	offers map[belay.Digest]*offer    // by the tools' JSON
	defs   map[*belay.ToolSpec]*offer // by the first tool's place
	given  map[*belay.ToolSpec]*offer // by that of the tools that were encoded
	texts  map[string]string          // instructions
}

func newKept() rulesCache {
	return rulesCache{rules: map[belay.Digest]*thread.Rules{}, offers: map[belay.Digest]*offer{}, defs: map[*belay.ToolSpec]*offer{}, given: map[*belay.ToolSpec]*offer{}, texts: map[string]string{}}
}

// room takes entries out of a full cache, any of them: most are of sessions
// that ended.
func room[K comparable, V any](m map[K]V, limit int) {
	for k := range m {
		if len(m) < limit {
			return
		}
		delete(m, k)
	}
}

// decodeRules reads rules. Their tools and instructions, which are most of them,
// are the very same in memory as those of other rules that have the same.
func (e *Engine) decodeRules(raw []byte) (*thread.Rules, error) {
	var r struct {
		thread.Rules
		Tools json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	o, err := e.offer(r.Tools)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	if text, ok := e.kept.texts[r.System]; ok {
		r.System = text
	} else {
		room(e.kept.texts, maxShared)
		e.kept.texts[r.System] = r.System
	}
	e.mu.Unlock()
	rules := r.Rules
	rules.Offer(o.specs, o.digest)
	return &rules, nil
}

// offer is tools that were encoded.
func (e *Engine) offer(raw []byte) (*offer, error) {
	of := belay.DigestOf(raw)
	e.mu.Lock()
	o := e.kept.offers[of]
	e.mu.Unlock()
	if o != nil {
		return o, nil
	}
	o = &offer{json: bytes.Clone(raw)}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &o.specs); err != nil {
			return nil, err
		}
	}
	o.digest, o.defs = thread.DigestOf(o.specs), toolDefs(o.specs)
	e.keepOffer(of, o)
	return o, nil
}

func (e *Engine) keepOffer(of belay.Digest, o *offer) {
	if len(o.specs) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	room(e.kept.offers, maxShared)
	room(e.kept.defs, maxShared)
	e.kept.offers[of], e.kept.defs[&o.specs[0]] = o, o
}

func toolDefs(specs []belay.ToolSpec) []model.ToolDef {
	defs := make([]model.ToolDef, len(specs))
	for i, s := range specs {
		defs[i] = model.ToolDef{Name: s.Name, Doc: s.Doc, Schema: s.Input}
	}
	return defs
}

// defs returns the tools of rules in the form for models, the same slice for
// every request with the same tools: providers keep them encoded.
func (e *Engine) defs(rules *thread.Rules) []model.ToolDef {
	if len(rules.Tools) == 0 {
		return nil
	}
	e.mu.Lock()
	o := e.kept.defs[&rules.Tools[0]]
	e.mu.Unlock()
	if o == nil {
		o = &offer{specs: rules.Tools, defs: toolDefs(rules.Tools)}
		e.mu.Lock()
		room(e.kept.defs, maxShared)
		e.kept.defs[&rules.Tools[0]] = o
		e.mu.Unlock()
	}
	return o.defs
}
