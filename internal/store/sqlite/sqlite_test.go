package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/storetest"
)

func options(env *storetest.Env) Options { return Options{Now: env.Now, Alive: env.Alive} }

// Guarantee: S21.
func TestLaws(t *testing.T) {
	open := func(t *testing.T, env *storetest.Env, dir string) store.Store {
		t.Helper()
		db, err := Open(t.Context(), dir, options(env))
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	storetest.Run(t, storetest.Config{
		Open: func(t *testing.T, env *storetest.Env) store.Store { return open(t, env, t.TempDir()) },
		Again: func(t *testing.T, env *storetest.Env, s store.Store) store.Store {
			return open(t, env, filepath.Join(s.(*DB).Dir(), "..", ".."))
		},
	})
}
