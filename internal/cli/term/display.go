package term

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/view/story"
)

// How values are written is package block's to say.
var (
	Text         = block.Text
	Line         = block.Line
	Short        = block.Short
	Count        = block.Count
	Plural       = block.Plural
	Ago          = block.Ago
	Millis       = block.Millis
	Money        = block.Money
	Dollars      = block.Dollars
	Shortened    = block.Shortened
	NotShortened = block.NotShortened
)

// safeJSON escapes in encoded JSON what the encoder leaves as it is and a
// terminal would act on. Such characters only occur inside strings.
func safeJSON(b []byte) []byte {
	s := string(b)
	if story.CleanLines(s) == s {
		return b
	}
	out := make([]byte, 0, len(s)+64)
	for _, r := range s {
		switch {
		case r < 0x7f || story.Clean(string(r)) == string(r):
			out = utf8.AppendRune(out, r)
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		}
	}
	return out
}

// Quoted is a word as a shell takes it.
func Quoted(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./:@%+,", r)
	}) {
		return s
	}
	return QuoteShell(s)
}

// QuoteShell is a word for bash and zsh.
func QuoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// BudgetText is amounts by the kinds that a limit limits: 0.0123usd of 2usd, 0 of 300calls.
func BudgetText(a, limit belay.Amounts) string {
	var parts []string
	a.Time = belay.Duration(time.Duration(a.Time).Round(time.Second))
	for _, k := range belay.BudgetKinds() {
		var one belay.Amounts
		if *one.Of(k) = 1; *limit.Of(k) > 0 {
			parts = append(parts, cmp.Or(a.Only(one).String(), "0")+" of "+limit.Only(one).String())
		}
	}
	return strings.Join(parts, ", ")
}

// budgetShare is how much of a budget was spent of the kind of which most was, in percent.
func budgetShare(spent, limit belay.Amounts) (most float64) {
	for _, k := range belay.BudgetKinds() {
		if of := *limit.Of(k); of > 0 {
			most = max(most, 100*float64(*spent.Of(k))/float64(of))
		}
	}
	return most
}
