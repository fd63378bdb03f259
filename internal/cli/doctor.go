package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/builtin"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
	toolexec "github.com/belay-run/belay/internal/tool/exec"
)

type versionCmd struct{}

// versions identifies this build.
type versions struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
}

func buildVersions() versions {
	v := versions{Version: "development", Go: goruntime.Version(), OS: goruntime.GOOS + "/" + goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}

func (versionCmd) run(_ context.Context, a *program) (int, error) {
	v := buildVersions()
	if a.JSON {
		a.PrintJSON(v)
		return belay.ExitOK, nil
	}
	fmt.Fprintf(a.Out, "belay %s %s %s\n", v.Version, v.Go, v.OS)
	return belay.ExitOK, nil
}

type doctorCmd struct{}

// finding is one line of the doctor.
type finding struct {
	Name  string `json:"name"`
	State string `json:"state"` // ok, missing, failed, note
	What  string `json:"what"`
	Try   string `json:"try,omitempty"`
}

func (doctorCmd) run(ctx context.Context, a *program) (int, error) {
	all := append(machine(a), storeFinding(ctx, a), workspaceFinding(a))
	kept, names := keptFindings(a)
	all = append(append(all, kept...), providerFindings(ctx, a, names)...)
	return printFindings(&a.Env, all), nil
}

// printFindings prints what was found; the exit code reports whether something failed.
func printFindings(e *term.Env, all []finding) int {
	exit := belay.ExitOK
	for _, f := range all {
		if f.State == "failed" {
			exit = belay.ExitFailed
		}
		if e.JSON {
			e.PrintJSON(f)
			continue
		}
		fmt.Fprintf(e.Out, "%-8s %-10s %s\n", f.State, f.Name, term.Line(f.What))
		if f.Try != "" {
			fmt.Fprintf(e.Out, "%-8s %-10s try: %s\n", "", "", term.Line(f.Try))
		}
	}
	return exit
}

func machine(a *program) []finding {
	v := buildVersions()
	all := []finding{
		{Name: "version", State: "ok", What: strings.TrimSpace("belay " + v.Version + " " + v.Commit)},
		{Name: "system", State: "ok", What: v.OS + ", " + v.Go + ", " + term.Plural(goruntime.NumCPU(), "processor")},
	}
	all = append(all, sandboxFindings(a)...)
	for _, name := range []string{"sh", "git"} {
		f := finding{Name: name, State: "ok"}
		if f.What = process.LookPath(a.Environ, name); f.What == "" {
			f.State, f.What = "missing", "not on the PATH"
			if name == "sh" {
				f.State, f.Try = "failed", "install a shell: the tool exec needs one"
			}
		}
		all = append(all, f)
	}
	runs := finding{Name: "shell", State: "ok", What: "command lines of a new session run in " + toolexec.OfSession().Path}
	if !strings.HasSuffix(runs.What, "bash") {
		runs.State, runs.What, runs.Try = "note", runs.What+": what only bash reads is asked about", "install bash where only root can write, such as /usr/bin"
	}
	all = append(all, runs)
	t := finding{Name: "terminal", State: "ok", What: "yes: questions are asked here"}
	if !a.Interactive() {
		t.State, t.What, t.Try = "note", "no: what would ask is denied", "--approvals=wait keeps the process until an answer comes"
	}
	return append(all, t)
}

func storeFinding(ctx context.Context, a *program) finding {
	f := finding{Name: "store", State: "ok"}
	dir, err := a.storeDir()
	if err != nil {
		return broken(f, a.explain(err))
	}
	if !builtin.HasStore(dir) {
		f.State, f.What = "note", dir+": not there yet; the first run makes it"
		return f
	}
	st, err := sqlite.Open(ctx, dir, sqlite.Options{Now: a.Now})
	if err != nil {
		return broken(f, a.explain(err))
	}
	end, err := st.End(ctx)
	if err = errors.Join(err, st.Close()); err != nil {
		return broken(f, a.explain(err))
	}
	f.What = fmt.Sprintf("%s: %s, writable, schema %d, last position %d", dir, st.Runtime(), schemaVersion(dir), end)
	return f
}

// schemaVersion is what the database's header says: SQLite keeps the number of
// the schema in bytes 60 to 63.
func schemaVersion(dir string) uint32 {
	f, err := os.Open(layout.Path(dir))
	if err != nil {
		return 0
	}
	defer f.Close()
	var b [4]byte
	if _, err := f.ReadAt(b[:], 60); err != nil {
		return 0
	}
	return binary.BigEndian.Uint32(b[:])
}

func broken(f finding, e *belay.Error) finding {
	f.State, f.What, f.Try = "failed", e.Error()+" ("+string(e.Code)+")", e.Hint
	return f
}

func workspaceFinding(a *program) finding {
	f := finding{Name: "workspace", State: "ok"}
	ws, err := a.checkedWorkspace()
	if err != nil {
		return broken(f, a.explain(err))
	}
	f.What = ws
	return f
}

// keptFindings lists the stored secrets, if there ever was one.
func keptFindings(a *program) (all []finding, names []string) {
	v, err := a.environment().Vault("", a.secrets())
	if err != nil || !v.Exists() {
		return nil, nil
	}
	f := finding{Name: "secrets", State: "ok"}
	list, err := v.List()
	if err != nil {
		return []finding{broken(f, a.explain(err))}, nil
	}
	for _, e := range list {
		names = append(names, e.Name)
	}
	if f.What = "none is kept"; len(names) > 0 {
		f.What = term.Plural(len(names), "secret") + " kept: " + strings.Join(names, ", ")
	}
	return []finding{f}, names
}

func providerFindings(ctx context.Context, a *program, kept []string) []finding {
	all := []finding{{Name: "provider", State: "ok", What: "scripted: plays a file, needs no key", Try: "belay demo"}}
	ws, err := a.workspace()
	if err != nil {
		ws = ""
	}
	w := config.Resolve(ctx, a.Input(ws))
	var found []finding
	for _, c := range w.Candidates(kept) {
		found = append(found, finding{Name: "provider", State: "ok", What: c.What, Try: c.Try})
	}
	if err := w.ProvidersError(); err != nil {
		found = append(found, broken(finding{Name: "settings"}, a.explain(err)))
	}
	if len(found) == 0 {
		found = []finding{{Name: "provider", State: "note", What: "no key of a model provider is set", Try: "OPENAI_API_KEY=… belay run --provider openai --model NAME TEXT"}}
	}
	return append(all, found...)
}
