package effect

import (
	"fmt"

	"github.com/belay-run/belay/internal/model"
)

// CodeContextExceeded is the code of a request that wasn't sent, because it is
// larger than what its model reads.
const CodeContextExceeded = "CONTEXT_EXCEEDED"

// codeContextCut is the code of an answer to less than what was sent.
const codeContextCut = "CONTEXT_CUT"

// fits refuses a request that is larger than what its model is known to read: it
// would be cut or refused, and be paid for. Only one that is estimated to be is
// counted, which takes its vocabulary and its time.
func (v *performer) fits(a *answer, r model.Request) error {
	most := a.eff.Context
	if most <= 0 || a.eff.Tokens <= most || v.e.c.Counts == nil {
		return nil
	}
	n := v.e.c.Counts(a.settings).Request(r)
	if n <= most {
		return nil
	}
	return &model.Error{Class: "overflow", Code: CodeContextExceeded,
		Message: fmt.Sprintf("the request has about %d tokens and %s reads %d; it was not sent", n, a.settings.Model, most)}
}

// cutInput refuses an answer to a part of what was sent: some servers leave out what
// is longer than their context, and only the size that they report tells it.
func (a *answer) cutInput() error {
	read, from := a.usage.Input, a.eff.Cut.From
	if len(a.calls) > 0 {
		from = a.eff.Cut.Called
	}
	if !a.usage.Reported || read < from || read >= a.eff.Cut.Below {
		return nil
	}
	return &model.Error{Class: "overflow", Code: codeContextCut, Limit: read, Message: fmt.Sprintf(
		"%s read %d of about %d tokens: its server leaves out what is longer than the context it is set to, without saying so. Set a larger one there (num_ctx of Ollama, --ctx-size of llama.cpp)", a.settings.Model, read, a.eff.Tokens)}
}
