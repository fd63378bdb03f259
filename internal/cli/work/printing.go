package work

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
)

// printing is one turn that is printed.
type printing struct {
	a         *command.Program
	c         *PrintCmd
	runtime   chat.Runtime
	session   belay.SessionID
	turn      belay.TurnID
	mode      string
	model     string
	workspace string

	story block.Fold
	out   *messages
	mu    sync.Mutex
	left  bool // the process was asked to end at once
}

// see says the text and prints what comes of it.
func (p *printing) see(ctx context.Context, settings map[string]any, text string, with []turns.AttachedFile) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cursor, err := p.end(ctx)
	if err != nil {
		return 0, err
	}
	in := map[string]any{"text": text, "settings": settings}
	if len(with) > 0 {
		in["attachments"] = with
	}
	if p.session != "" {
		in["sessionId"] = p.session
	} else {
		in["workspace"] = p.workspace
	}
	var told app.Result
	if err := p.runtime.Do(ctx, "submit_turn", in, &told); err != nil {
		return 0, err
	}
	p.session, p.turn = told.Session, told.Turn
	p.out = &messages{session: p.session, mode: p.mode, model: p.model, cwd: p.workspace, load: p.load, line: p.line}
	p.story.Load = func(r belay.Ref) ([]byte, error) { return []byte(p.load(r, "")), nil }
	defer p.watchSignals(ctx, cancel)()
	for item, err := range p.runtime.Follow(ctx, p.session, cursor) {
		switch {
		case p.wasLeft():
			fmt.Fprintf(p.a.Err, "stopped; continue with: belay -p -r %s%s\n", p.session, p.a.StoreFlag)
			return belay.ExitCancelled, nil
		case err != nil:
			return 0, err
		case item.Broken != nil:
			if _, owned := errors.AsType[*store.OwnedError](item.Broken); !owned {
				return 0, item.Broken
			}
		case item.Fact != nil:
			p.fact(*item.Fact)
			if p.out.result != nil {
				return p.conclude(), nil
			}
		}
	}
	return 0, belay.Errorf(belay.CodeInternal, "the session ended before its turn").At(string(p.session))
}

// end is where a session's facts end before the turn is submitted.
func (p *printing) end(ctx context.Context) (string, error) {
	if p.session == "" {
		return "", nil
	}
	var page struct {
		Newer string `json:"newer"`
	}
	err := p.runtime.Read(ctx, "read_sessions_id_events", chat.Query{ID: string(p.session), Values: url.Values{"last": {"1"}}}, &page)
	return page.Newer, err
}

// load is a content's text; or another one, when it can't be read.
func (p *printing) load(ref belay.Ref, otherwise string) string {
	var b strings.Builder
	if err := chat.Content(context.Background(), p.runtime, p.session, ref.Digest, &b); err != nil {
		return otherwise
	}
	return b.String()
}

// line prints a message, if they are what is printed.
func (p *printing) line(v any) {
	if p.c.OutputFormat == "stream-json" && !p.a.JSON {
		p.a.PrintJSON(v)
	}
}

func (p *printing) fact(e event.Envelope) {
	if p.a.JSON {
		p.a.PrintJSON(e)
	}
	if p.a.Verbose {
		p.story.Apply(e)
		look := p.a.Look(p.a.Err)
		look.Me = p.a.Principal()
		for _, b := range p.story.Take() {
			for _, l := range block.Render(b, look) {
				fmt.Fprintln(p.a.Err, l)
			}
		}
	}
	if q, ok := e.Data.(event.QueueChanged); ok && q.Op == event.QueueJoined && q.Turn == p.turn {
		p.turn = q.Into
	}
	if e.IDs.Turn == p.turn {
		p.out.take(e)
	}
}

// conclude prints the result and returns the exit code.
func (p *printing) conclude() int {
	r := p.out.result
	if r.Outcome == belay.Completed && p.c.FailOnDenied && len(r.Denials) > 0 {
		r.Exit = belay.ExitDenied
	}
	switch {
	case p.a.JSON:
	case p.c.OutputFormat == "text":
		if r.Result != "" {
			fmt.Fprintln(p.a.Out, block.Text(r.Result))
		}
	default:
		p.a.PrintJSON(r)
	}
	if len(r.Denials) > 0 && p.c.OutputFormat == "text" {
		fmt.Fprintf(p.a.Err, "%s\n", term.Line(r.denied()))
	}
	if r.Exit != belay.ExitOK && p.c.OutputFormat == "text" {
		fmt.Fprintf(p.a.Err, "%s\ncontinue with: belay -p -r %s%s TEXT\n", r.why(), p.session, p.a.StoreFlag)
	}
	return r.Exit
}

// watchSignals interrupts the turn at the first interrupt, and leaves at the second or
// when the process is asked to end. The function that it returns ends that.
func (p *printing) watchSignals(ctx context.Context, leave context.CancelFunc) func() {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for interrupted := false; ; interrupted = true {
			select {
			case <-done:
				return
			case sig := <-p.a.Signals:
				if sig == syscall.SIGTERM || interrupted || !p.interrupt(ctx, sig) {
					p.mu.Lock()
					p.left = true
					p.mu.Unlock()
					leave()
					return
				}
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func (p *printing) interrupt(ctx context.Context, sig os.Signal) bool {
	return p.runtime.Do(ctx, "interrupt_turn", map[string]any{"sessionId": p.session, "reason": "interrupted at the terminal (" + sig.String() + ")"}, nil) == nil
}

func (p *printing) wasLeft() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}
