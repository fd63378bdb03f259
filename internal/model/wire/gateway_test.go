package wire

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// far is a provider that answers as it is told, after a while.
type far struct {
	mu    sync.Mutex
	takes time.Duration
	says  func(r model.Request) error // nil: it answers
	used  int64                       // tokens of an answer
	out   int
	most  int         // at once
	heard []time.Time // when requests came
	order []string
}

func (f *far) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		f.mu.Lock()
		f.out++
		f.most = max(f.most, f.out)
		f.heard = append(f.heard, time.Now())
		f.order = append(f.order, r.Key)
		says := f.says
		f.mu.Unlock()
		defer func() { f.mu.Lock(); f.out--; f.mu.Unlock() }()
		select {
		case <-time.After(f.takes):
		case <-ctx.Done():
			yield(model.Chunk{}, context.Cause(ctx))
			return
		}
		if says != nil {
			if err := says(r); err != nil {
				yield(model.Chunk{}, err)
				return
			}
		}
		yield(model.Chunk{Usage: &belay.Usage{Input: f.used, Reported: true}, Stop: "stop"}, nil)
	}
}

func (f *far) calls() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.heard) }

var down = &model.Error{Class: "transient", Message: "down"}

// ask makes one request and returns its error.
func ask(ctx context.Context, p model.Provider, r model.Request) (err error) {
	for _, e := range p.Stream(ctx, r) {
		err = e
	}
	return err
}

func code(err error) string { return model.AsError(err).Code }

// TestAnAccountThatFailsHoldsNoOtherBack: what two workspaces call by one name may
// be two servers, or one with two keys. Neither waits for the other's failures or
// limits, and a provider made anew for the same account finds what there was.
// Guarantee: M21.
func TestAnAccountThatFailsHoldsNoOtherBack(t *testing.T) {
	one := Account{Provider: "corp", Endpoint: "https://one.example.org/v1", Credential: [32]byte{1}}
	place, key, name := one, one, one
	place.Endpoint, key.Credential, name.Provider = "https://two.example.org/v1", [32]byte{2}, "other"
	synctest.Test(t, func(t *testing.T) {
		g := NewGateway(time.Now)
		broken := g.Wrap(one, &far{says: func(model.Request) error { return down }}, Limits{Requests: 1})
		for range circuitAt {
			_ = ask(t.Context(), broken, model.Request{Model: "m"})
		}
		if err := ask(t.Context(), g.Wrap(one, &far{}, Limits{}), model.Request{Model: "m"}); code(err) != "CIRCUIT_OPEN" {
			t.Errorf("the same account, made anew: %v", err)
		}
		began := time.Now()
		for _, a := range []Account{place, key, name} {
			if err := ask(t.Context(), g.Wrap(a, &far{}, Limits{Requests: 1}), model.Request{Model: "m"}); err != nil {
				t.Errorf("%+v is left alone for another's failures: %v", a, err)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("others' limits held them back for %s", waited)
		}
	})
}

// Guarantee: M21.
func TestAModelThatKeepsFailingIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{says: func(r model.Request) error {
			if r.Model == "bad" {
				return down
			}
			return nil
		}}
		p := NewGateway(time.Now).Wrap(Account{Provider: "far"}, f, Limits{})
		for range circuitAt {
			if err := ask(t.Context(), p, model.Request{Model: "bad"}); code(err) != "" {
				t.Fatal(err)
			}
		}
		err := ask(t.Context(), p, model.Request{Model: "bad"})
		if e := model.AsError(err); e.Code != "CIRCUIT_OPEN" || e.RetryAfter != circuitRest || !e.Retryable() || f.calls() != circuitAt {
			t.Fatalf("%v after %d calls", err, f.calls())
		}
		if err := ask(t.Context(), p, model.Request{Model: "good"}); err != nil {
			t.Errorf("another model of the provider: %v", err)
		}
		time.Sleep(circuitRest)
		before := f.calls()
		for range 3 { // one tries, and fails; the others aren't sent
			_ = ask(t.Context(), p, model.Request{Model: "bad"})
		}
		if f.calls() != before+1 {
			t.Errorf("%d requests left to see whether it works", f.calls()-before)
		}
		time.Sleep(circuitRest + time.Second) // it rests twice as long now
		if err := ask(t.Context(), p, model.Request{Model: "bad"}); code(err) != "CIRCUIT_OPEN" {
			t.Errorf("after a failed try: %v", err)
		}
		time.Sleep(circuitRest)
		f.says = nil
		for range 3 {
			if err := ask(t.Context(), p, model.Request{Model: "bad"}); err != nil {
				t.Errorf("it works again: %v", err)
			}
		}
	})
}

