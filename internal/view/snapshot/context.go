package snapshot

import (
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Context is what a thread's model is given besides the conversation, what was
// left out, and where the conversation was made shorter.
type Context struct {
	Status     string                  `json:"status"`           // resolved; unknown: no turn has begun
	TurnID     belay.TurnID            `json:"turnId,omitempty"` // whose it is: the newest
	Items      []event.ContextItem     `json:"items"`
	Omitted    []event.ContextOmission `json:"omitted"`
	Tokens     int64                   `json:"tokens,omitempty"` // estimate of all items, where there is one
	Taint      []string                `json:"taint"`            // untrusted content, as kind:origin
	Tools      int                     `json:"tools"`            // in the turn's inventory
	Compaction Compaction              `json:"compaction"`
	Rollbacks  int                     `json:"rollbacks"`
	Back       []belay.TurnID          `json:"takenBack"` // turns that the newest rollback took out of the conversation
}

// Compaction is the newest one of a thread.
type Compaction struct {
	Status  string           `json:"status"` // not_applicable: there was none; running, completed, failed
	Trigger string           `json:"trigger,omitempty"`
	From    int64            `json:"from,omitempty"` // sequences that it is about
	To      int64            `json:"to,omitempty"`
	Before  int64            `json:"tokensBefore,omitempty"`
	After   int64            `json:"tokensAfter,omitempty"`
	Summary *belay.Ref       `json:"summaryRef,omitempty"`
	Open    []belay.ActionID `json:"openActions,omitempty"` // that stayed open
	Reason  string           `json:"reason,omitempty"`
	At      time.Time        `json:"at,omitzero"`
}

// maxTaint bounds how many origins are shown; a thread keeps as many.
const maxTaint = 32

func noContext() Context {
	return Context{Status: "unknown", Items: []event.ContextItem{}, Omitted: []event.ContextOmission{}, Taint: []string{}, Back: []belay.TurnID{},
		Compaction: Compaction{Status: notApplicable}}
}

// context folds what the model of a thread is given.
func (t *Thread) context(e event.Envelope) {
	c := &t.Context
	switch p := e.Data.(type) {
	case event.ThreadStarted:
		c.tainted(p.Taint)
		if p.ImportedFrom != nil {
			c.tainted([]string{"import:" + p.ImportedFrom.Format})
		}
	case event.TurnStarted: // what it is given follows, if there is anything
		c.Status, c.TurnID, c.Tokens, c.Tools = "resolved", e.IDs.Turn, 0, 0
		c.Items, c.Omitted = []event.ContextItem{}, []event.ContextOmission{}
	case event.ToolCatalogResolved:
		c.Tools = len(p.Tools)
	case event.ContextResolved:
		for _, i := range p.Items { // one that changed is added once more
			c.Items = append(slices.DeleteFunc(c.Items, func(h event.ContextItem) bool { return h.Kind == i.Kind && h.Name == i.Name && h.Scope == i.Scope }), i)
		}
		c.Omitted, c.Tokens = append(c.Omitted, p.Omitted...), c.Tokens+p.Tokens
		c.tainted(p.Taint)
	case event.ActionResolved:
		c.Taint = slices.DeleteFunc(c.Taint, func(s string) bool { return slices.Contains(p.Taint, s) })
	case event.ContextCompactionStarted:
		c.Compaction = Compaction{Status: "running", Trigger: p.Trigger, From: p.From, To: p.To, Before: p.Tokens, At: e.Time}
	case event.ContextCompactionCompleted:
		c.Compaction = Compaction{Status: "completed", Trigger: p.Trigger, From: p.From, To: p.To, Before: p.TokensBefore, After: p.TokensAfter,
			Summary: p.Summary.Ref, Open: p.Actions, At: e.Time}
	case event.ContextCompactionFailed:
		c.Compaction = Compaction{Status: "failed", Trigger: p.Trigger, From: c.Compaction.From, To: c.Compaction.To, Before: c.Compaction.Before,
			Reason: cut(p.Problem.Message), At: e.Time}
	case event.HistoryRollbackCompleted:
		c.Rollbacks++
		if p.Scope == event.ScopeThread {
			c.Back = append([]belay.TurnID{}, last(p.Turns, maxTurns)...)
		}
	}
}

// tainted adds origins. Of many the first of each kind are kept.
func (c *Context) tainted(more []string) {
	for _, t := range more {
		kind, _, _ := strings.Cut(t, ":")
		full := len(c.Taint) >= maxTaint && slices.ContainsFunc(c.Taint, func(h string) bool { return strings.HasPrefix(h, kind+":") })
		if !full && !slices.Contains(c.Taint, t) {
			c.Taint = append(c.Taint, t)
		}
	}
}
