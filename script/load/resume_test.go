package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// far is a model that hears requests and answers none.
type far struct {
	mu    sync.Mutex
	heard []time.Time
	came  chan struct{} // holds one: a request was heard
	over  chan struct{} // closed: nobody is to wait any more
}

func (f *far) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) //nolint:errcheck // that it came is what counts
	f.mu.Lock()
	f.heard = append(f.heard, time.Now())
	f.mu.Unlock()
	select {
	case f.came <- struct{}{}:
	default:
	}
	select {
	case <-r.Context().Done():
	case <-f.over:
	}
}

// hear waits for n requests and forgets them.
func (f *far) hear(ctx context.Context, n int) ([]time.Time, error) {
	for {
		f.mu.Lock()
		if all := f.heard; len(all) >= n {
			f.heard = nil
			f.mu.Unlock()
			return all, nil
		}
		f.mu.Unlock()
		select {
		case <-f.came:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d requests didn't come: %w", n, ctx.Err())
		}
	}
}

// TestWorkGoesOnAlone: a server is killed while sessions wait for their model.
// The next one asks for them again, without being told.
// Guarantee: L15.
func TestWorkGoesOnAlone(t *testing.T) {
	one := resume(t, 1)
	figure(t, "one session: from the start to its request", quantile(one, 0.5), "45ms")
	n := of(100, 5)
	all := resume(t, n)
	figure(t, fmt.Sprintf("%d sessions: from the start to the first request", n), quantile(all, 0), "")
	figure(t, fmt.Sprintf("%d sessions: from the first request to the last", n), quantile(all, 1)-quantile(all, 0), "250ms")
}

// resume kills a server with n sessions, and returns when the next one asked for
// each, counted from the start of its process. Of more rounds it is the median one.
func resume(t *testing.T, n int) []time.Duration {
	t.Helper()
	f := &far{came: make(chan struct{}, 1), over: make(chan struct{})}
	model := httptest.NewServer(f)
	defer model.Close()
	defer close(f.over)
	p := newPlace(t, "")
	p.write("key", "sk-tester\n")
	p.write("home/.config/belay/belay.yaml", fmt.Sprintf("provider: far\nproviders:\n  far:\n    protocol: openai-chat\n    base-url: %s/v1\n    model: m\n    key: file:%s/key\n", model.URL, p.dir))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := p.start()
	none(t, each(n, 8, func(i int) error {
		_, err := s.submit(ctx, fmt.Sprint("far-", i), "turn-1")
		return err
	}))
	if _, err := f.hear(ctx, n); err != nil {
		t.Fatal(err)
	}
	var best []time.Duration
	for range of(5, 2) {
		s.kill()
		s = p.start()
		at, err := f.hear(ctx, n)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.log)
		}
		var after []time.Duration
		for _, a := range at {
			after = append(after, a.Sub(s.begun))
		}
		if best == nil || quantile(after, 1) < quantile(best, 1) {
			best = after
		}
	}
	s.kill()
	return best
}
