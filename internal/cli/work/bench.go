package work

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/model"
)

// BenchCmd is the command "belay bench".
type BenchCmd struct {
	Run benchRunCmd `cmd:"" help:"Run many sessions at once in this process and print how fast they went."`
}

type benchRunCmd struct {
	command.SettingFlags
	Sessions int      `default:"100" placeholder:"N" help:"How many run at the same time (default 100)."`
	Text     []string `arg:"" optional:"" help:"What each of them is to do; run the steps."`
}

// sessionMark is replaced by a session's number in the model's name and the text.
const sessionMark = "{SESSION}"

func (c *benchRunCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if c.Sessions < 1 || c.Sessions > 100_000 {
		return 0, belay.Errorf(belay.CodeUsage, "%d sessions: must be between 1 and 100000", c.Sessions).At("--sessions").WithHint("--sessions 100")
	}
	ws, p, err := a.EnterChecked(ctx)
	if err != nil {
		return 0, err
	}
	settings, err := a.Fresh(p, c.Given())
	if err != nil {
		return 0, err
	}
	settings.Share = true // they are all in one workspace
	forget, err := throwAway(a)
	if err != nil {
		return 0, err
	}
	defer forget()
	ctx, release := a.UntilSignal(ctx)
	defer release()
	st, err := a.Open(ctx, true)
	if err != nil {
		return 0, err
	}
	a.WrapProvider = func(p model.Provider) model.Provider { return Metered{Provider: p} }
	rt, err := a.Runtime(st, nil)
	if err != nil {
		return 0, errors.Join(err, st.Close())
	}
	defer rt.Close() //nolint:errcheck // everything that was accepted is durable
	text := cmp.Or(strings.Join(c.Text, " "), "run the steps")
	r := Run(ctx, st, c.Sessions, func(number int) Session {
		return &benchSession{turnRun{Runtime: rt, a: a}, "s" + strconv.Itoa(number), ws, text, settings}
	})
	r.Print(&a.Env)
	if r.Completed < r.Sessions {
		return belay.ExitFailed, nil
	}
	return belay.ExitOK, nil
}

// throwAway takes a store for this process alone, unless one is named by flag.
// The function it returns removes it.
func throwAway(a *command.Program) (func(), error) {
	if a.StoreFlag != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return nil, belay.Errorf(belay.CodeWorkspace, "there is no place for a store: %s", files.Reason(err)).At(os.TempDir()).WithHint("--store DIR")
	}
	a.Store = dir
	return func() { os.RemoveAll(dir) }, nil //nolint:errcheck // it is in a folder that the system clears
}

// benchSession is one session of many.
type benchSession struct {
	turnRun
	name     string // stands for sessionMark
	ws, text string
	settings config.Settings
}

// Run begins the session and drives it to its rest.
func (w *benchSession) Run(ctx context.Context) error {
	settings := w.settings
	settings.Model = strings.ReplaceAll(settings.Model, sessionMark, w.name)
	text := strings.ReplaceAll(w.text, sessionMark, w.name)
	if err := w.begin(ctx, w.ws, text, settings, Task{Given: app.Given{Text: text}}, false); err != nil {
		return err
	}
	err := w.Engine.Session(ctx, w.session, nil)
	return errors.Join(err, w.release())
}

// Outcome is how the session's turn ended; empty: it was completed.
func (w *benchSession) Outcome(ctx context.Context) string {
	s, err := w.state(ctx)
	switch {
	case err != nil:
		return err.Error()
	case s == nil || s.Turn != nil || s.Prev == nil:
		return "not ended"
	case s.Prev.Outcome != belay.Completed:
		return string(s.Prev.Outcome)
	}
	return ""
}
