package cli

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
)

// What a person sees must not depend on how much of the grammar was built.
func TestACommandAloneHasTheHelpItHasAmongAll(t *testing.T) {
	help := func(root any, args ...string) string {
		var out bytes.Buffer
		k, err := newParser(root, Sys{Stdout: &out, Stderr: io.Discard}, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		k.Parse(args) //nolint:errcheck // help ends it
		return out.String()
	}
	for f := range reflect.TypeFor[grammar]().Fields() {
		if f.Anonymous {
			continue
		}
		name := strings.ToLower(f.Name)
		root, _ := grammarOf([]string{name, "--help"})
		if got, want := help(root, name, "--help"), help(new(grammar), name, "--help"); got != want || got == "" {
			t.Errorf("%s:\n%s\n%s", name, got, want)
		}
	}
}

func TestOnlyTheCommandThatIsNamedIsBuilt(t *testing.T) {
	for args, want := range map[string]string{
		"run x":                        "Run",
		"--json run x":                 "Run",
		"--store DIR --json events":    "Events",
		"--store=run sessions list":    "Sessions",
		"--workspace run verify":       "Verify",
		"completion bash":              "", // it needs them all
		"runn x":                       "",
		"--unknown run":                "",
		"--help":                       "",
		"":                             "",
		"place":                        "",
		"--store":                      "",
		"-- run":                       "",
		"sess_01a1fd4f --store x fork": "",
	} {
		f, ok := commandField(strings.Fields(args))
		if f.Name != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", args, f.Name, ok, want)
		}
	}
}
