package processes

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
)

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

// Write gives a program in the background input.
func Write(ctx context.Context, r *app.Call, in *WriteProcessStdin) (*app.Result, error) {
	if err := input.Text("input", in.Input, app.MaxInput); err != nil {
		return nil, err
	}
	if in.Input == "" && !in.End {
		return nil, input.At("input", belay.Errorf(belay.CodeBadCommand, "there is nothing to write").WithHint("give a text, or say with end that no more comes"))
	}
	return toProcess(ctx, r, in.Session, in.Process, belay.WriteProcessStdin{Process: in.Process, Input: in.Input, End: in.End})
}

// Terminate ends a program in the background.
func Terminate(ctx context.Context, r *app.Call, in *TerminateProcess) (*app.Result, error) {
	if err := input.Text("reason", in.Reason, app.MaxReason); err != nil {
		return nil, err
	}
	return toProcess(ctx, r, in.Session, in.Process, belay.TerminateProcess{Process: in.Process, Reason: in.Reason})
}

// toProcess brings a command to the thread whose program it is about, also when
// the program has ended: then the thread refuses it, which is a fact there, and
// told again under its key it is answered as before.
func toProcess(ctx context.Context, r *app.Call, sid belay.SessionID, id belay.ProcessID, c belay.Command) (*app.Result, error) {
	if err := input.Named("processId", string(id)); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, sid)
	if err != nil {
		return nil, err
	}
	th, err := r.ThreadOfProcess(ctx, s, id)
	if err != nil {
		return nil, err
	}
	if th == "" {
		return nil, input.At("processId", belay.Errorf(belay.CodeNotFound, "no process %s is or was in the session", id).At(string(sid)).WithHint("get_thread_read lists what runs in a thread"))
	}
	told, err := r.Send(ctx, sid, th.Stream(), c)
	if belay.CodeOf(err) == belay.CodeUnavailable {
		err = r.Hinted(err, "get_thread_read lists what runs; GET /v1/sessions/{id}/processes/{process}/attach gives what an ended program printed")
	}
	return app.With(told, input.At("processId", err), th, "")
}
