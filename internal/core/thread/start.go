package thread

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// start begins the next queued turn: its rules, limits and inventory are fixed
// here and recorded.
func (s *State) start(r *Rules, gone bool, rd *core.Ready) {
	if r == nil && !gone {
		return // Missing names them
	}
	q := s.Queue[0]
	if gone { // the turn begins only to be lost
		r = &Rules{}
	}
	ids := belay.IDs{Session: s.Session, Thread: s.Thread, Turn: q.Turn, Task: q.Task, Run: q.Run}
	rd.Decided = append(rd.Decided, s.tell()...)
	rd.Decided = append(rd.Decided, core.Fact{IDs: ids, Data: event.TurnStarted{
		Kind: q.Kind, Rules: q.Rules, Completion: r.Completion(), Limits: r.Settings.Limits,
	}})
	ids.Task, ids.Run = "", ""
	names := make([]string, len(r.Tools))
	for i, t := range r.Tools {
		names[i] = t.Name
	}
	catalog := len(rd.Decided)
	rd.Decided = append(rd.Decided, core.Fact{IDs: ids, Data: event.ToolCatalogResolved{Tools: names, Digest: r.toolsDigest()}})
	rd.Decided = append(rd.Decided, r.routing(ids, q.Task, needsOf(s.Queue[:s.collected()]))...)
	if len(r.Context)+len(r.LeftOut) > 0 {
		ids.Task, ids.Run = q.Task, q.Run
		rd.Decided = append(rd.Decided, core.Fact{IDs: ids, Data: event.ContextResolved{Items: r.Context, Omitted: r.LeftOut}})
	}
	if n := s.collected(); n > 1 {
		rd.Decided = append(rd.Decided, s.joins(s.Queue[1:n], q.Turn, len(s.Queue)-1)...)
	}
	of := &rd.Decided[catalog].IDs
	of.Step = belay.StepID(s.derive(belay.PrefixStep, len(rd.Decided), 0)) // the step it precedes
	of.Call = belay.CallID(s.derive(belay.PrefixCall, catalog, 0))
}
