package term

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/view/story"
)

// Text is what a model, a tool or a file said as it may reach a terminal:
// newlines and tabs stay, everything that does something else than show itself
// is written out.
func Text(s string) string { return story.CleanLines(strings.ReplaceAll(s, "\r\n", "\n")) }

// Line is text on one line.
func Line(s string) string {
	return story.Clean(onOneLine.Replace(strings.TrimRight(s, "\r\n")))
}

var onOneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ")

// Short is text on one line of at most n characters.
func Short(s string, n int) string {
	if len(s) > 4*n { // n characters have no more bytes than that
		s = strings.ToValidUTF8(s[:4*n], "")
	}
	s = Line(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

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

// Count is a number with the digits in groups.
func Count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural is a number and its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(int64(n)) + " " + noun + "s"
}

// Ago is a duration for people.
func Ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than a second"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
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

// Millis is a duration in milliseconds for people.
func Millis(ms int64) string {
	if ms < 10_000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}

// Money is a sum for people: $0.0123, with "at least" where a part is unknown and
// "about" where one is estimated.
func Money(c event.CostSum) string {
	switch c.State() {
	case "known":
		return "$" + Dollars(c.MicroUSD)
	case "estimated":
		return "about $" + Dollars(c.MicroUSD)
	case "at_least":
		return "at least $" + Dollars(c.MicroUSD)
	}
	return "unknown"
}

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

// Dollars is an amount of millionths with at least two digits of cents.
func Dollars(micro int64) string {
	s := strings.TrimRight(fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000), "0")
	if point := strings.IndexByte(s, '.'); len(s)-point < 3 {
		s += "00"[:3-(len(s)-point)]
	}
	return s
}

// Shortened is what became of a conversation that was shortened.
func Shortened(p event.ContextCompactionCompleted) string {
	return fmt.Sprintf("the conversation was shortened (%s): %s tokens became %s", p.Strategy, Count(p.TokensBefore), Count(p.TokensAfter))
}

// NotShortened is why a conversation was not shortened.
func NotShortened(p event.ContextCompactionFailed) string {
	return fmt.Sprintf("the conversation was not shortened: %s (%s)", Short(p.Problem.Message, 200), p.Problem.Code)
}
