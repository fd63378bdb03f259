package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// law is one promise of model.Provider. check returns how it is broken, so
// that the laws themselves can be tried on providers that break them.
type law struct {
	name  string
	check func(t *testing.T, c Config) error
}

var laws = []law{
	{"the chunks are the text, in order", wholeText},
	{"reasoning comes as reasoning", reasoningApart},
	{"the last chunk has the stop, and no other", oneStop},
	{"a call comes whole, as the model wrote it", wholeCalls},
	{"usage comes once, or not at all", oneUsage},
	{"a failure has its class and is the end", classedFailure},
	{"a wait the far end asks for is handed on", retryAfter},
	{"text before a failure is not lost", textBeforeFailure},
	{"a stream cut off never looks finished", cutOff},
	{"a consumer that leaves ends the stream", leaving},
	{"an ended context ends a stream that hangs", cancelHanging},
	{"an ended context gets no answer", cancelledBefore},
	{"the same request gets the same answer", sameAnswer},
	{"streams don't mix", together},
	{"a request is only read", readOnly},
}

// long is a text in several pieces, with characters of several bytes.
var long = Scene{Text: "Überall ist es besser, wo wir nicht sind — 今 we look around: ещё раз.", Parts: 7, Stop: "stop"}

func wholeText(t *testing.T, c Config) error {
	p, r := c.Stage(t, long)
	h := listen(t.Context(), p, r)
	if h.err != nil || h.text() != long.Text {
		return fmt.Errorf("got %q and error %v, want %q", h.text(), h.err, long.Text)
	}
	return nil
}

func reasoningApart(t *testing.T, c Config) error {
	s := long
	s.Reasoning = "Die Frage ist — 今 — wohin."
	p, r := c.Stage(t, s)
	h := listen(t.Context(), p, r)
	got := ""
	for _, chunk := range h.chunks {
		got += chunk.Reasoning
	}
	if h.err != nil || got != s.Reasoning || h.text() != s.Text {
		return fmt.Errorf("the reasoning is %q, the text %q, the error %v, want %q and %q", got, h.text(), h.err, s.Reasoning, s.Text)
	}
	return nil
}

func oneStop(t *testing.T, c Config) error {
	for _, s := range []Scene{long, {Stop: "stop"}, {Text: "a", Stop: "length"}, {Calls: calls[:1], Stop: "tool_calls"}} {
		p, r := c.Stage(t, s)
		h := listen(t.Context(), p, r)
		if h.err != nil {
			return fmt.Errorf("%+v: %w", s, h.err)
		}
		if n := h.stops(); n != 1 {
			return fmt.Errorf("%+v: %d chunks have a stop", s, n)
		}
		if got := h.chunks[len(h.chunks)-1].Stop; got != s.Stop {
			return fmt.Errorf("%+v: the last chunk has stop %q", s, got)
		}
	}
	return nil
}

// calls are two good ones and one whose arguments broke off.
var calls = []model.Call{
	{Name: "read", Args: `{"path":"a.txt"}`},
	{Name: "exec", Args: `{"command":"echo '<&>' ü"}`},
	{Name: "write", Args: `{"path": "b.txt", "content": "un`},
}

// said are the calls that the far end can say.
func (c Config) said() []model.Call {
	if c.Objects {
		return calls[:2]
	}
	return calls
}

func wholeCalls(t *testing.T, c Config) error {
	calls := c.said()
	p, r := c.Stage(t, Scene{Text: "I look.", Calls: calls, Stop: "tool_calls"})
	h := listen(t.Context(), p, r)
	got := h.calls()
	if h.err != nil || len(got) != len(calls) {
		return fmt.Errorf("got %d calls and error %v, want %d", len(got), h.err, len(calls))
	}
	ids := map[string]bool{}
	for i, call := range got {
		if call.Name != calls[i].Name || call.Args != calls[i].Args {
			return fmt.Errorf("call %d is %s %s, want %s %s", i+1, call.Name, call.Args, calls[i].Name, calls[i].Args)
		}
		ids[call.ID] = true
	}
	if len(ids) != len(calls) || ids[""] {
		return fmt.Errorf("the calls' ids are %v, want %d different ones", ids, len(calls))
	}
	return nil
}

func oneUsage(t *testing.T, c Config) error {
	for _, want := range []*belay.Usage{nil, {Input: 120, Output: 7, Cached: 100, Reported: true}} {
		s := long
		s.Usage = want
		p, r := c.Stage(t, s)
		h := listen(t.Context(), p, r)
		var got []belay.Usage
		for _, chunk := range h.chunks {
			if chunk.Usage != nil {
				got = append(got, *chunk.Usage)
			}
		}
		switch {
		case h.err != nil:
			return h.err
		case want == nil && len(got) > 0:
			return fmt.Errorf("usage %+v was reported by nobody", got)
		case want != nil && (len(got) != 1 || got[0] != *want):
			return fmt.Errorf("usage is %+v, want %+v once", got, *want)
		}
	}
	return nil
}

