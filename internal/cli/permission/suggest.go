package permission

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/view/story"
)

type policySuggestCmd struct {
	recordedCalls
	Min  int `default:"3" placeholder:"N" help:"Only rules that spare at least so many questions."`
	Most int `default:"5" placeholder:"N" help:"At most so many rules."`
}

// suggested is a rule that is suggested, as JSON.
type suggested struct {
	*policies.Suggestion
	YAML string `json:"yaml"` // to be pasted into the list of a file's rules
}

func (c *policySuggestCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if c.Min < 1 || c.Most < 1 || c.Most > 100 {
		return 0, belay.Errorf(belay.CodeUsage, "--min is at least 1, and --most from 1 to 100").WithHint("belay policy suggest --min 3 --most 5")
	}
	r, err := newReplay(ctx, a, c.recordedCalls, ruleFiles{})
	if err != nil {
		return 0, err
	}
	defer r.close()
	ws, err := a.WorkspaceDir()
	if err != nil {
		return 0, err
	}
	asks, sound, err := policies.Suggest(ctx, r.decisions, r.gates, ws, c.Min, c.Most)
	if err != nil {
		return 0, err
	}
	printSuggested(&a.Env, asks, sound)
	return belay.ExitOK, nil
}

func printSuggested(e *term.Env, asks *policies.AskStats, sound []*policies.Suggestion) {
	if e.JSON {
		for _, s := range sound {
			e.PrintJSON(suggested{s, rulefile.WriteRules([]policies.Rule{s.Rule})})
		}
		e.PrintJSON(asks)
		return
	}
	say := func(format string, args ...any) { fmt.Fprintf(e.Out, "# "+format+"\n", args...) }
	say("%s of %s ask a person under the rules that count now.", term.Count(int64(asks.Asked)), term.Plural(asks.Decisions-asks.Lost, "recorded decision"))
	for _, why := range slices.Sorted(maps.Keys(asks.Unfit)) {
		say("%d of them stay questions: %s.", asks.Unfit[why], policies.WhyUnfit(why))
	}
	if asks.Lost > 0 {
		say("%s can't be judged again; belay policy replay says why.", term.Plural(asks.Lost, "decision"))
	}
	if len(sound) == 0 {
		say("No rule would spare enough of them: nothing is suggested.")
		return
	}
	fmt.Fprintf(e.Out, "version: %d\nrules:\n", policies.FormatVersion)
	for _, s := range sound {
		printSuggestion(e, s)
	}
}

// printSuggestion writes a rule with its blast radius above it, so that what is
// printed can be kept as a file.
func printSuggestion(e *term.Env, s *policies.Suggestion) {
	say := func(format string, args ...any) { fmt.Fprintf(e.Out, "  # "+format+"\n", args...) }
	say("It would have spared %s.", term.Plural(s.Spared, "question"))
	say("It speaks of %s in %s: besides, %d allowed already, %d still asked about, %d denied as before.", term.Plural(s.Matched, "recorded call"), term.Plural(s.Sessions, "session"), s.Allowed, s.Asked, s.Denied)
	for _, what := range s.Seen {
		say("    %s", term.Line(what))
	}
	if s.More > 0 {
		say("    … and %d more", s.More)
	}
	say("policy test: %s", map[bool]string{true: term.Plural(s.Examples, "example") + ", 0 failed", false: "no example; add one"}[s.Examples > 0])
	_, _ = io.WriteString(e.Out, story.CleanLines(strings.TrimRight(rulefile.WriteRules([]policies.Rule{s.Rule}), "\n"))+"\n") // standard output is gone: there is nowhere to report it
}
