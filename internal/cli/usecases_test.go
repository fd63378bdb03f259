package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/builtin"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/server"
)

// aboutThisMachine are the commands that perform no row of the table, and why.
// What needs the store's folder stays at the terminal beside it: a server can't be
// asked to copy, check or replace the files that it has open.
var aboutThisMachine = map[string]string{
	"agents new":       "it makes a file of this machine",
	"agents test":      "it plays in throw-away folders",
	"api":              "it performs any row",
	"bench run":        "it measures this machine",
	"completion":       "it is about the shell",
	"console":          "it opens the store's server to a browser",
	"config show":      "it shows files of this machine",
	"demo":             "it plays in a throw-away folder",
	"config get":       "it shows files of this machine",
	"config set":       "it changes files of this machine",
	"config unset":     "it changes files of this machine",
	"config path":      "it is about this machine",
	"config edit":      "it changes files of this machine",
	"login":            "keys stay on this machine",
	"logout":           "keys stay on this machine",
	"doctor":           "it is about this machine",
	"eval":             "it plays in throw-away folders",
	"mcp add":          "it changes files of this machine",
	"mcp remove":       "it changes files of this machine",
	"models list":      "it shows files of this machine",
	"models show":      "it shows files of this machine",
	"models test":      "it uses the keys of this machine",
	"outputs expire":   "it removes files of the store's folder",
	"policy classify":  "it is about a text",
	"policy import":    "it converts files of this machine",
	"policy lint":      "it checks files of this machine",
	"policy test":      "it checks files of this machine",
	"redact":           "it is about a text",
	"secret list":      "keys stay on this machine",
	"secret rm":        "keys stay on this machine",
	"secret set":       "keys stay on this machine",
	"serve":            "it is the server",
	"stats":            "it folds the whole store's log",
	"store backup":     "it copies the store's folder",
	"store compact":    "it removes files of the store's folder",
	"store restore":    "it makes a store's folder",
	"store retain":     "it sets what the store's folder keeps",
	"store stats":      "it measures the store's folder",
	"templates list":   "it shows files of this machine",
	"templates render": "it shows files of this machine",
	"templates show":   "it shows files of this machine",
	"tool call":        "a person runs it here, without a turn",
	"tool show":        "it shows files of this machine",
	"verify":           "it checks the store's folder",
	"version":          "it is about the program",
	"views rebuild":    "it makes rows of the store's folder anew",
	"worktree list":    "it looks at folders of this machine",
	"worktree remove":  "it removes folders of this machine",
}

// TestEveryCommandIsAUseCaseOrAboutThisMachine holds the command line against the
// table: what the terminal can do with sessions, a client of the server can do too.
// Guarantee: V32.
func TestEveryCommandIsAUseCaseOrAboutThisMachine(t *testing.T) {
	k, err := parser(&command.Program{}, new(command.Flags), nil, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	served := operations(t)
	local := map[string]bool{}
	for _, leaf := range k.Model.Leaves(false) {
		name := strings.TrimPrefix(leaf.Path(), "belay ")
		why, here := aboutThisMachine[name]
		uses := strings.FieldsFunc(leaf.Tag.Get("use"), func(c rune) bool { return c == ',' })
		switch {
		case here == (len(uses) > 0):
			t.Errorf("%s performs %q, and as a command about this machine: %q; it must be one of both", name, uses, why)
		case here:
			local[name] = true
		}
		for _, use := range uses {
			if !slices.Contains(served, use) {
				t.Errorf("%s performs %s, which the server hasn't", name, use)
			}
		}
	}
	for name := range aboutThisMachine {
		if !local[name] {
			t.Errorf("there is no command %s", name)
		}
	}
}

// operations are the names of all that the server answers.
func operations(t *testing.T) (names []string) {
	raw, err := server.OpenAPI(builtin.Commands(), builtin.Reads())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, methods := range doc.Paths {
		for _, op := range methods {
			names = append(names, op.ID)
		}
	}
	return names
}
