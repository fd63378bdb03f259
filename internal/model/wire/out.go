package wire

import (
	"context"
	"iter"

	"github.com/belay-run/belay/internal/model"
)

// Out hands the chunks of an answer to its reader, until an error was handed over
// or the reader left.
type Out struct {
	Yield func(model.Chunk, error) bool
	Over  bool // nothing more is handed over
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

// Stream sends a request with post when its result is ranged over, and lets read
// turn the answer into events.
func Stream(ctx context.Context, r model.Request, post func(context.Context, model.Request) (*Answer, error), read func(*Answer, Out)) iter.Seq2[model.Chunk, error] {
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
		read(a, Out{Yield: yield})
	}
}
