package thread

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// checked is a checker that is asked about a call, and what it said.
type checked struct {
	policy.Check
	Done bool `json:"done,omitempty"`
}

// checkerPrefix begins the name of a checker in the facts of hooks.
const checkerPrefix = "checker/"

// checks gets the verdicts of the checkers that judge a call: each is announced,
// then asked. It reports whether one is still to answer.
func (d *decision) checks(c *Call, q *policy.Request) (waits bool) {
	for _, k := range d.rules.Gate().Wants(q) {
		question, _ := json.Marshal(policy.Question{Version: 1, Checker: k.ID, Call: string(c.ID), Tool: c.Name, Args: q.Args, Paths: q.Paths,
			Commands: q.Commands, Links: q.Links, Mode: q.Mode, Agent: q.Agent, Workspace: q.Workspace, Taint: q.Taint}) // plain data: can't fail
		i := slices.IndexFunc(c.Checks, func(o checked) bool { return o.ID == k.ID })
		r, reserved := spending{d}.review(c, k, len(question))
		switch {
		case i >= 0 && c.Checks[i].Done:
			continue
		case !reserved && r == nil: // it waits for budget, or is refused for it
		case !reserved && i >= 0: // the one before was charged when its driver ended
			spending{d}.announce(d.callIDs(c), checkKey(c.ID, checkerPrefix+k.ID), *r)
		case i < 0:
			d.record(core.Fact{IDs: d.callIDs(c), Data: event.HookStarted{
				Hook: checkerPrefix + k.ID, Point: "permission_request", Tier: k.Tier, InputHash: belay.DigestOf(question), Timeout: belay.Duration(k.Limit()), Provider: k.Provider, Model: k.Model,
			}})
			if !reserved {
				spending{d}.announce(d.callIDs(c), checkKey(c.ID, checkerPrefix+k.ID), *r)
			}
		default:
			spec, _ := json.Marshal(k)
			d.want(core.CheckCall{IDs: d.callIDs(c), Checker: k.ID, Spec: spec, Dir: d.rules.Configured(), Question: question, BaseURL: d.rules.Candidate(event.Route{Provider: k.Provider, Model: k.Model}).BaseURL, MaxOutput: spending{d}.reviewOutput()})
		}
		waits = true
	}
	return waits
}

// check folds the outcome of a checker.
func (t *Turn) check(e event.Envelope, hook string, done func(*checked)) {
	id, ok := strings.CutPrefix(hook, checkerPrefix)
	c := t.call(e.IDs.Call)
	if !ok || c == nil {
		return
	}
	i := slices.IndexFunc(c.Checks, func(o checked) bool { return o.ID == id })
	if i < 0 {
		i = len(c.Checks)
		c.Checks = append(c.Checks, checked{Check: policy.Check{ID: id}})
	}
	if done != nil {
		c.Checks[i].Done = true
		done(&c.Checks[i])
	}
}
