package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
)

// CompactCmd is the command "belay compact".
type CompactCmd struct {
	ID    string `arg:"" optional:"" help:"The session; the last one of this workspace."`
	Focus string `placeholder:"TEXT" help:"What the summary is to keep above all."`
}

// Run implements command.Command.
func (c *CompactCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	w, _, _, err := openSession(ctx, a, c.ID, true)
	if err != nil {
		return 0, err
	}
	defer w.close()
	res, err := turns.Compact(ctx, w.Call("compact_thread"), &turns.CompactThread{Session: w.session, Focus: c.Focus})
	if err != nil {
		return 0, err
	}
	th, err := w.state(ctx)
	if err != nil {
		return 0, err
	}
	if app.Unfinished(th) {
		return a.Tell(ctx, w.Runtime, res, "the conversation is shortened before the next step of its turn")
	}
	done, err := w.shortened(ctx, res.Command)
	if errors.Is(err, errTerminated) {
		fmt.Fprintf(a.Err, "stopped before the conversation was shortened; continue with: %s\n", w.resumeCommand())
		return belay.ExitCancelled, nil
	}
	if err != nil {
		return 0, err
	}
	return w.tellShortened(done)
}

// compacted is the outcome of a compaction, as JSON.
type compacted struct {
	Session belay.SessionID                   `json:"session"`
	Done    *event.ContextCompactionCompleted `json:"completed,omitempty"`
	Failed  *event.ContextCompactionFailed    `json:"failed,omitempty"`
}

func (w *turnRun) tellShortened(done *compacted) (int, error) {
	if f := done.Failed; f != nil {
		w.a.Show(done, func() { //nolint:errcheck // nobody is left to tell
			fmt.Fprintln(w.a.Out, term.NotShortened(*f))
			fmt.Fprintf(w.a.Err, "try: belay context %s%s shows what fills it\n", w.session, w.a.StoreFlag)
		})
		return belay.ExitFailed, nil
	}
	return w.a.Show(done, func() { fmt.Fprintln(w.a.Out, term.Shortened(*done.Done)) })
}

// shortened drives the session until the compaction that a command asked for is over,
// or waits until its driver has done that.
func (w *turnRun) shortened(ctx context.Context, asked belay.CommandID) (*compacted, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-w.a.Signals:
			stop(errTerminated)
		case <-ctx.Done():
		}
	}()
	for {
		changed := w.Store.Changed(ctx)
		if done, err := w.compactedBy(ctx, asked); done != nil || err != nil {
			return done, err
		}
		err := w.Engine.Session(ctx, w.session, nil)
		_, owned := errors.AsType[*store.OwnedError](err)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && !owned:
			return nil, err
		case err == nil:
			done, err := w.compactedBy(ctx, asked)
			if done == nil && err == nil {
				err = belay.Errorf(belay.CodeBadState, "the conversation isn't shortened yet").At(string(w.session)).WithHint("belay why %s", w.session)
			}
			return done, err
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // an owner that is gone commits nothing
		case <-ctx.Done():
		}
	}
}

// compactedBy is the end of the compaction that a command asked for; nil: it isn't over.
func (w *turnRun) compactedBy(ctx context.Context, asked belay.CommandID) (*compacted, error) {
	wished := false
	for ev, err := range w.Store.Read(ctx, w.thread.Stream(), 0) {
		if err != nil {
			return nil, err
		}
		switch p := ev.Data.(type) {
		case event.ThreadUpdated:
			wished = wished || p.Compact != nil && ev.IDs.Request == asked
		case event.ContextCompactionCompleted:
			if wished && p.Trigger == event.TriggerManual {
				return &compacted{Session: w.session, Done: &p}, nil
			}
		case event.ContextCompactionFailed:
			if wished && p.Trigger == event.TriggerManual && p.Problem.Class != "lost" { // that is begun again
				return &compacted{Session: w.session, Failed: &p}, nil
			}
		}
	}
	return nil, nil
}
