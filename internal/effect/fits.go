package effect

import (
	"fmt"

	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/tokens"
)

// CodeContextExceeded is the code of a request that wasn't sent, because it is
// larger than what its model reads.
const CodeContextExceeded = "CONTEXT_EXCEEDED"

// nearly is the part of a context, in percent, from which a rough count isn't
// enough: then the vocabulary is worth loading.
const nearly = 60

// fits counts a request and refuses one that is larger than what its model is
// known to read: it would be cut or refused, and be paid for.
func (v *performer) fits(a *answer, c *history.Conversation, r model.Request) error {
	most := a.eff.Context
	if most <= 0 || v.e.c.Counts == nil {
		return nil
	}
	p := v.e.c.Counts(a.settings)
	count := c.Estimator(p, &v.e.corrections)
	a.estimate = count.Estimate(r)
	if !a.estimate.Exact && a.estimate.Input > most/100*nearly {
		tokens.Load(p.Vocabulary)
		a.estimate = count.Estimate(r)
	}
	if a.estimate.Input <= most {
		return nil
	}
	return &model.Error{Class: "overflow", Code: CodeContextExceeded,
		Message: fmt.Sprintf("the request has about %d tokens and %s reads %d; it was not sent", a.estimate.Input, a.settings.Model, most)}
}
