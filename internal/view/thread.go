package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// applyThread folds a fact of a thread's stream.
func (s *Session) applyThread(e event.Envelope) {
	if e.Stream.Kind() != belay.KindThread {
		return
	}
	th := s.thread(belay.ThreadID(e.Stream.ID()))
	s.tick(th, e)
	s.spend(e)
	s.Programs.add(e.Data)
	th.Programs.add(e.Data)
	bounded(&s.Programs, &th.Programs, e.Data)
	th.runs(e)
	switch p := e.Data.(type) {
	case event.TurnSubmitted:
		s.Counts.Turns++
		th.Queue = append(th.Queue, Turn{ID: e.IDs.Turn, Status: Queued, Submitted: e.Time, Mode: p.Queue})
	case event.ThreadStarted:
		th.Line, th.Depth = p.Queue, p.Depth
	case event.QueueChanged:
		th.queueChanged(p)
	case event.TurnStarted:
		th.begin(e)
		if p.Agent != nil {
			th.Turn.Agent = p.Agent.Name
		}
	case event.TurnCompleted:
		s.end(th, e, belay.Completed, "", "", p.Summary.Text)
	case event.TurnFailed:
		s.end(th, e, p.Outcome, p.Code, p.Reason, "")
	case event.ActionRequired:
		s.ask(th, e, p)
	case event.ActionResolved:
		s.answer(th, e.IDs.Action)
	case event.ArtifactChanged:
		if p.Kind == "plan" {
			th.Plan = p.Plan
		}
	case event.HistoryRollbackCompleted:
		if p.Scope == event.ScopeThread && th.Turn != nil && th.Turn.Status == Ended && slices.Contains(p.Turns, th.Turn.ID) {
			th.Turn.Back = true
		}
	case event.RunStatus:
		if p.Phase == "takeover" {
			th.Flying = nil
		}
		if p.Status == WaitingResource && th.Turn != nil {
			th.Turn.Status = WaitingResource
		}
	case event.LimitChanged:
		if (p.Op == event.LimitGranted || p.Op == event.LimitRefused) && th.Turn != nil && th.Turn.Status == WaitingResource {
			th.Turn.Status = Running
		}
	}
	s.applyStep(th, e)
}

// applyStep folds what happens between the beginning and the end of a turn.
func (s *Session) applyStep(th *Thread, e event.Envelope) {
	t := th.Turn
	if t == nil || t.Status == Ended {
		return
	}
	switch p := e.Data.(type) {
	case event.ModelRequested:
		if p.Attempt <= 1 {
			s.Counts.Steps++
			t.Steps++
		}
		th.fly("model")
	case event.ModelCompleted:
		th.land("model")
		t.Usage = t.Usage.Add(p.Usage)
	case event.ModelFailed:
		th.land("model")
	case event.ToolStarted:
		if !p.Waits {
			th.fly(string(e.IDs.Call))
		}
	case event.ToolResult:
		s.over(th, e)
	case event.ToolFailed:
		th.land(string(e.IDs.Call))
		if p.Final {
			s.over(th, e)
		}
	}
}

func (s *Session) over(th *Thread, e event.Envelope) {
	th.land(string(e.IDs.Call))
	s.Counts.Calls++
	th.Turn.Calls++
}

// tick adds the time since the thread's last fact while something was out. The
// time before a takeover isn't counted: when the driver went is unknown.
func (s *Session) tick(th *Thread, e event.Envelope) {
	p, ok := e.Data.(event.RunStatus)
	takeover := ok && p.Phase == "takeover"
	if len(th.Flying) > 0 && th.Turn != nil && !takeover && e.Time.After(th.Last) {
		d := belay.Duration(e.Time.Sub(th.Last))
		th.Turn.Active += d
		s.Active += d
	}
	th.Last = e.Time
}

// thread finds a thread, or takes it up.
func (s *Session) thread(id belay.ThreadID) *Thread {
	for i := range s.Threads {
		if s.Threads[i].ID == id {
			return &s.Threads[i]
		}
	}
	if len(s.Threads) >= maxThreads {
		if i := slices.IndexFunc(s.Threads, Thread.rests); i >= 0 {
			s.Threads = slices.Delete(s.Threads, i, i+1)
		}
	}
	s.Threads = append(s.Threads, Thread{ID: id})
	return &s.Threads[len(s.Threads)-1]
}

// rests reports whether nothing of the thread is left to do.
func (th Thread) rests() bool {
	return len(th.Queue) == 0 && len(th.Running) == 0 && (th.Turn == nil || th.Turn.Status == Ended)
}

