// Package script holds the program as a user meets it: each txtar file is a
// story of commands, with their exit codes and what they print.
package script

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/sample"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	testscript.Main(m, map[string]func(){
		"http": httpMain, "mcpserver": mcpServerMain, "editor": editorMain,
		"belay": func() {
			code := cli.Main(context.Background(), os.Args[1:], cli.Process())
			sandbox.Cleanup()
			os.Exit(code)
		},
	})
}

func TestScripts(t *testing.T) { testscript.Run(t, params(".")) }

// agentSamples are files of agents that other programs come with.
var agentSamples, _ = filepath.Abs(filepath.Join("..", "internal", "config", "agentfile", "testdata", "samples"))

// params is how the stories of a folder are played, of a sample those that it has.
func params(dir string) testscript.Params {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		panic("there are no stories in " + dir)
	}
	played := slices.DeleteFunc(slices.Clone(files), func(file string) bool { return !sample.Has(file) })
	if len(played) == 0 {
		played = files[:1]
	}
	return testscript.Params{
		Files:               played,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("SAMPLES", agentSamples)
			e.Setenv("USER", "tester")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else the race detector makes each command a second longer
			e.Setenv("XDG_STATE_HOME", "")
			for _, v := range config.Vendors() { // what a developer has must not be reached
				for _, name := range slices.Concat(v.Keys, v.Bases) {
					e.Setenv(name, "")
				}
			}
			for _, kv := range e.Vars {
				if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "BELAY_") {
					e.Setenv(name, "")
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":     status,
			"grab":       grab,
			"bytes":      bytes,
			"chatserver": chatserver,
			"vendors":    vendors,
			"valid":      valid,

			"placeServer":  placeServer,
			"serveMCP":     serveMCP,
			"startServer":  startServer,
			"stopServer":   stopServer,
			"signalServer": signalServer,
		},
	}
}
