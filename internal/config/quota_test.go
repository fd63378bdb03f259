package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// TestQuotasAreOfTheMachineAndTheUser: a workspace describes none, and a mistake names
// its place and what to do.
// Guarantee: E71.
func TestQuotasAreOfTheMachineAndTheUser(t *testing.T) {
	in, _ := folder(t, map[string]string{
		ofPerson + "belay.yaml": "mode: plan\nquotas:\n  - {of: user, limit: 50usd, per: day, zone: Europe/Berlin}\n  - {of: tenant, kind: tokens, limit: 2mtok, per: month, action: warn}\n",
		"ws/.belay/belay.yaml":  "quotas: [{of: user, limit: 9usd, per: day}]\n",
	})
	w := Resolve(t.Context(), in)
	want := []belay.Quota{
		{Of: "user", Kind: belay.BudgetCost, Limit: 50_000_000, Per: "day", Zone: "Europe/Berlin"},
		{Of: "tenant", Kind: belay.BudgetTokens, Limit: 2_000_000, Per: "month", Warn: true},
	}
	if got, err := w.Quotas(); err != nil || !slices.Equal(got, want) {
		t.Errorf("quotas %+v, %v", got, err)
	}
	l, err := w.Layers(nil)
	if err != nil || len(l.Ignored()) != 1 || l.Ignored()[0].What != "quotas" {
		t.Errorf("ignored %+v, %v", l, err)
	}
	for file, what := range map[string]string{
		"quotas: 50usd": "quotas are a list",
		"quotas: [{of: user, limit: 5, per: day}]":                  "has no unit",
		"quotas: [{of: user, limit: +5usd, per: day}]":              "single kind",
		"quotas: [{of: user, limit: '5usd,9calls', per: day}]":      "single kind",
		"quotas: [{of: user, kind: tokens, limit: 5usd, per: day}]": `the kind is "tokens"`,
		"quotas: [{of: team, limit: 5usd, per: day}]":               `"team" has no quotas`,
		"quotas: [{of: user, limit: 5usd, per: year}]":              `"year"`,
		"quotas: [{of: user, limit: 5usd, per: day, zone: Mars}]":   `"Mars"`,
		"quotas: [{of: user, limit: 5usd, per: day, action: beep}]": `"beep"`,
		"quotas: [{of: user, limit: 5usd, every: day}]":             "every",
	} {
		in, _ := folder(t, map[string]string{ofPerson + "belay.yaml": file + "\n"})
		_, err := Resolve(t.Context(), in).Quotas()
		if codeOf(err) != belay.CodeBadConfig || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "belay.yaml:1:") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
