package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/belay-run/belay/internal/lib/sse"
	"github.com/belay-run/belay/internal/model"
)

// maxEvent bounds one event of a stream, in bytes. Pictures come in one event.
const maxEvent = 32 << 20

// Out hands the chunks of an answer to its reader, until an error was handed over
// or the reader left.
type Out struct {
	End   *Endpoint
	Yield func(model.Chunk, error) bool
	Over  bool // nothing more is handed over
	Limit int  // bytes that may be held
	held  int
	ids   map[string]bool
}

// Say hands a chunk over, and reports whether more may follow.
func (o *Out) Say(c model.Chunk) bool {
	o.Over = o.Over || !o.Yield(c, nil)
	return !o.Over
}

// Fail hands over the error that ends the answer.
func (o *Out) Fail(err error) {
	if !o.Over {
		o.Over = true
		o.Yield(model.Chunk{}, err)
	}
}

// Broken is Fail for an answer that can't be used and may be good the next time.
func (o *Out) Broken(code, format string, args ...any) {
	o.Fail(&model.Error{Class: "transient", Code: code, Message: o.End.Clean(o.End.Name + ": " + strings.TrimSpace(fmt.Sprintf(format, args...)))})
}

// Cut is Fail for an answer whose stream ended too early: err is why, if it is known.
func (o *Out) Cut(err error) {
	if err != nil {
		o.Fail(err)
	}
	o.Broken("CUT", "the answer broke off")
}

// Hold counts bytes that are kept until the answer ends.
func (o *Out) Hold(n int) {
	if o.held += n; o.held > o.Limit {
		o.Fail(model.TooLarge("%s: the answer's calls, thoughts and pictures are too large", o.End.Name))
	}
}

// CallID is the id of the n-th call, from 1: its own, or one of ours where it has
// none or that of another.
func (o *Out) CallID(id string, n int) string {
	if id == "" || o.ids[id] {
		id = fmt.Sprintf("call_%d", n)
	}
	if o.ids == nil {
		o.ids = map[string]bool{}
	}
	o.ids[id] = true
	return id
}

// Decoder turns the events of an answer into chunks.
type Decoder[E any] interface {
	Take(e *E, data []byte) // an event; data is its text
	Finish(err error)       // the stream has ended: with an error, or as it should
}

// Stream sends a request with post when its result is ranged over, and gives the
// events of the answer to a decoder, which is made with where chunks go to.
func Stream[E any](ctx context.Context, r model.Request, post func(context.Context, model.Request) (*Answer, error), decoder func(*Out) Decoder[E]) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(model.Chunk{}, err)
			return
		}
		a, err := post(ctx, r)
		if err != nil {
			yield(model.Chunk{}, err)
			return
		}
		defer a.Close()
		out := &Out{End: a.e, Yield: yield}
		Decode(a.Body, out, decoder(out))
	}
}

// Decode gives the events of a stream to a decoder, up to its end, the event [DONE]
// that some end it with, or until nothing more is handed over.
func Decode[E any](r io.Reader, out *Out, d Decoder[E]) {
	events := sse.NewReader(r, maxEvent)
	for !out.Over {
		ev, err := events.Next()
		switch {
		case errors.Is(err, sse.ErrTooLong):
			err = model.TooLarge("the provider's stream has a message that is too large")
		case errors.Is(err, io.EOF):
			err = nil
		case err == nil && string(ev.Data) != "[DONE]":
			e := new(E)
			if json.Unmarshal(ev.Data, e) == nil {
				d.Take(e, ev.Data)
			} else {
				out.Broken("GARBAGE", "the answer has something in it that is no JSON: %.80q", out.End.Clean(string(ev.Data)))
			}
			continue
		}
		d.Finish(err)
		return
	}
}
