package eval

import (
	"context"
	"sync"
)

// All plays scenarios, some at the same time, and gives each result as it comes;
// done is called by one goroutine at a time. When ctx ends, what is being played
// is stopped and its result isn't given.
func (p Player) All(ctx context.Context, all []*Scenario, parallel int, done func(Result)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *Scenario)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	for range min(max(parallel, 1), len(all)) {
		wg.Go(func() {
			for s := range next {
				r, err := p.Play(ctx, s)
				mu.Lock()
				if err == nil {
					done(r)
				} else {
					if first == nil {
						first = err
					}
					cancel(err)
				}
				mu.Unlock()
			}
		})
	}
feed:
	for _, s := range all {
		select {
		case next <- s:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	if first == nil && ctx.Err() != nil {
		first = context.Cause(ctx)
	}
	return first
}

// Tally is how many scenarios passed and failed.
type Tally struct {
	Total  int `json:"total"`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

func (t *Tally) add(r Result) {
	t.Total++
	if r.Passed() {
		t.Passed++
	} else {
		t.Failed++
	}
}

// Summary is the outcome of all scenarios.
type Summary struct {
	Tally
	MS         int64             `json:"ms"`
	Categories map[string]*Tally `json:"categories"`
}

// Add takes a result.
func (s *Summary) Add(r Result) {
	if s.Categories == nil {
		s.Categories = map[string]*Tally{}
	}
	c := s.Categories[r.Scenario.Category]
	if c == nil {
		c = &Tally{}
		s.Categories[r.Scenario.Category] = c
	}
	s.add(r)
	c.add(r)
}

// Line is a result for a program.
type Line struct {
	ID        string   `json:"id"`
	Status    string   `json:"status"` // pass, fail
	Category  string   `json:"category"`
	MS        int64    `json:"ms"`
	Failures  []string `json:"failures"`
	File      string   `json:"file"`
	Workspace string   `json:"workspace,omitempty"` // when they were kept
	Store     string   `json:"store,omitempty"`
}

// Line is the result for a program.
func (r Result) Line() Line {
	l := Line{ID: r.Scenario.ID, Status: r.Status(), Category: r.Scenario.Category, MS: r.Took.Milliseconds(), Failures: r.Failures, File: r.Scenario.place()}
	if l.Failures == nil {
		l.Failures = []string{}
	}
	if r.Kept != nil {
		l.Workspace, l.Store = r.Kept.Workspace, r.Kept.Store
	}
	return l
}

// Status is pass or fail.
func (r Result) Status() string {
	if r.Passed() {
		return "pass"
	}
	return "fail"
}
