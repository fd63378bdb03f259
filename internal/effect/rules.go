package effect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

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

// rules are the rules that an effect names. They are decoded once and shared:
// read only. A performer keeps those that it used last, however many others have
// theirs.
func (v *performer) rules(ctx context.Context, ref belay.Ref) (*thread.Rules, error) {
	if r := v.pins.rulesOf(ref.Digest); r != nil {
		return r, nil
	}
	r := v.e.rules.get(ref.Digest)
	if r == nil {
		raw, err := v.e.c.Store.Get(ctx, ref.Digest)
		if err == nil {
			r, err = v.e.rules.decode(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("rules %s: %w", ref.Digest.Short(), err)
		}
		v.e.rules.put(ref.Digest, r)
	}
	v.pins.keepRules(ref.Digest, r)
	return r, nil
}

// KeepRules keeps rules as content, for the turns that will name it. Tools that
// are the very same as those of rules before aren't encoded again, and who needs
// the rules here has them decoded: from what is kept, without its tools.
func (e *Performers) KeepRules(ctx context.Context, r *thread.Rules) (belay.Ref, error) {
	type shared struct{} // the field that is put behind the others
	rest, err := json.Marshal(struct {
		thread.Rules
		Tools *shared `json:"tools,omitempty"`
	}{Rules: *r})
	if err != nil {
		return belay.Ref{}, err
	}
	o, err := e.rules.offered(r.Tools)
	if err != nil {
		return belay.Ref{}, err
	}
	decoded, err := e.rules.decode(rest)
	if err != nil {
		return belay.Ref{}, err
	}
	decoded.Offer(o.specs, o.digest)
	ref, err := e.c.Store.Put(ctx, o.join(rest), "application/json")
	if err == nil {
		e.rules.put(ref.Digest, decoded)
	}
	return ref, err
}

// Supply hands rules to a thread's decider, if it is rules that it misses and
// they can be read. Without their content it hands over only what is decoded
// already.
func (e *Performers) Supply(to core.Decider, ref belay.Ref, content []byte) bool {
	d, ok := to.(*thread.Decider)
	if !ok || !d.MissesRules(ref) {
		return false
	}
	r := e.rules.get(ref.Digest)
	if r == nil {
		if content == nil {
			return false
		}
		var err error
		if r, err = e.rules.decode(content); err != nil {
			return false
		}
		e.rules.put(ref.Digest, r)
	}
	d.SupplyRules(ref, r)
	return true
}

// offer is a set of tools: as rules have it, and as a model gets it.
type offer struct {
	json   []byte // in rules
	specs  []belay.ToolSpec
	digest belay.Digest // of specs
	defs   []model.ToolDef
}

// join is rules with their tools.
func (o *offer) join(rest []byte) []byte {
	const field = `,"tools":`
	b := make([]byte, 0, len(rest)+len(field)+len(o.json))
	b = append(b, rest[:len(rest)-1]...) // without the end of the object
	return append(append(append(b, field...), o.json...), '}')
}

// rulesCache is what rules are decoded to, shared by those who have the same.
type rulesCache struct {
	mu     sync.Mutex
	rules  map[belay.Digest]*thread.Rules
	offers map[belay.Digest]*offer    // by the tools' JSON
	places map[*belay.ToolSpec]*offer // by where tools are in memory, decoded or to be encoded
	texts  map[string]string          // instructions
}

func newRulesCache() *rulesCache {
	return &rulesCache{rules: map[belay.Digest]*thread.Rules{}, offers: map[belay.Digest]*offer{}, places: map[*belay.ToolSpec]*offer{}, texts: map[string]string{}}
}

// makeRoom takes entries out of a full cache, any of them: most are of sessions
// that ended.
func makeRoom[K comparable, V any](m map[K]V, limit int) {
	for k := range m {
		if len(m) < limit {
			return
		}
		delete(m, k)
	}
}

func (c *rulesCache) get(of belay.Digest) *thread.Rules {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rules[of]
}

func (c *rulesCache) put(of belay.Digest, r *thread.Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	makeRoom(c.rules, maxRules)
	c.rules[of] = r
}

// decode reads rules. Their tools and instructions, which are most of them, are
// the very same in memory as those of other rules that have the same.
func (c *rulesCache) decode(raw []byte) (*thread.Rules, error) {
	var r struct {
		thread.Rules
		Tools json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	o, err := c.offer(r.Tools)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if text, ok := c.texts[r.System]; ok {
		r.System = text
	} else {
		makeRoom(c.texts, maxShared)
		c.texts[r.System] = r.System
	}
	rules := r.Rules
	rules.Offer(o.specs, o.digest)
	return &rules, nil
}

// offered are tools as they come back when rules are decoded.
func (c *rulesCache) offered(specs []belay.ToolSpec) (*offer, error) {
	if len(specs) == 0 {
		return c.offer([]byte("[]"))
	}
	if o := c.at(specs); o != nil {
		return o, nil
	}
	raw, err := json.Marshal(specs)
	if err != nil {
		return nil, err
	}
	o, err := c.offer(raw)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.place(specs, o)
	return o, nil
}

// offer is tools that were encoded.
func (c *rulesCache) offer(raw []byte) (*offer, error) {
	of := belay.DigestOf(raw)
	c.mu.Lock()
	o := c.offers[of]
	c.mu.Unlock()
	if o != nil {
		return o, nil
	}
	o = &offer{json: bytes.Clone(raw)}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &o.specs); err != nil {
			return nil, err
		}
	}
	o.digest = thread.DigestOf(o.specs)
	for _, s := range o.specs {
		o.defs = append(o.defs, model.ToolDef{Name: s.Name, Doc: s.Doc, Schema: s.Input})
	}
	if len(o.specs) == 0 {
		return o, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	makeRoom(c.offers, maxShared)
	c.offers[of] = o
	c.place(o.specs, o)
	return o, nil
}

// at is what tools were encoded to, by their place in memory; nil is unknown.
func (c *rulesCache) at(specs []belay.ToolSpec) *offer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.places[&specs[0]]; o != nil && len(o.specs) == len(specs) {
		return o
	}
	return nil
}

// place notes where tools are. The lock is held.
func (c *rulesCache) place(specs []belay.ToolSpec, o *offer) {
	makeRoom(c.places, 2*maxShared)
	c.places[&specs[0]] = o
}

// defs returns the tools of rules in the form for models, the same slice for
// every request with the same tools: providers keep them encoded.
func (c *rulesCache) defs(rules *thread.Rules) []model.ToolDef {
	o, err := c.offered(rules.Tools)
	if err != nil {
		panic("effect: " + err.Error()) // plain data
	}
	return o.defs
}
