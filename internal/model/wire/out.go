package wire

import "github.com/belay-run/belay/internal/model"

// Out hands the chunks of an answer to its reader, until an error was handed over
// or the reader left.
type Out struct {
	Yield func(model.Chunk, error) bool
	Over  bool // nothing more is handed over
}

// Say hands a chunk over, and tells whether more may follow.
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
