package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/stats"
)

type statsCmd struct {
	ID    string        `arg:"" optional:"" help:"Only of this session."`
	All   bool          `short:"a" help:"Of all workspaces."`
	Since time.Duration `placeholder:"TIME" help:"Only what happened in this time until now, such as 24h."`
}

// countedStats is what was counted, as JSON, with the shares worked out. A share
// that can't be known is absent.
type countedStats struct {
	stats.Stats
	SilentStops    *float64 `json:"silentStops,omitempty"`
	RetriesHelped  *float64 `json:"retriesHelped,omitempty"`
	ReasonCoverage *float64 `json:"reasonCoverage,omitempty"`
	AsksPer100     *float64 `json:"asksPer100,omitempty"`
	Recursion      string   `json:"recursionIncidents"`
	Efficiency     string   `json:"contextEfficiency"`
	CostState      string   `json:"costState"` // known, at_least, unknown
}

func (c *statsCmd) run(ctx context.Context, a *app) (int, error) {
	if c.Since < 0 {
		return 0, belay.Errorf(belay.CodeUsage, "%s lies in the future", c.Since).At("--since").WithHint("--since 24h")
	}
	st, err := a.open(ctx, false)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	wanted, err := c.wanted(ctx, a, st)
	if err != nil {
		return 0, err
	}
	fold := stats.New()
	from := a.Now().Add(-c.Since)
	for r, err := range st.Scan(ctx, 0) {
		if err != nil {
			return 0, err
		}
		if wanted(r.Event.IDs.Session) && (c.Since == 0 || r.Event.Time.After(from)) {
			fold.Apply(r.Event)
		}
	}
	printStats(&a.Env, fold.Sum())
	return belay.ExitOK, nil
}

// wanted returns the filter for the sessions that count.
func (c *statsCmd) wanted(ctx context.Context, a *app, st store.Store) (func(belay.SessionID) bool, error) {
	if c.ID != "" {
		id, err := a.sessionID(ctx, st, c.ID, false)
		return func(s belay.SessionID) bool { return s == id }, err
	}
	if c.All {
		return func(belay.SessionID) bool { return true }, nil
	}
	ws, err := a.workspace()
	if err != nil {
		return nil, err
	}
	all, err := sessions.List(ctx, st, view.Filter{Workspace: ws})
	if err != nil {
		return nil, err
	}
	ids := map[belay.SessionID]bool{}
	for _, s := range all {
		ids[s.ID] = true
	}
	return func(s belay.SessionID) bool { return ids[s] }, nil
}

// What the facts of this build can't tell.
const (
	noChildren  = "not_applicable" // no agent starts another
	notMeasured = "unavailable"    // nothing counts the context that was used
)

func withShares(s stats.Stats) countedStats {
	known := func(v float64, ok bool) *float64 {
		if !ok {
			return nil
		}
		return &v
	}
	return countedStats{Stats: s, SilentStops: known(s.SilentStops()), RetriesHelped: known(s.RetriesHelped()),
		ReasonCoverage: known(s.ReasonCoverage()), AsksPer100: known(s.AskRate()),
		Recursion: noChildren, Efficiency: notMeasured, CostState: s.Cost.State()}
}

// printStats prints what was counted.
func printStats(e *term.Env, s stats.Stats) {
	if e.JSON {
		e.PrintJSON(withShares(s))
		return
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("sessions", "%s", term.Count(int64(s.Sessions)))
	row("turns", "%s ended%s, %d not", term.Count(int64(s.Turns)), split(s.Outcomes), s.Running)
	row("steps", "%s in %s of active time", term.Count(int64(s.Steps)), term.Millis(s.ActiveMS))
	if n := s.UnknownUsage(); s.Usage.Reported {
		row("tokens", "%s read (%s from a cache), %s written", tokenText(s.Usage.Input, s.Usage, n), term.Count(s.Usage.Cached), tokenText(s.Usage.Output, s.Usage, n))
	} else {
		row("tokens", "unknown: no provider reported any")
	}
	row("cost", "%s%s", term.Money(s.Cost), unpriced(s.Cost))
	row("silent stops", "%s", of(s.SilentStops, "of ended turns", "none: no turn has ended"))
	row("retries that helped", "%s", of(s.RetriesHelped, "of retried calls", "none: no call was retried"))
	row("decisions", "%s%s", of(s.ReasonCoverage, "with rule and reason", "none: nothing was decided"), split(s.Gate.Decisions))
	row("questions", "%d allowed, %d denied, %d expired", s.Gate.Allowed, s.Gate.Denied, s.Gate.Expired)
	row("recursion incidents", "not applicable: no agent starts another")
	row("context efficiency", "unavailable: nothing counts the context that was used")
	t.Flush() //nolint:errcheck // nobody is left to tell
	if len(s.Tools) > 0 {
		fmt.Fprintln(t, "\nTOOL\tCALLS\tOK\tRETRIED\tHELPED\tMEAN\tMAX\tFAILURES")
		for _, x := range s.Tools {
			fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\n", term.Line(x.Name), x.Calls, percent(ratio(x.OK, x.Calls)), x.Retried, x.Helped,
				term.Millis(x.MS/int64(max(1, x.Ran))), term.Millis(x.MaxMS), strings.Trim(split(x.Classes), " ()"))
		}
	}
	if len(s.Models) > 0 {
		fmt.Fprintln(t, "\nMODEL\tREQUESTS\tANSWERED\tRETRIED\tREAD\tWRITTEN\tCOST\tFIRST\tMEAN\tFAILURES")
		for _, m := range s.Models {
			fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", term.Line(strings.TrimSpace(m.Provider+" "+m.Model)), m.Requests, percent(ratio(m.Answers, m.Requests)),
				m.Retried, tokenText(m.Usage.Input, m.Usage, m.Unknown), tokenText(m.Usage.Output, m.Usage, m.Unknown), term.Money(m.Cost),
				term.Millis(m.FirstMS/int64(max(1, m.Answers))), term.Millis(m.TookMS/int64(max(1, m.Answers))), strings.Trim(split(m.Failures), " ()"))
		}
	}
	t.Flush() //nolint:errcheck // nobody is left to tell
}

// tokenText is how many tokens a usage has of a kind; some answers may have reported none.
func tokenText(n int64, u belay.Usage, unknown int) string {
	switch {
	case !u.Reported:
		return "unknown"
	case unknown > 0:
		return "at least " + term.Count(n)
	}
	return term.Count(n)
}

// unpriced returns how much of a cost isn't known.
func unpriced(c event.CostSum) string {
	if c.Unpriced == 0 {
		return ""
	}
	return fmt.Sprintf(": nothing says what %s cost", term.Plural(c.Unpriced, "answer"))
}

// split names the parts of a number, the largest first.
func split[K ~string](m map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(string(a), string(b))
	})
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], term.Line(string(k))))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// of is a share and of what; what isn't known is said.
func of(share func() (float64, bool), what, unknown string) string {
	v, ok := share()
	if !ok {
		return unknown
	}
	return percent(v, true) + " " + what
}

func ratio(part, all int) (float64, bool) {
	return float64(part) / float64(max(1, all)), all > 0
}

// percent is a share for people; what isn't known is said.
func percent(share float64, ok bool) string {
	if !ok {
		return "none"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}
