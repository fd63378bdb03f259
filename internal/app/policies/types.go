package policies

import (
	"github.com/belay-run/belay/internal/core/simulate"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/policy/shell"
)

// What this feature takes and answers with.
type (
	Explanation   = simulate.Explanation
	Case          = simulate.Case
	Change        = simulate.Change
	Row           = simulate.Row
	Counted       = simulate.Counted
	Tally         = simulate.Tally
	Finding       = simulate.Finding
	Suggestion    = simulate.Suggestion
	AskStats      = simulate.AskStats
	Taint         = policy.Taint
	Rule          = policy.Rule
	Document      = policy.Document
	Tier          = policy.Tier
	ExampleResult = policy.ExampleResult

	CommandReport  = shell.Report
	CommandOptions = shell.Options
	Dialect        = shell.Dialect
)

// Levels of findings, and the version of rule files.
const (
	LintError     = simulate.LintError
	LintWarning   = simulate.LintWarning
	FormatVersion = policy.FormatVersion
)

// WhyLost says in words why a recorded decision can't be judged again.
func WhyLost(code string) string { return simulate.LostWords[code] }

// WhyUnfit says in words why no rule is suggested for a question.
func WhyUnfit(code string) string { return simulate.UnfitWords[code] }

// About is a recorded call in a few words.
func About(k *Case) string { return simulate.About(k.Request) }

// Judge returns the verdict of rules on a recorded call, with its reasons.
func Judge(rules *policy.Set, k *Case) Explanation { return simulate.Explain(rules, k.Request) }

// Classify says what a shell command may do, without running it.
func Classify(line string, o CommandOptions) CommandReport { return shell.Classify(line, o) }
