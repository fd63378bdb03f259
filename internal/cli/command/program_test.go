package command

import (
	"os/user"
	"testing"

	"github.com/belay-run/belay/internal/cli/term"
)

// TestThePersonHasAName asks who the person is where the environment says it and where
// it doesn't.
func TestThePersonHasAName(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"USER=ann", "LOGNAME=ben"}, "user:ann"},
		{[]string{"LOGNAME=ben"}, "user:ben"},
		{nil, "user:" + me.Username},
	} {
		a := &Program{Sys: Sys{Env: term.Env{Environ: c.environ}}}
		if got := a.Principal(); got != c.want {
			t.Errorf("with %q the person is %s, want %s", c.environ, got, c.want)
		}
	}
}
