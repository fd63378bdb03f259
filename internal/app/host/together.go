package host

import (
	procs "runtime"
	"sync"
)

// together lets those who ask the same thing at the same moment share one
// answer, which was looked up after all of them had asked: so it is as fresh for
// each as one of its own. One question at a time is looked up. The zero value is
// ready.
type together[V any] struct {
	mu   sync.Mutex
	next map[string]*question[V] // asked, and not looked up yet
}

// question is what several ask.
type question[V any] struct {
	askers int
	done   chan struct{} // closed when there is an answer
	v      V
	err    error
}

// ask returns what look says under a lock, for this asker or for one with the
// same key who came a little earlier. What it returns is shared: read only.
func (t *together[V]) ask(lock sync.Locker, key string, look func() (V, error)) (V, error) {
	t.mu.Lock()
	if q := t.next[key]; q != nil {
		q.askers++
		t.mu.Unlock()
		<-q.done
		return q.v, q.err
	}
	if t.next == nil {
		t.next = map[string]*question[V]{}
	}
	q := &question[V]{askers: 1, done: make(chan struct{})}
	t.next[key] = q
	t.mu.Unlock()
	defer close(q.done)
	procs.Gosched() // those who are about to ask come along
	lock.Lock()
	defer lock.Unlock()
	t.mu.Lock()
	delete(t.next, key)
	t.mu.Unlock()
	q.v, q.err = look()
	return q.v, q.err
}
