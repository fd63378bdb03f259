package machine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/model/catalog"
	"github.com/belay-run/belay/internal/model/price"
)

// ModelsCmd is the command "belay models".
type ModelsCmd struct {
	List modelsListCmd `cmd:"" default:"withargs" help:"List the models that the catalogue knows, with context and prices."`
	Show modelsShowCmd `cmd:"" help:"Show what is known of a model, and where each value comes from."`
	Test modelsTestCmd `cmd:"" help:"Send a model one small request, and say what works."`
}

type modelsListCmd struct {
	Provider string `placeholder:"NAME" help:"Only those of this provider: openai, anthropic, google, open, or one of a file."`
}

func (c *modelsListCmd) Run(_ context.Context, a *command.Program) (int, error) {
	cat, err := a.Environment().Catalog()
	if err != nil {
		return 0, err
	}
	all := cat.Models(strings.ToLower(c.Provider))
	if len(all) == 0 {
		var names []string
		for _, m := range cat.Models("") {
			if !slices.Contains(names, m.Provider) {
				names = append(names, m.Provider)
			}
		}
		return 0, belay.Errorf(belay.CodeNotFound, "the catalogue has no models of %q", c.Provider).WithHint("one of %s", strings.Join(names, ", "))
	}
	return term.PrintRows(&a.Env, all, "", "MODEL\tPROVIDER\tCONTEXT\tOUTPUT\tUSD PER MILLION: IN\tOUT\tCAN", func(m catalog.Model) []any {
		in, out := "unknown", "unknown"
		if p := m.Prices.At(a.Now()); p != nil {
			in, out = term.Dollars(p.Input), term.Dollars(p.Output)
		}
		return []any{term.Line(m.Name), term.Line(m.Provider), tokenCount(m.Context), tokenCount(m.Output), in, out, can(m)}
	})
}

type modelsShowCmd struct {
	Model string `arg:"" help:"Its name, an alias, or provider/name."`
}

func (c *modelsShowCmd) Run(_ context.Context, a *command.Program) (int, error) {
	cat, err := a.Environment().Catalog()
	if err != nil {
		return 0, err
	}
	m, err := cat.Show(c.Model)
	if err != nil {
		return 0, err
	}
	if a.JSON {
		a.PrintJSON(m)
		return belay.ExitOK, nil
	}
	fmt.Fprintf(a.Out, "%s of %s\n", term.Line(m.Name), term.Line(m.Provider))
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	row := func(name, field, value string) {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", name, value, term.Line(cmp.Or(m.From[field], "-")))
	}
	row("other names", "aliases", cmp.Or(term.Line(strings.Join(m.Aliases, ", ")), "none"))
	if m.Default {
		row("default", "default", "of "+term.Line(m.Provider)+", where no model is named")
	}
	row("context", "context", tokenCount(m.Context))
	row("answer", "output", tokenCount(m.Output))
	row("can", "abilities", can(m))
	row("counted by", "vocabulary", cmp.Or(m.Vocabulary, "unknown"))
	row("factor", "factor", fmt.Sprint(cmp.Or(m.Factor, 1)))
	row("pictures by", "images", cmp.Or(m.Pictures, "unknown"))
	showPrices(row, m, a)
	return belay.ExitOK, t.Flush()
}

// showPrices are the prices of now, and what is known of those to come.
func showPrices(row func(name, field, value string), m catalog.Model, a *command.Program) {
	p := m.Prices.At(a.Now())
	switch {
	case m.Prices == nil:
		row("price", "prices", "unknown")
	case p == nil:
		row("price", "prices", "unknown: known until "+m.Prices.Until)
	default:
		row("price", "prices", rates(p.Rates))
		for _, l := range p.Long {
			row(fmt.Sprintf("  over %s", tokenCount(l.Over)), "prices", rates(l.Rates))
		}
		if p.Until != "" {
			then := "then unknown"
			if p.Next != nil {
				then = "then " + rates(p.Next.Rates)
			}
			row("  until "+p.Until, "prices", then)
		}
	}
}

// rates are dollars for a million tokens.
func rates(r price.Rates) string {
	s := fmt.Sprintf("in %s, out %s", term.Dollars(r.Input), term.Dollars(r.Output))
	if r.CacheRead != nil {
		s += ", cache read " + term.Dollars(*r.CacheRead)
	}
	if r.CacheWrite != nil {
		s += ", cache write " + term.Dollars(*r.CacheWrite)
	}
	return s
}

func tokenCount(n int64) string {
	if n == 0 {
		return "unknown"
	}
	return fmt.Sprint(n)
}

// can are a model's abilities, as a list.
func can(m catalog.Model) string {
	if len(m.Abilities) == 0 {
		return "text"
	}
	var b strings.Builder
	for i, x := range m.Abilities {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(x))
	}
	return b.String()
}
