package effect

import (
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
// in them.
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
			r, err = v.e.rules.decode(ref.Digest, raw)
		}
		if err != nil {
			return nil, fmt.Errorf("rules %s: %w", ref.Digest.Short(), err)
		}
	}
	v.pins.keepRules(ref.Digest, r)
	return r, nil
}

// KeepRules keeps rules as content, for the turns that will name it. Who needs them
// here has them decoded.
func (e *Performers) KeepRules(ctx context.Context, r *thread.Rules) (belay.Ref, error) {
	raw, err := json.Marshal(struct {
		*thread.Rules
		Tools []belay.ToolSpec `json:"tools"` // which are most of it, behind the others
	}{r, append([]belay.ToolSpec{}, r.Tools...)})
	if err != nil {
		return belay.Ref{}, err
	}
	ref, err := e.c.Store.Put(ctx, raw, "application/json")
	if err == nil {
		_, err = e.rules.decode(ref.Digest, raw)
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
		if r, err = e.rules.decode(ref.Digest, content); err != nil {
			return false
		}
	}
	d.SupplyRules(ref, r)
	return true
}

// rulesCache is what rules are decoded to, shared by those who have the same.
type rulesCache struct {
	mu     sync.Mutex
	rules  map[belay.Digest]*thread.Rules
	offers map[belay.Digest]*offer // by the tools' digest
}

// offer is a set of tools: as rules have it, and as a model gets it.
type offer struct {
	specs []belay.ToolSpec
	defs  []model.ToolDef
}

func newRulesCache() *rulesCache {
	return &rulesCache{rules: map[belay.Digest]*thread.Rules{}, offers: map[belay.Digest]*offer{}}
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

// decode reads rules and keeps them. Their tools are the very same in memory as
// those of other rules that have the same.
func (c *rulesCache) decode(of belay.Digest, raw []byte) (*thread.Rules, error) {
	r := &thread.Rules{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, err
	}
	tools := r.ToolsDigest()
	r.Offer(c.offer(tools, r.Tools).specs, tools)
	c.mu.Lock()
	defer c.mu.Unlock()
	makeRoom(c.rules, maxRules)
	c.rules[of] = r
	return r, nil
}

// offer returns tools as they are shared by their digest.
func (c *rulesCache) offer(of belay.Digest, specs []belay.ToolSpec) *offer {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.offers[of]
	if o == nil {
		o = &offer{specs: specs}
		for _, s := range specs {
			o.defs = append(o.defs, model.ToolDef{Name: s.Name, Doc: s.Doc, Schema: s.Input})
		}
		makeRoom(c.offers, maxShared)
		c.offers[of] = o
	}
	return o
}

// defs returns the tools of rules in the form for models, the same slice for
// every request with the same tools: providers keep them encoded.
func (c *rulesCache) defs(r *thread.Rules) []model.ToolDef {
	return c.offer(r.ToolsDigest(), r.Tools).defs
}