// What a provider answers, if not as wished, and what a consumer stops, tells
// nothing about whether it works.
func TestWhatIsNoFaultOpensNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, class := range []string{"rate_limited", "overflow", "bad_request", "auth", "refused"} {
			f := &far{says: func(model.Request) error { return &model.Error{Class: class, Message: class} }}
			p := NewGateway(time.Now).Wrap(Account{Provider: "far"}, f, Limits{})
			for range 3 * circuitAt {
				if err := ask(t.Context(), p, model.Request{}); model.AsError(err).Class != class {
					t.Errorf("%s became %v", class, err)
				}
			}
		}
		f := &far{takes: time.Hour, says: func(model.Request) error { return down }}
		p := NewGateway(time.Now).Wrap(Account{Provider: "far"}, f, Limits{})
		for range 3 * circuitAt {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := ask(ctx, p, model.Request{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a request that was stopped ended with %v", err)
			}
			cancel()
		}
	})
}

// Guarantee: M21.
func TestRetriesStayAPartOfAllRequests(t *testing.T) {
	f := &far{says: func(r model.Request) error { return &model.Error{Class: "rate_limited", Message: "no"} }}
	p := NewGateway(time.Now).Wrap(Account{Provider: "far"}, f, Limits{})
	refused := 0
	for range 200 {
		if code(ask(t.Context(), p, model.Request{Failures: 1})) == "RETRY_BUDGET" {
			refused++
		}
	}
	if sent := f.calls(); sent < budgetFirst || sent > budgetFirst+40 || refused != 200-sent {
		t.Errorf("%d retries were sent, %d held back", sent, refused)
	}
	if err := ask(t.Context(), p, model.Request{}); code(err) != "" {
		t.Errorf("a first request is held back: %v", err)
	}
}

// Guarantee: M22.
func TestNoMoreThanTheLimitsAllowIsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: time.Second}
		g := NewGateway(time.Now)
		a, b := g.Wrap(Account{Provider: "far"}, f, Limits{Concurrent: 3}), g.Wrap(Account{Provider: "far"}, f, Limits{Concurrent: 3})
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				p := a
				if i%2 == 0 {
					p = b
				}
				if err := ask(t.Context(), p, model.Request{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if f.most != 3 || f.calls() != 30 {
			t.Errorf("%d at once, %d in all", f.most, f.calls())
		}
	})
}

// Guarantee: M22.
func TestRequestsWaitInOrderAndKeepToTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{}
		p := NewGateway(time.Now).Wrap(Account{Provider: "far"}, f, Limits{Requests: 60})
		var wg sync.WaitGroup
		for i := range 120 {
			wg.Go(func() {
				if err := ask(t.Context(), p, model.Request{Key: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		began := time.Now()
		wg.Wait()
		if took := time.Since(began); took < 59*time.Second || took > 61*time.Second {
			t.Errorf("120 requests at 60 a minute took %s", took)
		}
		for i, k := range f.order {
			if k != fmt.Sprint(i) {
				t.Fatalf("request %s was sent as the %dth", k, i)
			}
		}
	})
}

func TestTokensAreADebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{used: 3000}
		p := NewGateway(time.Now).Wrap(Account{Provider: "far"}, f, Limits{Tokens: 1000})
		began := time.Now()
		for range 2 {
			if err := ask(t.Context(), p, model.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 119*time.Second || took > 121*time.Second {
			t.Errorf("after 2000 tokens too many the next request left after %s", took)
		}
	})
}

// Guarantee: M22.
func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: time.Minute}
		p := NewGateway(time.Now).Wrap(Account{Provider: "far"}, f, Limits{Concurrent: 1})
		var wg sync.WaitGroup
		wg.Go(func() { _ = ask(t.Context(), p, model.Request{Key: "first"}) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := ask(ctx, p, model.Request{Key: "gone"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := ask(t.Context(), p, model.Request{Key: "third"}); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if fmt.Sprint(f.order) != "[first third]" {
			t.Errorf("sent: %v", f.order)
		}
	})
}

// Guarantee: M22.
func TestAnAnswerThatTakesTooLongIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{takes: time.Hour}
		p := NewGateway(time.Now).Wrap(Account{Provider: "far"}, f, Limits{Total: time.Minute})
		for range circuitAt {
			if err := ask(t.Context(), p, model.Request{}); code(err) != "TOO_LONG" {
				t.Fatal(err)
			}
		}
		if err := ask(t.Context(), p, model.Request{}); code(err) != "CIRCUIT_OPEN" {
			t.Error(err)
		}
	})
}
