// Package keyed has locks by key. Who waits for one gives up with its context, so what hangs
// while it has a lock holds up what has the same key, and that no longer than it likes.
package keyed

import (
	"context"
	"sync"
)

// Mutexes are locks by key. The zero value is ready.
type Mutexes struct {
	mu   sync.Mutex
	made map[string]*mutex
}

type mutex struct {
	held  chan struct{} // has a token while it is locked
	users int           // who has it or waits for it
}

// Lock locks a key. The error is why the context ended.
func (m *Mutexes) Lock(ctx context.Context, key string) (unlock func(), err error) {
	x := m.join(key)
	select {
	case x.held <- struct{}{}:
		return func() {
			<-x.held
			m.leave(key, x)
		}, nil
	case <-ctx.Done():
		m.leave(key, x)
		return nil, context.Cause(ctx)
	}
}

func (m *Mutexes) join(key string) *mutex {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.made[key]
	if x == nil {
		if m.made == nil {
			m.made = map[string]*mutex{}
		}
		x = &mutex{held: make(chan struct{}, 1)}
		m.made[key] = x
	}
	x.users++
	return x
}

// leave forgets a lock that nobody uses.
func (m *Mutexes) leave(key string, x *mutex) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.users--; x.users == 0 {
		delete(m.made, key)
	}
}
