package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/thread"
)

// ruling is the rules that a thread's decider has, and their name. The decider
// never changes what it was supplied with.
type ruling struct {
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
		v.inForce.Store(&ruling{of, d.Rules()})
	}
}

// rules are the rules that an effect names. They are decoded once and shared:
// read only.
func (v *drive) rules(ctx context.Context, ref belay.Ref) (*thread.Rules, error) {
	if r := v.inForce.Load(); r != nil && r.of == ref.Digest {
		return r.rules, nil
	}
	v.e.mu.Lock()
	r := v.e.rules[ref.Digest]
	v.e.mu.Unlock()
	if r != nil {
		return r, nil
	}
	raw, err := v.e.c.Store.Get(ctx, ref.Digest)
	if err != nil {
		return nil, fmt.Errorf("rules %s: %w", ref.Digest.Short(), err)
	}
	r = new(thread.Rules)
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("rules %s: %w", ref.Digest.Short(), err)
	}
	v.e.mu.Lock()
	defer v.e.mu.Unlock()
	for d := range v.e.rules {
		if len(v.e.rules) < maxRules {
			break
		}
		delete(v.e.rules, d) // any one: most are of sessions that ended
	}
	v.e.rules[ref.Digest] = r
	return r, nil
}

// maxRules bounds the rule sets kept decoded. Sessions of one agent in one
// workspace share one; those of a hundred workspaces have a hundred. What a thread
// has decoded for itself is not among them.
const maxRules = 256
