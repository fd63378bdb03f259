package wire

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// Limits are what a provider is asked for at most. Zero is none.
type Limits struct {
	Requests   int           // a minute
	Tokens     int           // a minute, read and written
	Concurrent int           // at once
	Total      time.Duration // of one request, from its start to the end of the answer; 0 is half an hour
}

// defaultTotal bounds a request whose limits don't.
const defaultTotal = 30 * time.Minute

// Account is the unit that limits and failures count for: requests to the same
// address with the same key are held back together, and no others are. Two
// workspaces may well mean different servers by one name.
type Account struct {
	Provider   string   // its name, for messages
	Endpoint   string   // where requests go
	Credential [32]byte // tells keys apart: a digest, never the key
}

// served is a model of an account.
type served struct {
	Account
	model string
}

// Gateway stands between the runtime and the providers of a process: it holds back
// what a provider can't take now, and gives up what takes too long. It repeats
// nothing: a retry is a decision of the thread and a fact, and so is a fallback to
// another model.
//
// It promises, for all sessions of the process together: a model that keeps
// failing is left alone for a while, retries stay a part of all requests, no
// more requests than the limits allow are out, and a request that waits or
// streams ends with its context. The zero value isn't usable: NewGateway.
type Gateway struct {
	now func() time.Time

	mu       sync.Mutex
	lines    map[Account]*line
	circuits map[served]*circuit
	budget   budget
}

// NewGateway is a gateway; now is the clock.
func NewGateway(now func() time.Time) *Gateway {
	return &Gateway{now: now, lines: map[Account]*line{}, circuits: map[served]*circuit{}, budget: newBudget()}
}

// Wrap puts the gateway before a provider. Providers of one account share its
// limits and circuits; the limits that were given last count.
func (g *Gateway) Wrap(of Account, p model.Provider, l Limits) model.Provider {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lines[of] == nil {
		g.lines[of] = newLine()
	}
	g.lines[of].limit(l)
	return &guarded{Provider: p, g: g, of: of, line: g.lines[of], total: l.Total}
}

// circuit is the one of an account's model.
func (g *Gateway) circuit(key served) *circuit {
	if g.circuits[key] == nil {
		g.circuits[key] = &circuit{}
	}
	return g.circuits[key]
}

// guarded is a provider behind the gateway.
type guarded struct {
	model.Provider
	g     *Gateway
	of    Account
	line  *line
	total time.Duration
}

// Abilities are the provider's.
func (p *guarded) Abilities(name string) model.Abilities {
	return model.AbilitiesOf(p.Provider, name)
}

// Stream sends the request when its turn comes.
func (p *guarded) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		total := p.total
		if total <= 0 {
			total = defaultTotal
		}
		in, cancel := context.WithTimeoutCause(ctx, total, errTotal)
		defer cancel()
		if err := p.enter(in, r); err != nil {
			yield(model.Chunk{}, p.meaning(ctx, in, err, total))
			return
		}
		w := &watch{p: p, key: served{p.of, r.Model}}
		defer w.over()
		for c, err := range p.Provider.Stream(in, r) {
			if err != nil {
				err = p.meaning(ctx, in, err, total)
			}
			w.saw(ctx, c, err)
			if !yield(c, err) || err != nil {
				return
			}
		}
		if in.Err() != nil {
			err := p.meaning(ctx, in, context.Cause(in), total)
			w.saw(ctx, model.Chunk{}, err)
			yield(model.Chunk{}, err)
		}
	}
}

var errTotal = errors.New("the answer took too long")

// meaning is an error as the thread reads it: the gateway's own deadline is a
// failure of the provider, the caller's end isn't.
func (p *guarded) meaning(ctx, in context.Context, err error, total time.Duration) error {
	if ctx.Err() == nil && errors.Is(context.Cause(in), errTotal) {
		return &model.Error{Class: "transient", Code: "TOO_LONG", Message: fmt.Sprintf("%s: the answer took longer than %s", p.of.Provider, total)}
	}
	return err
}

// enter waits until the request may leave, or returns why it may not.
func (p *guarded) enter(ctx context.Context, r model.Request) error {
	if err := p.admit(r); err != nil {
		return err
	}
	if err := p.line.enter(ctx, p.g.now); err != nil {
		p.g.mu.Lock()
		defer p.g.mu.Unlock()
		p.g.circuit(served{p.of, r.Model}).gaveBack()
		return err
	}
	return nil
}

// admit asks circuit and retry budget.
func (p *guarded) admit(r model.Request) error {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	now := p.g.now()
	if !p.g.budget.take(r.Failures) {
		return &model.Error{Class: "transient", Code: "RETRY_BUDGET", RetryAfter: budgetWait,
			Message: fmt.Sprintf("%s: too much of what this process asks is a retry; it waits %s", p.of.Provider, budgetWait)}
	}
	if wait := p.g.circuit(served{p.of, r.Model}).try(now); wait > 0 {
		return &model.Error{Class: "transient", Code: "CIRCUIT_OPEN", RetryAfter: wait,
			Message: fmt.Sprintf("%s: %s failed %d times in a row and is left alone for %s", p.of.Provider, r.Model, circuitAt, wait.Round(time.Second))}
	}
	return nil
}

// watch notes how a request ends.
type watch struct {
	p     *guarded
	key   served
	usage belay.Usage
	done  bool // how it ended is known
}

// saw notes a chunk or the end. A consumer that leaves, and a context that
// ended, say nothing about the provider.
func (w *watch) saw(ctx context.Context, c model.Chunk, err error) {
	if c.Usage != nil {
		w.usage = *c.Usage
	}
	if c.Stop == "" && err == nil || ctx.Err() != nil {
		return
	}
	w.done = true
	g := w.p.g
	g.mu.Lock()
	defer g.mu.Unlock()
	switch circuit := g.circuit(w.key); {
	case err == nil:
		circuit.worked()
		g.budget.earn()
	case broken(err):
		circuit.failed(g.now())
	default: // it answered, if not as wished
		circuit.worked()
	}
}

// over frees the request's place.
func (w *watch) over() {
	if !w.done {
		w.p.g.mu.Lock()
		w.p.g.circuit(w.key).gaveBack()
		w.p.g.mu.Unlock()
	}
	w.p.line.leave(w.p.g.now(), w.usage.Input+w.usage.Output)
}

// broken reports whether a failure means that the provider doesn't work.
func broken(err error) bool {
	e := model.AsError(err)
	return e.Class == "transient" || e.Class == "internal"
}
