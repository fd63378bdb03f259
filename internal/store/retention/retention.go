// Package retention chooses the sessions and outputs that a store need not keep any
// longer, and expires outputs. It promises that a session in which something is going
// on or waits is never among them, and that an output goes by facts: one in each
// session that names it, durable before a byte is removed. What a model was shown of
// an output is no part of it and stays.
package retention

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// Policy is what to keep. The zero value keeps everything.
type Policy struct {
	Age   belay.Duration `json:"age,omitempty"`   // sessions that changed since then
	Count int            `json:"count,omitempty"` // the newest so many
	Bytes int64          `json:"bytes,omitempty"` // the newest that fit; when it is exceeded, down to highWater percent

	Outputs Outputs `json:"outputs,omitzero"` // of the sessions that stay
}

// Outputs is what to keep of what programs and tools printed beside the log. The
// zero value keeps everything.
type Outputs struct {
	Age   belay.Duration `json:"age,omitempty"`   // those that were recorded since then
	Bytes int64          `json:"bytes,omitempty"` // the newest that fit; when it is exceeded, down to highWater percent
}

// highWater is what part of the bytes is left free for what comes, in percent
// of them kept.
const highWater = 80

// None tells that a policy keeps everything.
func (p Policy) None() bool { return p == Policy{} }

// String implements fmt.Stringer.
func (p Policy) String() string {
	var parts []string
	add := func(is bool, format string, v any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, v))
		}
	}
	add(p.Age > 0, "sessions that changed within %s", days(time.Duration(p.Age)))
	add(p.Count > 0, "the newest %d sessions", p.Count)
	add(p.Bytes > 0, "%s of facts", Size(p.Bytes))
	add(p.Outputs.Age > 0, "outputs of the last %s", days(time.Duration(p.Outputs.Age)))
	add(p.Outputs.Bytes > 0, "%s of outputs", Size(p.Outputs.Bytes))
	if len(parts) == 0 {
		return "everything"
	}
	return "at most " + strings.Join(parts, ", ")
}

// Session is one as retention sees it.
type Session struct {
	ID      belay.SessionID
	Changed time.Time
	Bytes   int64
	Rests   bool // nothing runs, waits or is wanted
}

// Choice is a session that goes, and why.
type Choice struct {
	Session
	Why string
}

// Choose lists the sessions to delete under a policy, the oldest first. Sessions
// that don't rest count, and stay.
func (p Policy) Choose(now time.Time, sessions []Session) []Choice {
	oldest := slices.Clone(sessions)
	slices.SortStableFunc(oldest, func(a, b Session) int {
		return cmp.Or(a.Changed.Compare(b.Changed), strings.Compare(string(a.ID), string(b.ID)))
	})
	left, total := len(oldest), int64(0)
	for _, s := range oldest {
		total += s.Bytes
	}
	shrink := p.Bytes > 0 && total > p.Bytes
	var out []Choice
	for _, s := range oldest {
		why := ""
		switch {
		case !s.Rests:
		case p.Age > 0 && now.Sub(s.Changed) > time.Duration(p.Age):
			why = "it hasn't changed for " + days(now.Sub(s.Changed))
		case p.Count > 0 && left > p.Count:
			why = fmt.Sprintf("%d newer ones are kept", p.Count)
		case shrink && total > p.Bytes/100*highWater:
			why = "the store would hold more than " + Size(p.Bytes)
		}
		if why == "" {
			continue
		}
		out = append(out, Choice{s, why})
		left, total = left-1, total-s.Bytes
	}
	return out
}

// days is a duration as people say it.
func days(d time.Duration) string {
	if day := 24 * time.Hour; d >= day {
		if n := int(d / day); n != 1 {
			return fmt.Sprintf("%d days", n)
		}
		return "1 day"
	}
	return d.Round(time.Second).String()
}

// ParseAge reads 30d, 2w, or what Go takes for a duration.
func ParseAge(s string) (time.Duration, error) {
	unit := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if n := len(s) - 1; n > 0 && unit[s[n]] > 0 {
		if v, err := strconv.ParseInt(s[:n], 10, 32); err == nil && v > 0 && v <= 36500 {
			return time.Duration(v) * unit[s[n]], nil
		}
	} else if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return d, nil
	}
	return 0, belay.Errorf(belay.CodeUsage, "%q is no age", s).WithHint("write 30d, 2w or 12h")
}

var units = []struct {
	name string
	size int64
}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}

// ParseSize reads 500MB, 10GB, 100000.
func ParseSize(s string) (int64, error) {
	number, unit := strings.ToUpper(strings.TrimSpace(s)), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v > 0 && v*float64(unit) >= 1 && v*float64(unit) < 1e18) {
		return 0, belay.Errorf(belay.CodeUsage, "%q is no size", s).WithHint("write 500MB or 10GB")
	}
	return int64(v * float64(unit)), nil
}

// Size is a number of bytes for people.
func Size(n int64) string {
	for _, u := range units {
		if n >= u.size*10 || u.size == 1 || n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + " " + u.name
		}
	}
	return ""
}
