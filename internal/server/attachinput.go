package server

import (
	"context"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/store"
)

// typed is what a client typed and no command has brought to the program yet.
type typed struct {
	mu    sync.Mutex
	text  []byte
	end   bool          // no more comes
	over  bool          // no longer read
	more  chan struct{} // holds one: there is something
	space chan struct{} // closed and replaced when something was taken
}

const (
	maxTyped = 64 << 10 // bytes that wait; who types more is read later
)

func newTyped() *typed {
	return &typed{more: make(chan struct{}, 1), space: make(chan struct{})}
}

// add waits until there is room.
func (t *typed) add(b []byte, end bool) error {
	for {
		t.mu.Lock()
		space := t.space
		if t.over || len(t.text) < maxTyped {
			break
		}
		t.mu.Unlock()
		<-space
	}
	defer t.mu.Unlock()
	switch {
	case t.over:
		return nil // the attachment ends
	case t.end:
		return belay.Errorf(belay.CodeBadState, "the input was ended")
	}
	t.text, t.end = append(t.text, b...), end
	select {
	case t.more <- struct{}{}:
	default:
	}
	return nil
}

// take is what is to be sent next, at most one command's; an error means that
// something can't be sent, and drops all.
func (t *typed) take() (text string, end bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := sendable(t.text, t.end)
	if err != nil {
		t.clear()
		return "", false, err
	}
	text = string(t.text[:n])
	t.text = append(t.text[:0], t.text[n:]...)
	if end = t.end && len(t.text) == 0; end {
		t.end = false
	}
	t.room()
	return text, end, nil
}

// clear drops what waits; the lock is held.
func (t *typed) clear() {
	t.text, t.end = nil, false
	t.room()
}

func (t *typed) room() {
	close(t.space)
	t.space = make(chan struct{})
}

// drop forgets what waits; over means that nothing more will be read.
func (t *typed) drop(over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.over || over
	t.clear()
}

// sendable is how many bytes a command can bring: whole characters, as many as a
// fact holds. last: nothing comes behind them.
func sendable(b []byte, last bool) (int, error) {
	n := min(len(b), app.MaxInput)
	for cut := 0; n < len(b) && !utf8.RuneStart(b[n]) && cut < utf8.UTFMax; cut++ {
		n--
	}
	for n > 0 && event.TextLen(string(b[:n])) > app.MaxInput {
		for n /= 2; n > 0 && !utf8.RuneStart(b[n]); {
			n--
		}
	}
	if n == len(b) && !last { // a character may still come whole
		for i := max(0, n-utf8.UTFMax+1); i < n; i++ {
			if utf8.RuneStart(b[i]) && !utf8.FullRune(b[i:n]) {
				n = i
			}
		}
	}
	if !utf8.Valid(b[:n]) || n == 0 && len(b) >= utf8.UTFMax {
		return 0, belay.Errorf(belay.CodeBadCommand, "what was typed isn't UTF-8 text: it can't be recorded, and none of it was given to the program")
	}
	if strings.IndexByte(string(b[:n]), 0) >= 0 {
		return 0, belay.Errorf(belay.CodeBadCommand, "what was typed has NUL characters: it can't be recorded, and none of it was given to the program")
	}
	return n, nil
}

// give sends what is typed to the program, a command at a time, until ctx ends.
// A failure is reported to the client, and what waits behind it is dropped.
func (a *attachment) give(ctx context.Context) {
	defer a.typed.drop(true)
	for {
		select {
		case <-a.typed.more:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil {
			text, end, err := a.typed.take()
			if err == nil && text == "" && !end {
				break
			}
			if err == nil {
				err = a.bring(ctx, text, end)
			}
			if err != nil && ctx.Err() == nil {
				a.typed.drop(false)
				a.refused(err)
			}
		}
	}
}

// bring brings one input to the program and waits until it is known what the
// program took.
func (a *attachment) bring(ctx context.Context, text string, end bool) error {
	if err := a.checked(); err != nil {
		return err
	}
	if err := a.server.working(); err != nil {
		return err
	}
	at, err := a.Store.End(ctx)
	if err != nil {
		return err
	}
	// Even if the client goes meanwhile, the command is completed and recorded.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.pace.taken)
	defer cancel()
	told, err := a.Send(sending, a.sid, a.stream, belay.WriteProcessStdin{Process: a.id, Input: text, End: end})
	if err != nil {
		return err
	}
	a.brought += int64(len(text))
	ctx, stop := context.WithTimeout(ctx, a.pace.taken)
	defer stop()
	w := typedInput{at: at, command: told.Command}
	for {
		changed := a.Store.Changed(ctx)
		if done, err := a.outcome(ctx, &w); done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return belay.Errorf(belay.CodeBusy, "it isn't known yet whether the program took %d bytes", len(text))
		}
	}
}

// typedInput is an input whose outcome isn't known.
type typedInput struct {
	at      store.Position // facts up to here were looked at
	command belay.CommandID
	number  int
	bytes   int64
}

// outcome looks for the fact that says the outcome of an input.
func (a *attachment) outcome(ctx context.Context, w *typedInput) (done bool, err error) {
	for rec, err := range a.Store.Window(ctx, store.Window{Stream: a.stream, After: w.at}) {
		if err != nil {
			return false, err
		}
		w.at = rec.Position
		if rec.Event.IDs.Request == w.command {
			if m, ok := rec.Event.Data.(event.ChannelMessage); ok && m.Kind == "audit" {
				return true, &belay.Error{Code: belay.Code(m.Code), Message: m.Message, Hint: m.Hint}
			}
		}
		if rec.Event.IDs.Process != a.id {
			continue
		}
		switch p := rec.Event.Data.(type) {
		case event.ProcessInput:
			switch {
			case p.Asked && rec.Event.IDs.Request == w.command:
				w.number, w.bytes = p.Number, p.Bytes
			case !p.Asked && w.number > 0 && p.Number == w.number:
				if p.Error != "" {
					return true, belay.Errorf(belay.CodeBadState, "the program took %d of %d bytes: %s", p.Bytes, w.bytes, p.Error)
				}
				return true, nil
			}
		case event.ProcessCompleted, event.ProcessTerminated, event.ProcessFailed:
			return true, belay.Errorf(belay.CodeBadState, "the program ended before it took %d bytes", w.bytes)
		}
	}
	return false, nil
}
