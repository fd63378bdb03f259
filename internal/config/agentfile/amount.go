package agentfile

import (
	"fmt"
	"github.com/belay-run/belay/internal/policy"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// Size is a number of bytes: whole, with B, KB, MB, GB or TB, or KiB and so on; each is
// 1,024 of the one before.
func Size(text string) (int64, error) {
	unit, digits := int64(1), strings.ToLower(strings.TrimSpace(text))
	digits = strings.TrimSuffix(strings.TrimSuffix(digits, "b"), "i")
	for i, suffix := range []string{"k", "m", "g", "t"} {
		if d, ok := strings.CutSuffix(digits, suffix); ok {
			unit, digits = 1<<(10*(i+1)), d
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size: a whole number above 0 with B, KB, MB, GB or TB", short(text, 40))
	}
	return n * unit, nil
}

// percent is a share of a processor: 30%, 0.75, or a number above 1.
func percent(text string) (int, error) {
	digits, marked := strings.CutSuffix(strings.TrimSpace(text), "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !marked && f <= 1 {
		f *= 100
	}
	n := int(math.Round(f))
	if err != nil || !(f > 0) || f > 1e6 || n < 1 {
		return 0, fmt.Errorf("%q is no share of processors: a percentage above 0 such as 75%%", short(text, 40))
	}
	return n, nil
}

// span is a length of time: a number with ms, s, m, h or d; alone it is seconds.
func span(text string) (belay.Duration, error) {
	text = strings.TrimSpace(text)
	long := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseInt(days, 10, 32); err == nil {
			long = strconv.FormatInt(n*24, 10) + "h"
		}
	} else if _, err := strconv.ParseInt(text, 10, 32); err == nil {
		long = text + "s"
	}
	d, err := time.ParseDuration(long)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is no length of time above 0 such as 90s, 30m or 4h", short(text, 40))
	}
	return belay.Duration(d), nil
}

// count is a whole number above 0.
func count(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n <= 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%q is no number above 0", short(text, 40))
	}
	return n, nil
}

// money is millionths of a US dollar: 2usd, $2 or 2.
func money(text string) (int64, error) {
	digits := strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "$"), "usd")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !(f > 0) || f > 1e6 {
		return 0, fmt.Errorf("%q is no amount of US dollars above 0 such as 2.50usd", short(text, 40))
	}
	return int64(math.Round(f * 1e6)), nil
}

// limit sets a limit by its name in files.
func (a *Agent) limit(name, text string) (err error) {
	switch name {
	case "steps":
		a.Limits.Steps, err = count(text)
	case "calls":
		a.Limits.Calls, err = count(text)
	case "time":
		a.Limits.Time, err = span(text)
	case "memory":
		a.Process.Memory, err = Size(text)
	case "cpu":
		a.Process.CPUQuota, err = percent(text)
	case "processes":
		a.Process.Processes, err = count(text)
	case "written":
		a.Process.TotalWritten, err = Size(text)
	case "program_time":
		a.Process.TotalTime, err = span(text)
	default:
		err = fmt.Errorf("there is no limit %q", short(name, 40))
	}
	return err
}

// limitNames are those that a file of Belay's format may set.
const limitNames = "steps, calls, time, memory, cpu, processes, written, program_time"

// LimitsText is what limits the agent, in a line; empty: nothing does.
func (a *Agent) LimitsText() string {
	var parts []string
	say := func(name string, value any, set bool) {
		if set {
			parts = append(parts, fmt.Sprintf("%s %v", name, value))
		}
	}
	say("steps", a.Limits.Steps, a.Limits.Steps > 0)
	say("calls", a.Limits.Calls, a.Limits.Calls > 0)
	say("time", a.Limits.Time, a.Limits.Time > 0)
	say("tokens at least", a.Tokens.Min, a.Tokens.Min > 0)
	spend := belay.Amounts{Tokens: a.Limits.Tokens, MicroUSD: a.Limits.MicroUSD}.String()
	say("budget", spend, spend != "")
	if a.Process != (belay.ProcessLimits{}) {
		parts = append(parts, policy.LimitsText(a.Process))
	}
	return strings.Join(parts, ", ")
}
