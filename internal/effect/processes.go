package effect

import (
	"context"
	"github.com/belay-run/belay/internal/engine"
	"slices"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// backgroundProcess is a process that continues after its call: it has an effect of its own
// in the thread, and its end is a fact like any effect's.
type backgroundProcess struct {
	tool.Running
	stream belay.StreamID
	ids    belay.IDs
	kept   bool // its effect runs

	workspace string
	may       core.May
}

// backgroundPrograms are the processes that outlived their calls, the oldest first.
type backgroundPrograms struct {
	mu  sync.Mutex
	all []backgroundProcess
}

// add takes a process over from the call that started it.
func (b *backgroundPrograms) add(p backgroundProcess) {
	p.ids.Process = p.ID()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, p)
}

// remove forgets a process, which has ended.
func (b *backgroundPrograms) remove(s belay.StreamID, id belay.ProcessID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = slices.DeleteFunc(b.all, func(p backgroundProcess) bool { return p.stream == s && p.ID() == id })
}

// of are the processes of a stream that its model may see to.
func (b *backgroundPrograms) of(s belay.StreamID) (all []tool.Running) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.all {
		if _, serves := p.Running.(tool.Server); p.stream == s && !serves {
			all = append(all, p.Running)
		}
	}
	return all
}

// take is the first process of the stream that the function accepts, and marks
// it as kept if keep is set.
func (v *performer) take(keep bool, ok func(backgroundProcess) bool) (backgroundProcess, bool) {
	b := &v.e.background
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range b.all {
		if p.stream == v.stream && ok(p) {
			b.all[i].kept = p.kept || keep
			return p, true
		}
	}
	return backgroundProcess{}, false
}

// keepProcess sees a process to its end.
func (v *performer) keepProcess(ctx context.Context, run *engine.Run, eff core.KeepProcess) []core.Fact {
	id := eff.IDs.Process
	r, ok := v.take(true, func(l backgroundProcess) bool { return l.ID() == id })
	if !ok {
		return []core.Fact{{IDs: eff.IDs, Data: event.ProcessFailed{Class: tool.Lost, Reason: "this runtime doesn't have it"}}}
	}
	why := func() string {
		if run.Leaving() {
			return tool.Shutdown
		}
		return tool.Cancelled
	}
	end := r.Keep(ctx, why)
	facts := v.leftBehind(ctx, eff.IDs)
	v.e.background.remove(v.stream, id)
	return append(facts, core.Fact{IDs: eff.IDs, Data: end})
}

// Attachable returns a background program of this process; false: there is none
// with this id, or it can't be attached to.
func (e *Performers) Attachable(id belay.ProcessID) (tool.Attachable, bool) {
	e.background.mu.Lock()
	defer e.background.mu.Unlock()
	for _, p := range e.background.all {
		if p.ID() == id {
			a, ok := p.Running.(tool.Attachable)
			return a, ok
		}
	}
	return nil, false
}

// Leftover is the end of a process that was handed over to a drive that leaves
// before it could keep it.
func (v *performer) Leftover() core.Effect {
	p, ok := v.take(true, func(p backgroundProcess) bool { return !p.kept })
	if !ok {
		return nil
	}
	return core.KeepProcess{IDs: p.ids}
}

// sendInput gives a process what a command brought.
func (v *performer) sendInput(eff core.SendInput) []core.Fact {
	p := event.ProcessInput{Number: eff.Number, End: eff.End}
	r, ok := v.take(false, func(l backgroundProcess) bool { return l.ID() == eff.IDs.Process })
	if !ok {
		p.Error = "the process has ended"
		return []core.Fact{{IDs: eff.IDs, Data: p}}
	}
	n, err := r.Send(eff.Text, eff.End)
	if p.Bytes = int64(n); err != nil {
		p.Error = event.CutText(err.Error(), 1000)
	}
	return []core.Fact{{IDs: eff.IDs, Data: p}}
}

// processes are a thread's, as its tools see them.
type processes struct{ v *performer }

func (p processes) Left() []tool.Running { return p.v.e.background.of(p.v.stream) }

// Recorded reads the thread and the session's own stream together, in the order
// of the log: output that expired may be printed again later.
func (p processes) Recorded(ctx context.Context, id belay.ProcessID) (facts []event.Envelope, err error) {
	own := p.v.session.Stream()
	for r, err := range p.v.e.c.Store.Window(ctx, store.Window{Session: p.v.session}) {
		if err != nil {
			return nil, err
		}
		_, let := r.Event.Data.(event.OutputExpired)
		if r.Event.IDs.Process == id && r.Event.Stream == p.v.stream || let && r.Event.Stream == own && len(facts) > 0 {
			facts = append(facts, r.Event)
		}
	}
	return facts, nil
}
