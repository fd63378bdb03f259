// Package machine has the commands about this machine: what it gives, its settings,
// secrets and models, and the files of the store.
package machine

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/storage"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/process"
	toolexec "github.com/belay-run/belay/internal/tool/exec"
)

// VersionCmd is the command "belay version".
type VersionCmd struct{}

// Run implements command.Command.
func (VersionCmd) Run(_ context.Context, a *command.Program) (int, error) {
	v := command.BuildVersions()
	return a.Say(v, "belay %s %s %s", v.Version, v.Go, v.OS)
}

// DoctorCmd is the command "belay doctor".
type DoctorCmd struct{}

// Run implements command.Command.
func (DoctorCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return printFindings(&a.Env, Findings(ctx, a)), nil
}

// Findings are what the machine gives and what is missing.
func Findings(ctx context.Context, a *command.Program) []app.Finding {
	all := append(machine(a), storeFinding(ctx, a), workspaceFinding(a))
	kept, names := keptFindings(a)
	return append(append(all, kept...), ProviderFindings(ctx, a, names)...)
}

// printFindings prints what was found; the exit code reports whether something failed.
func printFindings(e *term.Env, all []app.Finding) int {
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

func machine(a *command.Program) []app.Finding {
	v := command.BuildVersions()
	all := []app.Finding{
		{Name: "version", State: "ok", What: strings.TrimSpace("belay " + v.Version + " " + v.Commit)},
		{Name: "system", State: "ok", What: v.OS + ", " + v.Go + ", " + term.Plural(goruntime.NumCPU(), "processor")},
	}
	all = append(all, sandboxFindings(a)...)
	for _, name := range []string{"sh", "git"} {
		f := app.Finding{Name: name, State: "ok"}
		if f.What = process.LookPath(a.Environ, name); f.What == "" {
			f.State, f.What = "missing", "not on the PATH"
			if name == "sh" {
				f.State, f.Try = "failed", "install a shell: the tool exec needs one"
			}
		}
		all = append(all, f)
	}
	runs := app.Finding{Name: "shell", State: "ok", What: "command lines of a new session run in " + toolexec.OfSession().Path}
	if !strings.HasSuffix(runs.What, "bash") {
		runs.State, runs.What, runs.Try = "note", runs.What+": what only bash reads is asked about", "install bash where only root can write, such as /usr/bin"
	}
	all = append(all, runs)
	t := app.Finding{Name: "terminal", State: "ok", What: "yes: questions are asked here"}
	if !a.Interactive() {
		t.State, t.What, t.Try = "note", "no: what would ask is denied", "--approvals=wait keeps the process until an answer comes"
	}
	return append(all, t)
}

func storeFinding(ctx context.Context, a *command.Program) app.Finding {
	f := app.Finding{Name: "store", State: "ok"}
	dir, err := a.StoreDir()
	if err != nil {
		return broken(f, a.Explained(err))
	}
	if !a.Build.HasStore(dir) {
		f.State, f.What = "note", dir+": not there yet; the first run makes it"
		return f
	}
	runtime, schema, end, err := storage.Inspect(ctx, dir, a.Now)
	if err != nil {
		return broken(f, a.Explained(err))
	}
	f.What = fmt.Sprintf("%s: %s, writable, schema %d, last position %d", dir, runtime, schema, end)
	return f
}

func broken(f app.Finding, e *belay.Error) app.Finding {
	f.State, f.What, f.Try = "failed", e.Error()+" ("+string(e.Code)+")", e.Hint
	return f
}

func workspaceFinding(a *command.Program) app.Finding {
	f := app.Finding{Name: "workspace", State: "ok"}
	ws, err := a.CheckedWorkspace()
	if err != nil {
		return broken(f, a.Explained(err))
	}
	f.What = ws
	return f
}

// keptFindings lists the stored secrets, if there ever was one.
func keptFindings(a *command.Program) (all []app.Finding, names []string) {
	names, err := a.Environment().KeptSecrets(a.Secrets())
	switch {
	case err != nil:
		return []app.Finding{broken(app.Finding{Name: "secrets"}, a.Explained(err))}, nil
	case len(names) == 0:
		return nil, nil
	}
	return []app.Finding{{Name: "secrets", State: "ok", What: term.Plural(len(names), "secret") + " kept: " + strings.Join(names, ", ")}}, names
}

// ProviderFindings returns what is known of each provider's settings and key.
func ProviderFindings(ctx context.Context, a *command.Program, kept []string) []app.Finding {
	all := []app.Finding{{Name: "provider", State: "ok", What: "scripted: plays a file, needs no key", Try: "belay demo"}}
	ws, err := a.WorkspaceDir()
	if err != nil {
		ws = ""
	}
	w := config.Resolve(ctx, a.Input(ws))
	var found []app.Finding
	for _, c := range w.Candidates(kept) {
		found = append(found, app.Finding{Name: "provider", State: "ok", What: c.What, Try: c.Try})
	}
	if err := w.ProvidersError(); err != nil {
		found = append(found, broken(app.Finding{Name: "settings"}, a.Explained(err)))
	}
	if len(found) == 0 {
		found = []app.Finding{{Name: "provider", State: "note", What: "no key of a model provider is set", Try: "OPENAI_API_KEY=… belay run --provider openai --model NAME TEXT"}}
	}
	return append(all, found...)
}
