package server

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/problem"
)

// maxInput bounds what a program is given at once, in bytes.
const maxInput = 8 << 10

// WriteProcessStdin is what write_process_stdin takes.
type WriteProcessStdin struct {
	Session belay.SessionID `json:"sessionId"`
	Process belay.ProcessID `json:"processId"`
	Input   string          `json:"input,omitempty" jsonschema:"what the program reads, exactly: a line ends with its newline"`
	End     bool            `json:"end,omitempty" jsonschema:"no more input comes after it"`
}

// TerminateProcess is what terminate_process takes.
type TerminateProcess struct {
	Session belay.SessionID `json:"sessionId"`
	Process belay.ProcessID `json:"processId"`
	Reason  string          `json:"reason,omitempty"`
}

func writeProcessStdin(ctx context.Context, r *request, in *WriteProcessStdin) (*CommandResult, error) {
	if err := text("input", in.Input, maxInput); err != nil {
		return nil, err
	}
	if in.Input == "" && !in.End {
		return nil, problem.At("input", belay.Errorf(belay.CodeBadCommand, "there is nothing to write").WithHint("give a text, or say with end that no more comes"))
	}
	return r.toProcess(ctx, in.Session, in.Process, belay.WriteProcessStdin{Process: in.Process, Input: in.Input, End: in.End})
}

func terminateProcess(ctx context.Context, r *request, in *TerminateProcess) (*CommandResult, error) {
	if err := text("reason", in.Reason, maxReason); err != nil {
		return nil, err
	}
	return r.toProcess(ctx, in.Session, in.Process, belay.TerminateProcess{Process: in.Process, Reason: in.Reason})
}

// toProcess brings a command to the thread whose program it is about, also when
// the program has ended: then the thread refuses it, which is a fact there, and
// told again under its key it is answered as before.
func (r *request) toProcess(ctx context.Context, sid belay.SessionID, id belay.ProcessID, c belay.Command) (*CommandResult, error) {
	if err := named("processId", string(id)); err != nil {
		return nil, err
	}
	s, err := r.known(ctx, sid)
	if err != nil {
		return nil, err
	}
	for _, th := range s.Threads {
		state, err := r.thread(ctx, th)
		if err != nil {
			return nil, err
		}
		here := slices.ContainsFunc(state.Procs, func(p thread.Proc) bool { return p.IDs.Process == id })
		if !here {
			if here, err = r.ranIn(ctx, th, id); err != nil {
				return nil, err
			}
		}
		if here {
			told, err := r.send(ctx, sid, th.Stream(), c)
			if belay.CodeOf(err) == belay.CodeUnavailable {
				err = hinted(err, "get_thread_read lists what runs; "+attachRoute+" gives what an ended program printed")
			}
			return with(told, problem.At("processId", err), th, "")
		}
	}
	return nil, problem.At("processId", belay.Errorf(belay.CodeNotFound, "no process %s is or was in the session", id).At(string(sid)).WithHint("get_thread_read lists what runs in a thread"))
}

// ranIn reports whether a program ran in a thread.
func (r *request) ranIn(ctx context.Context, th belay.ThreadID, id belay.ProcessID) (bool, error) {
	for ev, err := range r.Store.Read(ctx, th.Stream(), 0) {
		if err != nil {
			return false, err
		}
		if _, ok := ev.Data.(event.ProcessStarted); ok && ev.IDs.Process == id {
			return true, nil
		}
	}
	return false, nil
}

// ProcessShown is a program that runs in a thread.
type ProcessShown struct {
	ID         belay.ProcessID `json:"processId"`
	Call       belay.CallID    `json:"callId"`
	Command    string          `json:"command"`              // the beginning of its command line
	Background bool            `json:"background,omitempty"` // its call is over: it takes input and can be ended
	Lost       bool            `json:"lost,omitempty"`       // the runtime that started it is gone
	Waiting    int             `json:"waiting,omitempty"`    // inputs that it hasn't been given yet
}

// processes are the programs of a thread, as far as facts say.
func processes(th *thread.State) []ProcessShown {
	out := make([]ProcessShown, 0, len(th.Procs))
	for _, p := range th.Procs {
		out = append(out, ProcessShown{ID: p.IDs.Process, Call: p.IDs.Call, Command: p.What, Background: p.Left, Lost: p.Orphan, Waiting: len(p.Inputs)})
	}
	return out
}
