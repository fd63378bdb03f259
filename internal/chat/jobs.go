package chat

import (
	"context"
	"sync"
)

// jobs are what is done beside the conversation: requests that may take time, and the
// session that is followed.
type jobs struct {
	ctx   context.Context
	stop  context.CancelFunc
	guard func() // deferred by each
	wg    sync.WaitGroup
	open  int         // of those that start began, as the conversation knows
	done  chan func() // what the conversation does with a job's result
}

func newJobs(ctx context.Context, guard func()) *jobs {
	j := &jobs{guard: guard, done: make(chan func())}
	j.ctx, j.stop = context.WithCancel(ctx)
	return j
}

// start does something beside the conversation. What it returns is done by the
// conversation; nil is nothing.
func (j *jobs) start(f func(ctx context.Context) (then func())) {
	j.open++
	j.keep(func() {
		then := f(j.ctx)
		select {
		case j.done <- func() {
			if j.open--; then != nil {
				then()
			}
		}:
		case <-j.ctx.Done():
		}
	})
}

// keep does something beside the conversation for as long as it takes.
func (j *jobs) keep(f func()) {
	j.wg.Go(func() {
		defer j.guard()
		f()
	})
}

// close ends what is being done, and waits.
func (j *jobs) close() {
	j.stop()
	j.wg.Wait()
}
