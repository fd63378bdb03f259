package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

type configCmd struct {
	Show configShowCmd `cmd:"" default:"withargs" help:"Print the settings of a new session, and where each comes from."`
}

type configShowCmd struct {
	Config
}

// effective is one setting as it would count, as JSON.
type effective struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // flag, environment, file, default
	From   string `json:"from,omitempty"`
}

// overridden is a value that doesn't count, as JSON.
type overridden struct {
	Ignored string `json:"ignored"`
	From    string `json:"from"`
	Reason  string `json:"reason"`
}

func (c *configShowCmd) run(ctx context.Context, a *app) (int, error) {
	if ws, err := a.workspace(); err == nil {
		if err := a.enter(ctx, ws); err != nil {
			return 0, err
		}
	}
	l, err := a.layered(ctx, c.Config)
	if err != nil {
		return 0, err
	}
	cfg, origin := l.config()
	settings, err := a.check(cfg, a.defaults(), origin)
	switch belay.CodeOf(err) { // nothing is run: a provider or its key may be missing
	case belay.CodeNoProvider, belay.CodeNoKey, belay.CodeBadSecrets:
		err = nil
	}
	if err != nil {
		return 0, err
	}
	if _, err := term.PrintRows(&a.Env, l.effective(settings), "", "SETTING\tVALUE\tFROM", func(r effective) []any {
		return []any{r.Name, term.Line(r.Value), term.Line(cmp.Or(r.From, r.Source))}
	}); err != nil {
		return 0, err
	}
	for _, g := range l.ignored {
		if a.JSON {
			a.PrintJSON(overridden{g.value, g.from, g.list[0]})
		}
	}
	a.nameIgnored(l)
	return belay.ExitOK, nil
}

// nameIgnored says on standard error which values of files don't count.
func (a *app) nameIgnored(l *layers) {
	for _, g := range l.ignored {
		if !a.JSON {
			fmt.Fprintf(a.Err, "%s: %s is ignored: %s\n", term.Line(g.from), term.Line(g.value), g.list[0])
		}
	}
}

// effective lists every setting; those that aren't set have their defaults.
func (l *layers) effective(c resolved) []effective {
	asks := c.AskTimeout
	if asks == 0 {
		asks = belay.DefaultAskTimeout
	}
	instructions := c.Instructions
	if instructions == "" {
		instructions = "auto"
	}
	queue := wholeQueueing(c.Queue)
	values := map[string]string{
		"mode": string(c.Mode), "tools": cmp.Or(strings.Join(c.Tools, ","), tool.DefaultSet), "approvals": string(c.Approvals), "provider": c.Provider, "model": c.Model, "base-url": c.BaseURL, "fallback": strings.Join(c.Fallback, ","),
		"max-steps": fmt.Sprint(c.Limits.Steps), "max-time": c.Limits.Time.String(), "max-calls": fmt.Sprint(c.Limits.Calls),
		"completion": string(c.Completion), "instructions": instructions, "ask-timeout": asks.String(), "effort": c.Effort, "boundary": cmp.Or(c.Boundary, policy.ModeBoundary(c.Mode)), "allow": strings.Join(c.Allow, ","),
		"queue": string(queue.Mode), "queue-cap": fmt.Sprint(queue.Cap), "queue-drop": string(queue.Drop), "queue-quiet": queue.Quiet.String(),
	}
	var rows []effective
	add := func(name string) {
		from := l.set[name].from
		rows = append(rows, effective{name, values[name], sourceOf(from), from})
	}
	for _, s := range (&Config{}).settings() {
		if v := l.set[s.name()]; s.once && v.from != "" {
			values[s.name()] = v.value
		}
		add(s.name())
	}
	add("allow")
	for i, r := range rows {
		if r.Name == "base-url" && r.From == "" && c.baseFrom != "" {
			rows[i].From, rows[i].Source = c.baseFrom, "environment"
		}
	}
	for _, p := range l.providers {
		rows = append(rows, effective{"providers." + p.Name, serviceOf(p).said(), "file", p.Where})
	}
	return rows
}

// said is a provider in one line, without its secrets.
func (s service) said() string {
	words := []string{s.protocol, s.base}
	if s.model != "" {
		words = append(words, "model "+s.model)
	}
	switch {
	case s.key != (manifest.Reference{}):
		words = append(words, "key "+s.key.String())
	case len(s.keys) > 0:
		words = append(words, "key env:"+s.keys[0])
	}
	for _, h := range s.headers {
		words = append(words, "header "+h.Name)
	}
	return strings.Join(words, ", ")
}

func sourceOf(from string) string {
	switch {
	case from == "":
		return "default"
	case strings.HasPrefix(from, "--"):
		return "flag"
	case strings.HasPrefix(from, "BELAY_"):
		return "environment"
	}
	return "file"
}
