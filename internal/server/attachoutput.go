package server

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/coder/websocket"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// follow sends the program's output from the offset on, and its end. Where this
// process runs the program it comes as it is printed, else as it is recorded.
func (a *attachment) follow(ctx context.Context) error {
	if err := a.hello(ctx); err != nil {
		return err
	}
	for {
		changed := a.Store.Changed(ctx)
		if run, live := a.Attachable(a.id); live {
			if err := a.live(ctx, run); err != nil {
				return err
			}
			changed = nil // its end may be recorded already
		}
		ended, err := a.stored(ctx)
		if err != nil || ended {
			return err
		}
		if changed == nil {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hello sends what the client is attached to and where it begins.
func (a *attachment) hello(ctx context.Context) error {
	h := client.Attached{Process: a.id, Session: a.sid, Argv: a.started.Argv, PID: a.started.PID, Input: "closed"}
	var err error
	if run, live := a.Attachable(a.id); live {
		h.Live = true
		h.Rows, h.Cols = run.Terminal()
		_, h.Size, err = run.Printed(0, 0)
		if run.TakesInput() {
			h.Input = "open"
		}
	} else {
		var left bool
		if h.Size, left, err = a.size(ctx); left {
			h.Input = "open"
		}
	}
	if err != nil {
		return err
	}
	if !a.writes && h.Input == "open" {
		h.Input = "read_only"
	}
	if a.offset < 0 {
		a.offset = max(0, h.Size+a.offset)
	}
	h.Offset = a.offset
	return a.say(client.Frame{Hello: &h})
}

// size is how much of the output facts have, and whether the program is one of
// the background of a thread.
func (a *attachment) size(ctx context.Context) (size int64, left bool, err error) {
	for rec, err := range a.facts(ctx, 0) {
		if err != nil {
			return 0, false, err
		}
		if rec.Event.IDs.Process != a.id {
			continue
		}
		if p, ok := rec.Event.Data.(event.ProcessOutput); ok {
			size = p.Offset + sizeOf(p)
		}
		if ref := wholeOf(rec.Event.Data); ref != nil {
			size = ref.Size
		}
	}
	state, err := a.Thread(ctx, belay.ThreadID(a.stream.ID()))
	if err != nil {
		return 0, false, err
	}
	for _, p := range state.Procs {
		left = left || p.IDs.Process == a.id && p.Left && !p.Orphan && !p.Over
	}
	return size, left, nil
}

func sizeOf(p event.ProcessOutput) int64 {
	if p.Ref != nil {
		return p.Ref.Size
	}
	return int64(len(p.Text))
}

// wholeOf is the content that has all output of a program, if a fact of its end
// names one.
func wholeOf(p event.Payload) *belay.Ref {
	switch p := p.(type) {
	case event.ProcessCompleted:
		return p.Output
	case event.ProcessTerminated:
		return p.Output
	}
	return nil
}

// live sends what the program prints until all of it is sent or the program has
// ended; the rest is in the facts then.
func (a *attachment) live(ctx context.Context, run tool.Attachable) error {
	a.kept = true
	// What is printed from now on is recorded behind this place.
	at, err := a.Store.End(ctx)
	if err != nil {
		return err
	}
	for {
		grown := run.Grown()
		var over bool
		select {
		case <-run.Over():
			over = true
		default:
		}
		b, total, err := run.Printed(a.offset, maxPicked)
		switch {
		case over && a.offset < total: // the facts have it
			return nil
		case over:
			a.at = max(a.at, at)
			return nil
		case err != nil:
			return err
		}
		if len(b) > 0 {
			if err := a.show(ctx, b); err != nil {
				return err
			}
			continue
		}
		select {
		case <-grown:
		case <-run.Over():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stored sends what facts have of the output behind the offset, as far as there
// are any, and the end if it is among them.
func (a *attachment) stored(ctx context.Context) (ended bool, err error) {
	if _, err := a.Store.Head(ctx, a.stream); errors.Is(err, store.ErrNotFound) {
		return false, belay.Errorf(belay.CodeDeleted, "the session was deleted").At(string(a.sid))
	}
	end, upTo, err := a.ending(ctx)
	if err != nil {
		return false, err
	}
	if whole := wholeOf(payload(end)); whole != nil { // what was recorded meanwhile is in it
		err = a.blob(ctx, 0, *whole)
	} else {
		err = a.pieces(ctx, upTo)
		if p, ok := payload(end).(event.ProcessCompleted); ok && err == nil && !a.kept {
			err = a.skip(p.Bytes) // only the call's result has it
		}
	}
	a.at = max(a.at, upTo)
	if err != nil || end == nil {
		return false, err
	}
	return true, a.exit(end)
}

func payload(rec *store.Record) event.Payload {
	if rec == nil {
		return nil
	}
	return rec.Event.Data
}

// facts are those of the program that weren't looked at, up to a place; 0 is the
// end of the log.
func (a *attachment) facts(ctx context.Context, upTo store.Position) iter.Seq2[store.Record, error] {
	w := store.Window{Stream: a.stream, After: a.at}
	if upTo > 0 {
		w.Before = upTo + 1
	}
	return a.Store.Window(ctx, w)
}

// ending is the fact of the program's end, if there is one, and how far the facts
// were looked at for it.
func (a *attachment) ending(ctx context.Context) (end *store.Record, upTo store.Position, err error) {
	for rec, err := range a.facts(ctx, 0) {
		if err != nil {
			return nil, 0, err
		}
		upTo = rec.Position
		if rec.Event.IDs.Process != a.id {
			continue
		}
		switch rec.Event.Data.(type) {
		case event.ProcessCompleted, event.ProcessTerminated, event.ProcessFailed:
			return &rec, upTo, nil
		}
	}
	return nil, upTo, nil
}

// pieces sends what was recorded piece by piece, up to a place.
func (a *attachment) pieces(ctx context.Context, upTo store.Position) error {
	if upTo == 0 {
		return nil
	}
	for rec, err := range a.facts(ctx, upTo) {
		if err != nil {
			return err
		}
		p, ok := rec.Event.Data.(event.ProcessOutput)
		switch {
		case !ok || rec.Event.IDs.Process != a.id:
			continue
		case p.Ref != nil:
			err = a.blob(ctx, p.Offset, *p.Ref)
		case p.Offset+int64(len(p.Text)) > a.offset:
			if err = a.skip(p.Offset); err == nil {
				err = a.show(ctx, []byte(p.Text[a.offset-p.Offset:]))
			}
		}
		if err != nil {
			return err
		}
		a.kept = true
	}
	return nil
}

// skip goes to a place behind the offset: what is before it wasn't kept.
func (a *attachment) skip(to int64) error {
	if to <= a.offset {
		return nil
	}
	from := a.offset
	a.offset = to
	return a.say(client.Frame{Truncated: &client.Gap{From: from, Offset: to}})
}

// blob sends what a content that begins at a place has behind the offset.
func (a *attachment) blob(ctx context.Context, begins int64, ref belay.Ref) error {
	if begins+ref.Size <= a.offset {
		return nil
	}
	if err := a.skip(begins); err != nil {
		return err
	}
	r, err := a.Store.Open(ctx, ref.Digest)
	if errors.Is(err, store.ErrNotFound) { // retention let it go
		return a.skip(begins + ref.Size)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, a.offset-begins); err != nil {
		return err
	}
	buf := make([]byte, maxFrame)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := a.show(ctx, buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// show sends a piece of the output.
func (a *attachment) show(ctx context.Context, b []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for len(b) > 0 {
		n := min(len(b), maxFrame)
		if err := a.write(websocket.MessageBinary, b[:n]); err != nil {
			return err
		}
		a.offset += int64(n)
		a.shown += int64(n)
		b = b[n:]
	}
	return nil
}

// exit sends how the program ended.
func (a *attachment) exit(rec *store.Record) error {
	e := client.Exit{Position: int64(rec.Position)}
	switch p := rec.Event.Data.(type) {
	case event.ProcessCompleted:
		e.Code, e.Reason, e.Limit = p.Exit, "exited", p.Limit
	case event.ProcessTerminated:
		e.Code, e.Signal, e.Reason, e.Limit = -1, p.Signal, p.Reason, p.Limit
	case event.ProcessFailed:
		e.Code, e.Reason = -1, p.Class
	}
	if err := a.say(client.Frame{Exit: &e}); err != nil {
		return err
	}
	return errOver
}
