package cli

import ()

func (a *program) placeFromEnv() {
	if a.Store == "" {
		a.Store = a.Getenv("BELAY_STORE")
	}
	if a.Workspace == "" {
		a.Workspace = a.Getenv("BELAY_WORKSPACE")
	}
}

// storeDir is the store's directory, which need not exist. All commands choose
// it the same way.
func (a *program) storeDir() (string, error) { return a.environment().StoreDir(a.Store) }

// workspace is the real path of what to work on.
func (a *program) workspace() (string, error) { return a.environment().FindWorkspace(a.Workspace) }
