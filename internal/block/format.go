package block

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

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

// Millis is a duration in milliseconds for people: 772 ms, 3.8 s, 38 s, 2 min 5 s.
func Millis(ms int64) string {
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%d.%d s", ms/1000, ms%1000/100)
	case ms < 60_000:
		return fmt.Sprintf("%d s", ms/1000)
	}
	return fmt.Sprintf("%d min %d s", ms/60_000, ms%60_000/1000)
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
	text := fmt.Sprintf("the conversation was shortened (%s): %s tokens became %s", p.Strategy, Count(p.TokensBefore), Count(p.TokensAfter))
	if p.Problem != nil {
		text += fmt.Sprintf("; there is no summary: %s (%s)", Short(p.Problem.Message, 200), p.Problem.Code)
	}
	return text
}

// TakenBack is what a rollback took back.
func TakenBack(p event.HistoryRollbackCompleted) string {
	what := "the conversation and the files"
	if p.Scope == event.ScopeFiles {
		what = "the files"
	}
	if p.Count > 0 {
		what += " of " + Plural(p.Count, "turn")
	}
	return what + " were taken back"
}

// NotShortened is why a conversation was not shortened.
func NotShortened(p event.ContextCompactionFailed) string {
	return fmt.Sprintf("the conversation was not shortened: %s (%s)", Short(p.Problem.Message, 200), p.Problem.Code)
}

func trimmed(s string) string { return strings.TrimSpace(s) }

func trimEnd(s string) string { return strings.TrimRight(s, "\r\n") }
