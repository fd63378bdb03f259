package effect

import (
	"fmt"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/engine"
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
// is longer than their context, and only the size that they report tells it. What may be
// no size is only told: a model that calls tools has read them.
func (a *answer) cutInput(run *engine.Run) error {
	read, cut := a.usage.Input, a.eff.Cut
	if !a.usage.Reported || read >= cut.Below || read < cut.From && (cut.Doubted == 0 || read < cut.Doubted || len(a.calls) > 0) {
		return nil
	}
	said := fmt.Sprintf("%s says that it read %d of about %d tokens", a.settings.Model, read, a.eff.Tokens)
	run.Record(core.Fact{IDs: a.eff.IDs, Data: event.RuntimeWarning{Code: codeContextCut, Message: said +
		": its server may leave out what is longer than the context it is set to. Set a larger one there (num_ctx of Ollama, --ctx-size of llama.cpp)"}})
	if read < cut.From {
		return nil
	}
	return &model.Error{Class: "overflow", Code: codeContextCut, Limit: read, Message: said}
}
