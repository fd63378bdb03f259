package memory_test

import (
	"testing"

	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/memory"
	"github.com/belay-run/belay/internal/store/storetest"
)

func options(env *storetest.Env) memory.Options {
	return memory.Options{Now: env.Now, Alive: env.Alive}
}

func TestLaws(t *testing.T) {
	storetest.Run(t, storetest.Config{
		Open: func(t *testing.T, env *storetest.Env) store.Store { return memory.Open(options(env)) },
		Again: func(t *testing.T, env *storetest.Env, s store.Store) store.Store {
			return s.(*memory.Store).Data().Open(options(env))
		},
	})
}
