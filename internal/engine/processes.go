package engine

import (
	"context"
	"slices"

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

// handOff takes a process over from the call that started it.
func (v *drive) handOff(ids belay.IDs, workspace string, may core.May, r tool.Running) {
	ids.Process = r.ID()
	v.e.mu.Lock()
	defer v.e.mu.Unlock()
	v.e.left = append(v.e.left, backgroundProcess{Running: r, stream: v.stream, ids: ids, workspace: workspace, may: may})
}

// take is the first process of the stream that the function accepts, and marks
// it as kept if keep is set.
func (v *drive) take(keep bool, ok func(backgroundProcess) bool) (backgroundProcess, bool) {
	v.e.mu.Lock()
	defer v.e.mu.Unlock()
	for i, l := range v.e.left {
		if l.stream == v.stream && ok(l) {
			v.e.left[i].kept = l.kept || keep
			return l, true
		}
	}
	return backgroundProcess{}, false
}

// keepProcess sees a process to its end.
func (v *drive) keepProcess(ctx context.Context, eff core.KeepProcess, leaving func() bool) []core.Fact {
	id := eff.IDs.Process
	r, ok := v.take(true, func(l backgroundProcess) bool { return l.ID() == id })
	if !ok {
		return []core.Fact{{IDs: eff.IDs, Data: event.ProcessFailed{Class: tool.Lost, Reason: "this runtime doesn't have it"}}}
	}
	why := func() string {
		if leaving() {
			return tool.Shutdown
		}
		return tool.Cancelled
	}
	end := r.Keep(ctx, why)
	facts := v.leftBehind(ctx, eff.IDs)
	v.e.mu.Lock()
	v.e.left = slices.DeleteFunc(v.e.left, func(l backgroundProcess) bool { return l.stream == v.stream && l.ID() == id })
	v.e.mu.Unlock()
	return append(facts, core.Fact{IDs: eff.IDs, Data: end})
}

// Attachable returns a background program of this process; false: there is none
// with this id, or it can't be attached to.
func (e *Engine) Attachable(id belay.ProcessID) (tool.Attachable, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.left, func(l backgroundProcess) bool { return l.ID() == id })
	if i < 0 {
		return nil, false
	}
	a, ok := e.left[i].Running.(tool.Attachable)
	return a, ok
}

// adoptOrphans ends a process that was handed over to a drive that leaves before it
// could keep it. It reports whether there was one.
func (v *drive) adoptOrphans(ctx context.Context) bool {
	r, ok := v.take(true, func(l backgroundProcess) bool { return !l.kept })
	if !ok {
		return false
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	v.start(gone, core.ProcessKey(r.ids.Process), core.KeepProcess{IDs: r.ids})
	return true
}

// sendInput gives a process what a command brought.
func (v *drive) sendInput(eff core.SendInput) []core.Fact {
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

// updateIdle tells the session when only processes of the background keep the drive.
func (v *drive) updateIdle(rd core.Ready) {
	lone := len(rd.Effects) > 0
	for _, eff := range rd.Effects {
		if _, ok := eff.(core.KeepProcess); !ok {
			lone = false
		}
	}
	if lone != v.onlyBackground.Swap(lone) && lone {
		v.own.notify()
	}
}

// processes are a thread's, as its tools see them.
type processes struct{ v *drive }

func (p processes) Left() (all []tool.Running) {
	p.v.e.mu.Lock()
	defer p.v.e.mu.Unlock()
	for _, l := range p.v.e.left {
		if l.stream == p.v.stream {
			all = append(all, l.Running)
		}
	}
	return all
}

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
