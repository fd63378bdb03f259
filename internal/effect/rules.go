package effect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/tool"
)

// maxRules bounds the rules that are kept decoded. Sessions of one agent in one
// workspace share rules; those of a thousand models have a thousand, and mostly the
// same tools in them.
const maxRules = 2048

// rulesCache is what rules are decoded to, shared by those who have the same.
type rulesCache struct {
	mu      sync.Mutex
	all     map[belay.Digest]*sharedRules
	byTools map[belay.Digest]*sharedRules // those that were decoded last with these tools
	systems map[systemKey]string          // with the instructions of a place
	trees   map[string]*belay.Worktree    // of sub-agents, by their workspaces
}

// tree is the worktree of a sub-agent in which a folder is its workspace, as far as rules
// that were read say so.
func (c *rulesCache) tree(dir string) *belay.Worktree {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trees[dir]
}

// systemKey is what the instructions of a request are made of.
type systemKey struct{ rules, place belay.Digest }

// system is the instructions of a request: those of its rules, and those of the place
// as they were when the conversation began.
func (v *performer) system(ctx context.Context, r *thread.Rules, rules belay.Ref, place *belay.Ref) (string, error) {
	if place == nil {
		return r.System, nil
	}
	c, key := &v.e.rules, systemKey{rules.Digest, place.Digest}
	c.mu.Lock()
	s, ok := c.systems[key]
	c.mu.Unlock()
	if ok {
		return s, nil
	}
	text, err := v.e.c.Store.Get(ctx, key.place)
	if err != nil {
		return "", err
	}
	s = strings.TrimRight(r.System, "\n") + "\n\n" + string(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.systems == nil || len(c.systems) >= maxSystems {
		c.systems = map[systemKey]string{}
	}
	c.systems[key] = s
	return s, nil
}

// maxSystems bounds the instructions that are kept ready.
const maxSystems = 64

// sharedRules are rules that were decoded once: read only.
type sharedRules struct {
	*thread.Rules
	offers map[offer][]model.ToolDef // the same slice for every request: providers keep it encoded
}

// offer is what a request offers besides the tools that every one does.
type offer struct {
	reading bool // those that need something to read
	search  bool // the one that the model's vendor runs
}

// get returns rules by their digest. read returns them as they are kept.
func (c *rulesCache) get(of belay.Digest, read func() ([]byte, error)) (*sharedRules, error) {
	c.mu.Lock()
	r := c.all[of]
	c.mu.Unlock()
	if r != nil {
		return r, nil
	}
	raw, err := read()
	if err == nil {
		r = &sharedRules{Rules: &thread.Rules{}}
		err = json.Unmarshal(raw, r.Rules)
	}
	if err != nil {
		return nil, fmt.Errorf("rules %s: %w", of.Short(), err)
	}
	specs, _ := json.Marshal(r.Tools) // plain data: can't fail
	tools := belay.DigestOf(specs)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Worktree != nil {
		if c.trees == nil {
			c.trees = map[string]*belay.Worktree{}
		}
		c.trees[r.Workspace] = r.Worktree
	}
	if len(c.all) >= maxRules { // most are of sessions that ended
		clear(c.all)
		clear(c.byTools)
	}
	if same := c.byTools[tools]; same != nil {
		r.Tools, r.offers = same.Tools, same.offers
	} else {
		r.offers = map[offer][]model.ToolDef{}
		for _, o := range []offer{{}, {reading: true}, {search: true}, {true, true}} {
			r.offers[o] = definitions(r.Tools, o)
		}
	}
	c.all[of], c.byTools[tools] = r, r
	return r, nil
}

// definitions are tools as models are told of them.
func definitions(tools []belay.ToolSpec, o offer) (defs []model.ToolDef) {
	for _, s := range tools {
		if s.Load == tool.LoadSearch || s.Native && !o.search || slices.Contains(s.Capabilities, tool.CapReading) && !o.reading {
			continue
		}
		defs = append(defs, model.ToolDef{Name: s.Name, Doc: s.Doc, Schema: s.Input, Native: s.Native})
	}
	return defs
}

// rules are the rules that an effect names.
func (v *performer) rules(ctx context.Context, ref belay.Ref) (*sharedRules, error) {
	return v.e.rules.get(ref.Digest, func() ([]byte, error) { return v.e.c.Store.Get(ctx, ref.Digest) })
}

// KeepRules keeps rules as content, for the turns that will name it. Who needs them
// here has them decoded.
func (e *Performers) KeepRules(ctx context.Context, r *thread.Rules) (belay.Ref, error) {
	r.Tokens = tokens.Instructions(r.System, definitions(r.Tools, offer{search: true}))
	raw, err := json.Marshal(struct {
		*thread.Rules
		Tools []belay.ToolSpec `json:"tools"` // which are most of it, behind the others
	}{r, append([]belay.ToolSpec{}, r.Tools...)})
	if err != nil {
		return belay.Ref{}, err
	}
	ref, err := e.c.Store.Put(ctx, raw, "application/json")
	if err == nil {
		_, err = e.rules.get(ref.Digest, func() ([]byte, error) { return raw, nil })
	}
	return ref, err
}

// Supply hands rules to a thread's decider, if it is rules that it misses and
// they can be read.
func (e *Performers) Supply(to core.Decider, ref belay.Ref, read func() ([]byte, error)) bool {
	d, ok := to.(*thread.Decider)
	if !ok || !d.MissesRules(ref) {
		return false
	}
	r, err := e.rules.get(ref.Digest, read)
	if err == nil {
		d.SupplyRules(ref, r.Rules)
	}
	return err == nil
}
