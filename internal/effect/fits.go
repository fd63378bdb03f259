package effect

import (
	"fmt"

	"github.com/belay-run/belay/internal/model"
)

// CodeContextExceeded is the code of a request that wasn't sent, because it is
// larger than what its model reads.
const CodeContextExceeded = "CONTEXT_EXCEEDED"

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