// runs folds which programs the thread runs.
func (th *Thread) runs(e event.Envelope) {
	if e.IDs.Process == "" {
		return
	}
	switch e.Data.(type) {
	case event.ProcessStarted:
		if !slices.Contains(th.Running, e.IDs.Process) {
			th.Running = append(th.Running, e.IDs.Process)
		}
	case event.ProcessCompleted, event.ProcessTerminated, event.ProcessFailed:
		th.Running = slices.DeleteFunc(th.Running, func(id belay.ProcessID) bool { return id == e.IDs.Process })
	}
}

func (th *Thread) begin(e event.Envelope) {
	t := Turn{ID: e.IDs.Turn}
	if i := slices.IndexFunc(th.Queue, func(q Turn) bool { return q.ID == e.IDs.Turn }); i >= 0 {
		t = th.Queue[i]
		th.Queue = slices.Delete(th.Queue, i, i+1)
	}
	t.Status, t.Started = Running, e.Time
	th.Turn, th.Flying = &t, nil
}

// end closes a turn and every question it has left open: they can't be answered
// any more.
func (s *Session) end(th *Thread, e event.Envelope, o belay.Outcome, code, reason, summary string) {
	if i := slices.Index(th.Joined, e.IDs.Turn); i >= 0 { // it ended with the one that it was part of
		th.Joined = slices.Delete(th.Joined, i, i+1)
		return
	}
	if th.Turn != nil && th.Turn.Status != Ended && th.Turn.ID != e.IDs.Turn { // it never began
		th.Queue = slices.DeleteFunc(th.Queue, func(q Turn) bool { return q.ID == e.IDs.Turn })
		return
	}
	if th.Turn == nil || th.Turn.ID != e.IDs.Turn {
		th.begin(e)
	}
	t := th.Turn
	t.Status, t.Outcome, t.Code, t.Reason, t.Summary, t.Ended = Ended, o, code, preview(reason), preview(summary), e.Time
	th.Flying = nil
	s.Actions = slices.DeleteFunc(s.Actions, func(a Action) bool { return a.Thread == th.ID })
}

// queueChanged folds a change of the row.
func (th *Thread) queueChanged(p event.QueueChanged) {
	i := slices.IndexFunc(th.Queue, func(q Turn) bool { return q.ID == p.Turn })
	switch {
	case (p.Op == event.QueueAdded || p.Op == event.QueuePromoted) && i >= 0 && p.Position >= 1 && p.Position <= len(th.Queue):
		q := th.Queue[i]
		th.Queue = slices.Insert(slices.Delete(th.Queue, i, i+1), p.Position-1, q)
	case p.Op == event.QueueReordered:
		slices.SortStableFunc(th.Queue, func(a, b Turn) int { return slices.Index(p.Order, a.ID) - slices.Index(p.Order, b.ID) })
	case p.Op == event.QueueJoined && i >= 0:
		th.Queue, th.Joined = slices.Delete(th.Queue, i, i+1), append(th.Joined, p.Turn)
	case p.Op == event.QueuePolicy && p.Policy != nil:
		th.Line = *p.Policy
	}
}

func (s *Session) ask(th *Thread, e event.Envelope, p event.ActionRequired) {
	if slices.ContainsFunc(s.Actions, func(a Action) bool { return a.ID == e.IDs.Action }) {
		return
	}
	s.Actions = append(s.Actions, Action{
		ID: e.IDs.Action, Kind: p.Kind, Tool: p.Tool, Prompt: preview(p.Prompt.Text), Until: p.Until, Asked: e.Time,
		Thread: th.ID, Turn: e.IDs.Turn, Call: e.IDs.Call, Stream: e.Stream,
	})
	if th.Turn != nil && th.Turn.Status != Ended {
		th.Turn.Status = Waiting
	}
}

func (s *Session) answer(th *Thread, id belay.ActionID) {
	s.Actions = slices.DeleteFunc(s.Actions, func(a Action) bool { return a.ID == id })
	waits := slices.ContainsFunc(s.Actions, func(a Action) bool { return a.Thread == th.ID })
	if th.Turn != nil && th.Turn.Status == Waiting && !waits {
		th.Turn.Status = Running
	}
}

func (th *Thread) fly(what string) {
	if !slices.Contains(th.Flying, what) {
		th.Flying = append(th.Flying, what)
	}
}

func (th *Thread) land(what string) {
	th.Flying = slices.DeleteFunc(th.Flying, func(f string) bool { return f == what })
}

// preview is the beginning of a text, cut between characters.
func preview(s string) string {
	if len(s) <= maxPreview {
		return s
	}
	return strings.ToValidUTF8(s[:maxPreview], "") + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
