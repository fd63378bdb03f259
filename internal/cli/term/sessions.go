package term

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// TagsOf are a session's tags behind its title.
func TagsOf(s view.Session) string {
	text := ""
	for _, t := range s.Tags {
		text += " #" + Line(t)
	}
	return text
}

// StatusOf is a session in a word: how its turn ended, or where it stands.
func StatusOf(s view.Session) string {
	switch t := s.Turn(); {
	case t == nil:
		return "new"
	case t.Back:
		return "taken back"
	case t.Status == view.Ended:
		return string(t.Outcome)
	case t.Status == view.WaitingResource:
		return "waiting for budget"
	default:
		return t.Status
	}
}

// SpentText is what a session has spent in a list: money, and the share of its budget.
func SpentText(s view.Session) string {
	text := "-"
	if s.Counts.Steps > 0 {
		text = Money(s.Cost)
	}
	if s.Budget != (belay.Amounts{}) {
		text += fmt.Sprintf(", %.0f %% of its budget", budgetShare(s.Spent(), s.Budget))
	}
	return text
}

// PrintSession prints a session. Of a call that waits for an answer nothing is left
// out. The server is the one that continues what no process drives; empty: there is
// none.
func PrintSession(e *Env, s view.Session, shell *belay.Shell, owner *store.Owner, waits []*block.Preview, server string) {
	e.Row("session", "%s", s.ID)
	e.Row("title", "%s", s.Title)
	if len(s.Tags) > 0 {
		e.Row("tags", "%s", strings.Join(s.Tags, " "))
	}
	if s.Archived {
		e.Row("archived", "lists leave it out")
	}
	if f := s.Forked; f != nil {
		e.Row("forked", "from %s after %s", f.Session, cmp.Or(string(f.Turn), "nothing"))
	}
	if i := s.Imported; i != nil {
		e.Row("imported", "from %s %s", i.Format, i.Name)
	}
	e.Row("workspace", "%s", s.Workspace)
	e.Row("shell", "%s", shell.Path)
	e.Row("model", "%s %s, mode %s", s.Provider, s.Model, s.Mode)
	e.Row("status", "%s", StatusOf(s))
	if t := s.Turn(); t != nil {
		if t.Reason != "" {
			e.Row("reason", "%s (%s)", t.Reason, t.Code)
		}
		if t.Summary != "" {
			e.Row("summary", "%s", t.Summary)
		}
	}
	showWork(e, s)
	if owner != nil {
		e.Row("driven by", "process %d on %s, since %s", owner.PID, owner.Host, Ago(e.Now().Sub(owner.Since)))
	}
	for i, o := range s.Actions {
		showWaiting(e, o, waits[i])
	}
	if t := s.Turn(); owner == nil && t != nil && t.Outcome != belay.Completed {
		if server != "" {
			e.Row("served", "%s continues it by itself", server)
		} else {
			e.Row("try", "belay sessions resume %s", s.ID)
		}
	}
}

// showWork prints what a session took and what came of it.
func showWork(e *Env, s view.Session) {
	used := "tokens unknown: no provider reported any"
	if s.Usage.Reported {
		used = fmt.Sprintf("%s tokens read, %s written", Count(s.Usage.Input), Count(s.Usage.Output))
	}
	e.Row("used", "%s, %s, %s of active time, %s", Plural(s.Counts.Steps, "step"), Plural(s.Counts.Calls, "call"), s.Active.String(), used)
	if e.Row("cost", "%s", Money(s.Cost)); s.Budget != (belay.Amounts{}) {
		e.Row("budget", "spent %s", BudgetText(s.Spent(), s.Budget))
	}
	if p := s.Programs; p.Ended > 0 {
		e.Row("programs", "%s", ProgramsUse(p))
	}
	for _, th := range s.Threads {
		if l := LimitsUse(th.Programs); l != "" {
			e.Row("", "%s: %s", th.ID, l)
		}
	}
	for _, f := range s.Files {
		e.Row("file", "%s %s", f.Op, f.Path)
	}
	for _, f := range s.Artifacts {
		e.Row("artifact", "%s version %s, %d bytes, %s", f.Name, f.Version, f.Content.Size, f.Content.Media)
	}
	for _, th := range s.Threads {
		for item := range strings.Lines(PlanText(th.Plan)) {
			e.Row("plan", "%s", item)
		}
	}
}

// showWaiting prints a question, whole, and how it is answered.
func showWaiting(e *Env, o view.Action, p *block.Preview) {
	version := ""
	if p == nil {
		e.Row("waits", "%s", o.Prompt)
	} else {
		name := "waits"
		look := e.Look(e.Out)
		look.Width = 0
		for _, l := range p.Lines(look) {
			e.Row(name, "%s", strings.TrimPrefix(l, "! "))
			name = ""
		}
		version = p.Version
	}
	e.Row("", "until %s", o.Until.Local().Format("2 Jan 15:04"))
	for _, cmd := range AnswerCommands(o.ID, o.Kind, version) {
		e.Row("", "%s", cmd)
	}
}