func classedFailure(t *testing.T, c Config) error {
	classes := c.Fails
	if classes == nil {
		classes = Classes
	}
	for _, class := range classes {
		p, r := c.Stage(t, Scene{Fail: class})
		n, last := 0, error(nil)
		for chunk, err := range p.Stream(t.Context(), r) {
			if last != nil {
				return fmt.Errorf("%s: %+v, %v came after the error", class, chunk, err)
			}
			n, last = n+1, err
			if chunk.Stop != "" {
				return fmt.Errorf("%s: a failure has stop %q", class, chunk.Stop)
			}
		}
		e, ok := errors.AsType[*model.Error](last)
		if !ok || e.Class != class || e.Message == "" {
			return fmt.Errorf("%s: the stream ended after %d chunks with %#v", class, n, last)
		}
	}
	return nil
}

func retryAfter(t *testing.T, c Config) error {
	if c.Fails != nil && !slices.Contains(c.Fails, "rate_limited") {
		return nil
	}
	p, r := c.Stage(t, Scene{Fail: "rate_limited", RetryAfter: 7 * time.Second})
	h := listen(t.Context(), p, r)
	if e, ok := errors.AsType[*model.Error](h.err); !ok || e.RetryAfter != 7*time.Second {
		return fmt.Errorf("the error is %#v, want one that waits 7 s", h.err)
	}
	return nil
}

func textBeforeFailure(t *testing.T, c Config) error {
	p, r := c.Stage(t, Scene{Text: "half of", Parts: 2, Fail: "transient"})
	h := listen(t.Context(), p, r)
	if h.err == nil || h.text() != "half of" {
		return fmt.Errorf("got %q and error %v, want the text and an error", h.text(), h.err)
	}
	return nil
}

func cutOff(t *testing.T, c Config) error {
	p, r := c.Stage(t, Scene{Text: "half of", Parts: 2, Cut: true})
	h := listen(t.Context(), p, r)
	if h.stops() != 0 {
		return errors.New("a stream that broke off has a stop")
	}
	if h.err != nil && model.AsError(h.err).Class != "transient" {
		return fmt.Errorf("a stream that broke off is %v, want transient", h.err)
	}
	if h.text() != "half of" {
		return fmt.Errorf("got %q, want what came before the cut", h.text())
	}
	return nil
}

// leaving breaks the loop; a provider that yields once more panics, and one
// that leaves something running is found after the law.
func leaving(t *testing.T, c Config) error {
	for _, s := range []Scene{long, {Text: "half of", Parts: 2, Hang: true}} {
		p, r := c.Stage(t, s)
		var panicked any
		left := soon(c.Bound, func() {
			defer func() { panicked = recover() }()
			for range p.Stream(t.Context(), r) {
				break
			}
		})
		if !left {
			return fmt.Errorf("%+v: the stream goes on %s after its consumer left", s, c.Bound)
		}
		if panicked != nil {
			return fmt.Errorf("%+v: the consumer left: %v", s, panicked)
		}
	}
	return nil
}

func cancelHanging(t *testing.T, c Config) error {
	p, r := c.Stage(t, Scene{Text: "half of", Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var h heard
	ended := soon(c.Bound, func() {
		for chunk, err := range p.Stream(ctx, r) {
			if err != nil {
				h.err = err
				continue
			}
			h.chunks = append(h.chunks, chunk)
			cancel()
		}
	})
	switch {
	case !ended:
		return fmt.Errorf("the stream goes on %s after its context ended", c.Bound)
	case h.stops() != 0:
		return errors.New("a cancelled stream has a stop")
	case !errors.Is(h.err, context.Canceled):
		return fmt.Errorf("the stream ended with %v, want the context's error", h.err)
	}
	return nil
}

func cancelledBefore(t *testing.T, c Config) error {
	p, r := c.Stage(t, long)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := listen(ctx, p, r)
	if len(h.chunks) > 0 || !errors.Is(h.err, context.Canceled) {
		return fmt.Errorf("got %d chunks and error %v, want the context's error only", len(h.chunks), h.err)
	}
	return nil
}

func sameAnswer(t *testing.T, c Config) error {
	p, r := c.Stage(t, Scene{Text: "I look.", Calls: c.said(), Stop: "tool_calls"})
	first, second := listen(t.Context(), p, r), listen(t.Context(), p, r)
	if first.err != nil || second.err != nil {
		return fmt.Errorf("asking twice: %w", errors.Join(first.err, second.err))
	}
	same := func(a, b model.Call) bool { return a.Name == b.Name && a.Args == b.Args }
	if first.text() != second.text() || !slices.EqualFunc(first.calls(), second.calls(), same) {
		return fmt.Errorf("the answers differ: %+v and %+v", first, second)
	}
	return nil
}

func together(t *testing.T, c Config) error {
	p, r := c.Stage(t, long)
	var wg sync.WaitGroup
	got := make([]heard, 8)
	for i := range got {
		wg.Go(func() { got[i] = listen(t.Context(), p, r) })
	}
	wg.Wait()
	for _, h := range got {
		if h.err != nil || h.text() != long.Text {
			return fmt.Errorf("beside others a stream says %q and error %v", h.text(), h.err)
		}
	}
	return nil
}

func readOnly(t *testing.T, c Config) error {
	p, r := c.Stage(t, Scene{Text: "I look.", Calls: c.said(), Stop: "tool_calls"})
	before, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if h := listen(t.Context(), p, r); h.err != nil {
		return h.err
	}
	after, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if string(before) != string(after) {
		return fmt.Errorf("the request was %s and is %s", before, after)
	}
	return nil
}
