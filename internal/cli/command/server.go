package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
)

// Running is server.json: where the server of a store is.
type Running struct {
	Owner   store.Owner `json:"owner"`
	URL     string      `json:"url"`
	Started time.Time   `json:"started"`
	Version string      `json:"version"`
}

// ServerOf returns the server of a store, or nil if none runs or none is
// registered. A registration has no lease: a container that was started again must not
// wait for the one before.
func ServerOf(dir string) *Running {
	b, err := os.ReadFile(filepath.Join(dir, "server.json"))
	if err != nil {
		return nil
	}
	var r Running
	if json.Unmarshal(b, &r) != nil || !store.Runs(r.Owner) {
		return nil
	}
	return &r
}

// ServerURL is the address of the store's server; empty when none runs. The
// server continues sessions that no process drives.
func (a *Program) ServerURL() string {
	dir, err := a.StoreDir()
	if err != nil {
		return ""
	}
	if r := ServerOf(dir); r != nil {
		return r.URL
	}
	return ""
}

// ServerTokens are the tokens of the store directory, which is created if make is set.
func (a *Program) ServerTokens(make bool) (*auth.Tokens, error) {
	dir, err := a.StoreDir()
	if err != nil {
		return nil, err
	}
	if make {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, belay.Errorf(belay.CodeStoreReadOnly, "the store's folder can't be made: %s", files.Reason(err)).At(dir).WithHint("--store DIR")
		}
	}
	return auth.OpenTokens(dir, a.Now), nil
}

// PassingToken makes a token for the server of this store that is valid for a day, or
// until done takes it back: access to the store is enough to make one. The file holds
// only its hash.
func (a *Program) PassingToken(purpose string, role auth.Role) (text string, done func() error, err error) {
	tokens, err := a.ServerTokens(false)
	if err != nil {
		return "", nil, err
	}
	text, made, err := tokens.Create(purpose+" by "+term.Line(term.Short(strings.TrimPrefix(a.Principal(), "user:"), 60)), role, auth.DefaultTenant, a.Now().Add(24*time.Hour))
	if err != nil {
		return "", nil, err
	}
	return text, func() error {
		if err := tokens.Drop(made.ID); err != nil {
			return belay.Errorf(belay.CodeOf(err), "the token %s isn't taken back, and counts for a day", made.ID).Wrap(err)
		}
		return nil
	}, nil
}
