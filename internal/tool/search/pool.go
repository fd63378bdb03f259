//go:build unix

package search

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"sync"

	"github.com/belay-run/belay/internal/workspace/fswalk"
)

const (
	maxWidth = 8  // files that are searched at once
	perJob   = 16 // files that go from hand to hand together
)

// job is some files in a row, and what came of them.
type job struct {
	files   []fswalk.Entry
	results []result
	done    chan struct{}
}

// tree searches the files of a tree, several at once, and gives the results to
// take in the order of the walk. It stops when take says so, and returns when
// all it started has ended.
func tree(ctx context.Context, o order, files func(visit func(fswalk.Entry) error) (fswalk.Report, error), width int, take func(result) bool) (fswalk.Report, error) {
	ctx, stop := context.WithCancel(ctx)
	width = max(1, min(width, maxWidth))
	work, inOrder := make(chan *job), make(chan *job, 2*width)
	var report fswalk.Report
	var walked error
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		defer close(inOrder)
		defer close(work)
		report, walked = distribute(ctx, files, work, inOrder)
	})
	for range width {
		wg.Go(func() {
			s := newScanner(o)
			for j := range work {
				j.run(ctx, s)
			}
		})
	}
	more := true
	for j := range inOrder {
		<-j.done
		for _, r := range j.results {
			if more && !take(r) {
				more = false
				stop()
			}
		}
	}
	if !more {
		walked = nil
	}
	return report, walked
}

// defaultWidth is how many files are searched at once on this machine.
func defaultWidth() int { return runtime.GOMAXPROCS(0) }

// distribute cuts a walk into jobs and hands each on twice: to a free worker, and to
// the line in which results are taken.
func distribute(ctx context.Context, files func(func(fswalk.Entry) error) (fswalk.Report, error), work, inOrder chan<- *job) (fswalk.Report, error) {
	j := newJob()
	give := func() error {
		next := j
		j = newJob()
		select {
		case inOrder <- next:
		case <-ctx.Done():
			next.release()
			return ctx.Err()
		}
		work <- next // those who take it end only when the line is closed
		return nil
	}
	r, err := files(func(e fswalk.Entry) error {
		e.Hold()
		if j.files = append(j.files, e); len(j.files) < perJob {
			return nil
		}
		return give()
	})
	if err == nil && len(j.files) > 0 {
		return r, give()
	}
	j.release()
	return r, err
}

func newJob() *job {
	return &job{files: make([]fswalk.Entry, 0, perJob), done: make(chan struct{})}
}

func (j *job) release() {
	for _, e := range j.files {
		e.Release()
	}
}

// run searches the files; a job that was abandoned only gives them back.
func (j *job) run(ctx context.Context, s *scanner) {
	defer close(j.done)
	defer j.release()
	for _, e := range j.files {
		if ctx.Err() != nil {
			return
		}
		r := s.file(e)
		if errors.Is(r.err, fs.ErrNotExist) || errors.Is(r.err, fswalk.ErrNotRegular) {
			continue // it was gone before it was looked at
		}
		j.results = append(j.results, r)
	}
}
