package thread

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// sampled is what became of an MCP server's wish for a model's answer.
type sampled struct {
	Allowed bool       `json:"allowed,omitempty"` // a person said yes, for this call
	Asked   bool       `json:"asked,omitempty"`   // the model was
	Done    bool       `json:"done,omitempty"`    // there is an answer, or there will be none
	Output  *belay.Ref `json:"output,omitempty"`  // the answer
}

// Facts name such a request like the question of a hook: it is reserved, asked and
// charged like one that a model judges.
const (
	samplingHook  = "sampling/" // and the round of the call
	samplingPoint = "sampling"
)

// wantsModel reports whether the call goes on when a model has answered its server, as a
// person allowed.
func (c *Call) wantsModel() bool {
	return c.Input != nil && c.Input.Request != nil && c.Sample.Allowed && !c.Sample.Done && (c.Phase == CallJudged || c.Phase == CallRan && c.Ask == nil)
}

// sample has the turn's model answer a call's server.
func (d *decision) sample(c *Call) {
	to := spending{d}.to()
	hook, output := samplingHook+strconv.Itoa(c.Rounds), min(cmp.Or(c.Input.MaxTokens, leastOutput), leastOutput)
	r, reserved := spending{d}.question(c, hook, samplingPoint, to, c.Input.Tokens, output)
	switch {
	case !reserved && r == nil: // it waits for budget, or is refused for it
	case !c.Sample.Asked:
		d.record(core.Fact{IDs: d.callIDs(c), Data: event.HookStarted{Hook: hook, Point: samplingPoint, Provider: to.Provider, Model: to.Model, InputHash: c.Input.Request.Digest}})
		if !reserved {
			spending{d}.announce(d.callIDs(c), checkKey(c.ID, hook), *r)
		}
	case !reserved: // the one before was charged when its driver ended
		spending{d}.announce(d.callIDs(c), checkKey(c.ID, hook), *r)
	default:
		spec, _ := json.Marshal(policy.Checker{ID: hook, Kind: "model", Provider: to.Provider, Model: to.Model}) // plain data: can't fail
		d.want(core.CheckCall{IDs: d.callIDs(c), Checker: hook, Spec: spec, Dir: d.rules.Workspace, Request: c.Input.Request, BaseURL: to.BaseURL, MaxOutput: output})
	}
}

// sampled folds what became of a request to a model.
func (t *Turn) sampled(call belay.CallID, hook string, done bool, output *belay.Ref) {
	if c := t.call(call); c != nil && strings.HasPrefix(hook, samplingHook) {
		c.Sample.Asked, c.Sample.Done, c.Sample.Output = true, done, output
	}
}
