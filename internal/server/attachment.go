package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
)

// attachment is a client that follows a program, and types on it if it may.
// What it holds doesn't grow with what the client hasn't taken: a piece of the
// output, which is read anew from where the client is.
type attachment struct {
	app.Call
	tenant  *tenant
	server  *Server
	conn    *websocket.Conn
	token   string
	pace    attachTimings
	sid     belay.SessionID
	stream  belay.StreamID
	id      belay.ProcessID
	started event.ProcessStarted
	writes  bool

	offset  int64          // up to there the output was sent
	at      store.Position // facts up to here were looked at
	shown   int64          // bytes that were sent
	brought int64          // bytes of commands that were accepted
	kept    bool           // facts have some of the output
	typed   *typed

	mu    sync.Mutex
	heard time.Time // when a byte came last, from either side
}

const (
	maxFrame  = 32 << 10  // bytes that come, or are sent, in one frame
	maxPicked = 256 << 10 // bytes of the output that are read at once
)

// serve speaks with the client until one of them, or the program, ends, and
// returns why.
func (a *attachment) serve(ctx context.Context) error {
	a.conn.SetReadLimit(maxFrame)
	a.hear()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var wg sync.WaitGroup
	finished := make(chan struct{})
	wg.Go(func() { end(a.listen(context.WithoutCancel(ctx))) })
	wg.Go(func() { a.watch(ctx, end, finished) })
	if a.writes {
		wg.Go(func() { a.give(ctx) })
	}
	err := a.follow(ctx)
	if ctx.Err() != nil && !errors.Is(err, errOver) {
		err = context.Cause(ctx)
	}
	end(err)
	a.part(err)
	close(finished)
	a.conn.CloseNow() //nolint:errcheck // it is over either way
	wg.Wait()
	return err
}

// part tells the client why it is over.
func (a *attachment) part(err error) {
	code, reason := websocket.StatusInternalError, "internal"
	switch {
	case errors.Is(err, errGone), errors.Is(err, errSilent):
		return
	case errors.Is(err, errOver):
		code, reason = websocket.StatusNormalClosure, "ended"
	case errors.Is(err, errIdle):
		code, reason = client.CloseIdle, "idle"
	case errors.Is(err, context.Canceled):
		code, reason = websocket.StatusGoingAway, string(belay.CodeDraining)
	default:
		reason = string(codeOf(err))
		if codeOf(err) == belay.CodeUnauthorized {
			code = client.CloseToken
		}
		a.refused(err)
	}
	a.conn.Close(code, reason) //nolint:errcheck // the client is gone
}

// watch looks after the client at every beat: whether its token is good, whether
// it lives, whether anything happens. Once the end has come it lets the client say
// goodbye, but not for long.
func (a *attachment) watch(ctx context.Context, end context.CancelCauseFunc, finished <-chan struct{}) {
	beat := time.NewTicker(a.pace.beat)
	defer beat.Stop()
	for ctx.Err() == nil {
		select {
		case <-beat.C:
			if err := a.lives(ctx); err != nil {
				end(err)
			}
		case <-ctx.Done():
		}
	}
	last := time.NewTimer(a.pace.close)
	defer last.Stop()
	select {
	case <-finished:
	case <-last.C:
		a.conn.CloseNow() //nolint:errcheck // it is over either way
	}
}

func (a *attachment) lives(ctx context.Context) error {
	if err := a.checked(); err != nil {
		return err
	}
	a.mu.Lock()
	quiet := time.Since(a.heard)
	a.mu.Unlock()
	if quiet > a.pace.idle {
		return errIdle
	}
	ctx, cancel := context.WithTimeout(ctx, a.pace.stall)
	defer cancel()
	if err := a.conn.Ping(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return errSilent
	}
	return nil
}

func (a *attachment) hear() {
	a.mu.Lock()
	a.heard = time.Now()
	a.mu.Unlock()
}

// listen takes what the client sends.
func (a *attachment) listen(ctx context.Context) error {
	for {
		kind, data, err := a.conn.Read(ctx)
		if err != nil {
			return errGone
		}
		a.hear()
		switch {
		case kind == websocket.MessageText:
			err = a.asked(data)
		case !a.writes:
			err = a.mayWrite()
		default:
			err = a.typed.add(data, false)
		}
		if err != nil {
			a.refused(err)
		}
	}
}

// mayWrite is the refusal of a client that only reads.
func (a *attachment) mayWrite() error {
	if a.writes {
		return nil
	}
	return belay.Errorf(belay.CodeForbidden, "this attachment only reads").WithHint("a token of role operator or owner, attached without readOnly, may write")
}

// asked does what a text frame asks for.
func (a *attachment) asked(data []byte) error {
	var in client.Ask
	if err := input.Decode(data, &in); err != nil {
		return err
	}
	if in.EOF == (in.Resize != nil) {
		return belay.Errorf(belay.CodeBadCommand, "a frame asks for one thing: resize or eof")
	}
	if err := a.mayWrite(); err != nil {
		return err
	}
	if in.EOF {
		return a.typed.add(nil, true)
	}
	if err := a.checked(); err != nil {
		return err
	}
	run, ok := a.Attachable(a.id)
	if !ok {
		return input.At("resize", belay.Errorf(belay.CodeBadState, "the program doesn't run in the background of this server's process"))
	}
	if err := run.Resize(in.Resize.Rows, in.Resize.Cols); err != nil {
		return input.At("resize", belay.Errorf(belay.CodeBadState, "%s", err.Error()))
	}
	return nil
}

// refused tells the client what wasn't done.
func (a *attachment) refused(err error) {
	if codeOf(err) == belay.CodeInternal {
		a.tenant.log.Error("attach", "process", string(a.id), "error", err.Error())
	}
	p := input.ProblemOf(err)
	a.say(client.Frame{Error: &client.Refusal{Code: p.Code, Detail: p.Detail, Field: p.Field, Hint: p.Hint}}) //nolint:errcheck // the reader learns that the client is gone
}

// say sends a text frame.
func (a *attachment) say(m client.Frame) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("an answer of an attachment: %w", err)
	}
	return a.write(websocket.MessageText, data)
}

// write sends a frame. A client that doesn't take it in time is cut off.
func (a *attachment) write(kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(a.server.life, a.pace.stall)
	defer cancel()
	if err := a.conn.Write(ctx, kind, data); err != nil {
		return errGone
	}
	a.hear()
	return nil
}
