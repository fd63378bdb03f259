package cli

import (
	"errors"
	"io/fs"
	"os"

	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

func (a *app) placeFromEnv() {
	if a.Store == "" {
		a.Store = a.Getenv("BELAY_STORE")
	}
	if a.Workspace == "" {
		a.Workspace = a.Getenv("BELAY_WORKSPACE")
	}
}

// storeDir is the store's directory, which need not exist. All commands choose
// it the same way.
func (a *app) storeDir() (string, error) { return a.environment().StoreDir(a.Store) }

// hasStore reports whether the folder holds a store. A folder that can't be read
// counts as one: opening it reports the error.
func hasStore(dir string) bool {
	_, err := os.Stat(layout.Path(dir))
	return !errors.Is(err, fs.ErrNotExist)
}

// workspace is the real path of what to work on.
func (a *app) workspace() (string, error) { return a.environment().FindWorkspace(a.Workspace) }
