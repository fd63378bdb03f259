package host

import (
	procs "runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestConcurrentReadsShareAnAnswer: of those who ask while another question is
// looked up, one looks for all; who asks while that continues gets a newer answer.
func TestConcurrentReadsShareAnAnswer(t *testing.T) {
	var tg together[int64]
	var lock sync.Mutex
	var looked atomic.Int64
	begun, let := make(chan struct{}, 2), make(chan struct{})
	look := func() (int64, error) {
		n := looked.Add(1)
		begun <- struct{}{}
		<-let
		return n, nil
	}
	var wg sync.WaitGroup
	ask := func(want int64) {
		wg.Go(func() {
			if got, err := tg.ask(&lock, "key", look); got != want || err != nil {
				t.Errorf("got answer %d %v, want %d", got, err, want)
			}
		})
	}
	ask(1)
	<-begun // what it looks at may be old for who comes now
	const many = 50
	for range many {
		ask(2)
	}
	for {
		tg.mu.Lock()
		q := tg.next["key"]
		all := q != nil && q.askers == many
		tg.mu.Unlock()
		if all {
			break
		}
		procs.Gosched()
	}
	close(let)
	wg.Wait()
	if n := looked.Load(); n != 2 {
		t.Errorf("looked %d times for %d askers, want twice", n, many+1)
	}
}
