package story

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// short is an id as far as it tells it from its neighbours: of a minted one the
// time it was made, of a derived one eight digits. It can be given to Why.
func short(id string) string {
	prefix, rest, ok := strings.Cut(id, "_")
	if !ok || len(rest) != 36 || rest[8] != '-' || rest[13] != '-' || rest[18] != '-' {
		return cut(id, 24)
	}
	if rest[14] == '7' { // the first twelve digits are milliseconds
		return prefix + "_" + rest[:13]
	}
	return prefix + "_" + rest[:8]
}

// took is a duration for people.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + took(-max(d, -math.MaxInt64)) // the smallest duration has no opposite
	case d < 10*time.Second:
		return fmt.Sprintf("%.3gs", d.Round(time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// some is plural, and nothing for none.
func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return plural(n, what)
}

func tokens(u belay.Usage) string {
	if !u.Reported && u.Input+u.Output == 0 {
		return "no usage reported"
	}
	s := fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output)
	if u.Cached > 0 {
		s += fmt.Sprintf(", %d of them from the cache", u.Cached)
	}
	return s
}

func limits(l belay.Limits) string {
	lasts := ""
	if l.Time > 0 {
		lasts = took(time.Duration(l.Time))
	}
	spends := belay.Amounts{MicroUSD: l.MicroUSD, Tokens: l.Tokens}.String()
	return cmp.Or(when(join(", ", some(l.Steps, "step"), lasts, some(l.Calls, "call"), spends), "at most %s"), "no limits")
}

// Attached names what was sent along with a text; empty: nothing was.
func Attached(c belay.Content) string {
	var all []string
	for _, a := range c.Attached {
		all = append(all, fmt.Sprintf("%s (%s, %s)", Clean(a.Name), a.Ref.Media, plural(int(a.Ref.Size), "byte")))
	}
	return when(strings.Join(all, ", "), "with %s")
}

// join puts the parts that say something after one another.
func join(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), sep)
}

// when formats a part if v says something.
func when(v, format string) string {
	if v == "" {
		return ""
	}
	return fmt.Sprintf(format, v)
}

// ifSet is what a function says of a value that may be left out.
func ifSet[T any](v *T, says func(T) string) string {
	if v == nil {
		return ""
	}
	return says(*v)
}
