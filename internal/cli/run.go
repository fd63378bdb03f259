package cli

import (
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

type runCmd struct {
	Config
	Session  string   `placeholder:"ID" help:"Give it to a session that exists."`
	Continue bool     `short:"c" help:"Give it to the last session of this workspace."`
	Title    string   `placeholder:"TEXT" help:"What lists call the session; the first line of the task."`
	Text     []string `arg:"" optional:"" help:"What to do; - or nothing reads it from standard input."`
}

func (c *runCmd) run(ctx context.Context, a *app) (int, error) {
	if c.Session != "" && c.Continue {
		return 0, belay.Errorf(belay.CodeUsage, "--session names one session, --continue another").At("--continue").WithHint("leave one of them out")
	}
	if c.Session != "" || c.Continue {
		return c.again(ctx, a)
	}
	ws, err := a.checkedWorkspace()
	if err != nil {
		return 0, err
	}
	settings, err := a.fresh(c.Config)
	if err != nil {
		return 0, err
	}
	task, err := a.task(c.Text)
	if err != nil {
		return 0, err
	}
	st, err := a.open(ctx, true)
	if err != nil {
		return 0, err
	}
	w, err := a.newWork(st)
	if err != nil {
		return 0, err
	}
	defer w.close()
	if err := w.begin(ctx, ws, c.title(task), settings, task); err != nil {
		return 0, err
	}
	return w.see(ctx)
}

// checkedWorkspace is the workspace, apart from the store.
func (a *app) checkedWorkspace() (string, error) {
	ws, err := a.workspace()
	if err != nil {
		return "", err
	}
	dir, err := a.storeDir()
	if err != nil {
		return "", err
	}
	return ws, apart(ws, dir)
}

func (c *runCmd) title(task string) string {
	title := c.Title
	if title == "" {
		title, _, _ = strings.Cut(task, "\n")
	}
	return short(strings.TrimSpace(title), 80)
}

// maxTask bounds what may be given at once.
const maxTask = 1 << 20

// task is what to do: the arguments, or standard input.
func (a *app) task(words []string) (string, error) {
	given := strings.TrimSpace(strings.Join(words, " "))
	if given == "-" || len(words) == 0 {
		var err error
		if given, err = a.readTask(len(words) == 0); err != nil {
			return "", err
		}
	}
	if given == "" {
		return "", belay.Errorf(belay.CodeUsage, "there is nothing to do: the text is empty").WithHint("belay run TEXT, or belay run - <FILE")
	}
	return given, nil
}

func (a *app) readTask(implied bool) (string, error) {
	const hint = "belay run TEXT, or belay run - <FILE"
	if a.Stdin == nil || implied && a.IsTerminal(a.Stdin) {
		return "", belay.Errorf(belay.CodeUsage, "there is nothing to do: no text was given").WithHint(hint)
	}
	b, err := io.ReadAll(io.LimitReader(a.Stdin, maxTask+1))
	switch {
	case err != nil:
		return "", belay.Errorf(belay.CodeUsage, "it can't be read: %s", reason(err)).At("standard input").WithHint(hint)
	case len(b) > maxTask:
		return "", belay.Errorf(belay.CodeTooLarge, "it is larger than %d MiB", maxTask>>20).At("standard input").WithHint("put it into a file of the workspace and name the file")
	case !utf8.Valid(b):
		return "", belay.Errorf(belay.CodeUsage, "it is not UTF-8 text").At("standard input").WithHint("put it into a file of the workspace and name the file")
	case strings.ContainsRune(string(b), 0):
		return "", belay.Errorf(belay.CodeUsage, "it contains a NUL character").At("standard input").WithHint("leave the character out")
	}
	return strings.TrimSpace(string(b)), nil
}

// again gives a session that exists something more to do.
func (c *runCmd) again(ctx context.Context, a *app) (int, error) {
	w, s, err := a.openSession(ctx, c.Session, c.Continue)
	if err != nil {
		return 0, err
	}
	defer w.close()
	settings, err := a.over(c.Config, s.Settings)
	if err != nil {
		return 0, err
	}
	task, err := a.task(c.Text)
	if err != nil {
		return 0, err
	}
	if w.unfinished(ctx) {
		return 0, belay.Errorf(belay.CodeBadState, "its last turn hasn't ended").At(string(s.Session)).WithHint("belay sessions resume %s", s.Session)
	}
	if err := w.update(ctx, s, settings); err != nil {
		return 0, err
	}
	if err := w.submit(ctx, settings, task); err != nil {
		return 0, err
	}
	return w.see(ctx)
}
