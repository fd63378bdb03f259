package serve

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/command"
)

// TestAServersTerminalShowsThePage: the address has a code that is good for an owner, who may answer there as at the terminal.
// Guarantee: V45.
func TestAServersTerminalShowsThePage(t *testing.T) {
	var out, errs bytes.Buffer
	a := &command.Program{}
	a.Out, a.Err = &out, &errs
	tokens := auth.OpenTokens(t.TempDir(), nil)
	sayConsole(a, tokens, "http://127.0.0.1:1")
	at := regexp.MustCompile(`http://127\.0\.0\.1:1/#code=([A-Za-z0-9_-]{22})\n`).FindStringSubmatch(out.String())
	if at == nil || errs.Len() > 0 {
		t.Fatalf("%q %q", out.String(), errs.String())
	}
	if _, made, err := tokens.Trade(at[1]); err != nil || made.Role != auth.Owner {
		t.Errorf("%+v, %v", made, err)
	}
}
