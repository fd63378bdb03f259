package term

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/view/story"
)

// countedStats is what was counted, as JSON, with the shares worked out. A share
// that can't be known is absent.
type countedStats struct {
	story.Stats
	SilentStops    *float64          `json:"silentStops,omitempty"`
	RetriesHelped  *float64          `json:"retriesHelped,omitempty"`
	ReasonCoverage *float64          `json:"reasonCoverage,omitempty"`
	AsksPer100     *float64          `json:"asksPer100,omitempty"`
	Subagents      *story.Subagents  `json:"subagents,omitempty"`
	Recursion      int               `json:"recursionIncidents"`
	Efficiency     *float64          `json:"contextEfficiency,omitempty"` // at least
	Context        *belay.ContextUse `json:"context,omitempty"`           // if enough was given to know
	CostState      string            `json:"costState"`                   // known, estimated, at_least, unknown
}

func withShares(s story.Stats, u belay.ContextUse) countedStats {
	known := func(v float64, ok bool) *float64 {
		if !ok {
			return nil
		}
		return &v
	}
	out := countedStats{Stats: s, SilentStops: known(s.SilentStops()), RetriesHelped: known(s.RetriesHelped()),
		ReasonCoverage: known(s.ReasonCoverage()), AsksPer100: known(s.AskRate()),
		Recursion: s.Agents.Incidents, Efficiency: known(u.Efficiency()), CostState: s.Cost.State()}
	if a := s.Agents; a.Open()+a.Ended()+len(a.Refused) > 0 {
		out.Subagents = a
	}
	if out.Efficiency != nil {
		out.Context = &u
	}
	return out
}

// PrintStats prints what was counted, and what was made of what models were given.
func PrintStats(e *Env, s story.Stats, u belay.ContextUse) (int, error) {
	return e.Show(withShares(s, u), func() {
		t := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
		row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
		row("sessions", "%s", Count(int64(s.Sessions)))
		row("turns", "%s ended%s, %d not", Count(int64(s.Turns)), split(s.Outcomes), s.Running)
		row("steps", "%s in %s of active time", Count(int64(s.Steps)), Millis(s.ActiveMS))
		if n := s.UnknownUsage(); s.Usage.Reported {
			row("tokens", "%s read (%s from a cache), %s written", TokenText(s.Usage.Input, s.Usage, n), Count(s.Usage.Cached), TokenText(s.Usage.Output, s.Usage, n))
		} else {
			row("tokens", "unknown: no provider reported any")
		}
		row("cost", "%s%s", Money(s.Cost), unpriced(s.Cost))
		row("silent stops", "%s", of(s.SilentStops, "of ended turns", "none: no turn has ended"))
		row("retries that helped", "%s", of(s.RetriesHelped, "of retried calls", "none: no call was retried"))
		row("decisions", "%s%s", of(s.ReasonCoverage, "with rule and reason", "none: nothing was decided"), split(s.Gate.Decisions))
		row("questions", "%d allowed, %d denied, %d expired", s.Gate.Allowed, s.Gate.Denied, s.Gate.Expired)
		row("agents started", "%s%s, %d open%s, refused%s", Count(int64(s.Agents.Ended())), split(s.Agents.Outcomes), s.Agents.Open(), split(s.Agents.States), cmp.Or(split(s.Agents.Refused), " none"))
		row("recursion incidents", "%d", s.Agents.Incidents)
		row("context efficiency", "%s", useText(u))
		t.Flush() //nolint:errcheck // nobody is left to tell
		behind(e, s.Tools, "TOOL\tCALLS\tOK\tRETRIED\tHELPED\tMEAN\tMAX\tFAILURES", func(x story.ToolStats) []any {
			return []any{Line(x.Name), x.Calls, percent(ratio(x.OK, x.Calls)), x.Retried, x.Helped,
				Millis(x.MS / int64(max(1, x.Ran))), Millis(x.MaxMS), strings.Trim(split(x.Classes), " ()")}
		})
		if s.Cost.State() == "unknown" {
			s.Purposes, s.Days = nil, nil
		}
		for _, by := range []struct {
			name string
			rows []story.SpentStats
		}{{"PURPOSE", s.Purposes}, {"DAY", s.Days}} {
			behind(e, by.rows, by.name+"\tREQUESTS\tCOST", func(x story.SpentStats) []any { return []any{x.Of, x.Requests, Money(x.Cost)} })
		}
		behind(e, s.Models, "MODEL\tREQUESTS\tANSWERED\tRETRIED\tREAD\tWRITTEN\tCOST\tFIRST\tMEAN\tFAILURES", func(m story.ModelStats) []any {
			return []any{Line(strings.TrimSpace(m.Provider + " " + m.Model)), m.Requests, percent(ratio(m.Answers, m.Requests)),
				m.Retried, TokenText(m.Usage.Input, m.Usage, m.Unknown), TokenText(m.Usage.Output, m.Usage, m.Unknown), Money(m.Cost),
				Millis(m.FirstMS / int64(max(1, m.Answers))), Millis(m.TookMS / int64(max(1, m.Answers))), strings.Trim(split(m.Failures), " ()")}
		})
	})
}

// useText is how much of what a model was given it used, and what the largest of the
// rest is, where that is most.
func useText(u belay.ContextUse) string {
	share, known := u.Efficiency()
	if !known {
		return fmt.Sprintf("unknown: results and chunks had %s tokens, under %s", Count(u.Given), Count(belay.LeastGiven))
	}
	text := fmt.Sprintf("at least %s of %s tokens of results and chunks were cited", percent(share, true), Count(u.Given))
	if u.Newest > 0 {
		text += fmt.Sprintf(" (in the newest %d threads)", u.Newest)
	}
	if share >= belay.LowUse {
		return text
	}
	var names []string
	for _, it := range u.Uncited {
		names = append(names, fmt.Sprintf("%s (%s)", Line(it.Name), Count(it.Tokens)))
	}
	return text + "; the largest that weren't: " + strings.Join(names, ", ")
}

// behind prints a table behind an empty line, if it has rows.
func behind[T any](e *Env, rows []T, heads string, cells func(T) []any) {
	if len(rows) > 0 {
		fmt.Fprintln(e.Out)
		WriteTable(e.Out, rows, heads, cells) //nolint:errcheck // nobody is left to tell
	}
}

// TokenText is how many tokens a usage has of a kind; some answers may have reported none.
func TokenText(n int64, u belay.Usage, unknown int) string {
	if u.Reported && unknown > 0 {
		return "at least " + Count(n)
	}
	return Tokens(n, u)
}

// Tokens is how many tokens a usage has of a kind; unknown, if no answer reported any.
func Tokens(n int64, u belay.Usage) string {
	if !u.Reported {
		return "unknown"
	}
	return Count(n)
}

// unpriced returns how much of a cost isn't known.
func unpriced(c event.CostSum) string {
	if c.Unpriced == 0 {
		return ""
	}
	return fmt.Sprintf(": nothing says what %s cost", Plural(c.Unpriced, "request"))
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
		parts = append(parts, fmt.Sprintf("%d %s", m[k], Line(string(k))))
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
