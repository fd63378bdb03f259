package term

import (
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/view"
)

// Megabytes is bytes as a person reads them.
func Megabytes(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// ProgramsUse is what programs took of the machine, in a line.
func ProgramsUse(p view.Programs) string {
	said := fmt.Sprintf("%s in %s, %s of processors, at most %s of memory, %s written to disks", Plural(p.Ended, "program"),
		time.Duration(p.Time).Round(10*time.Millisecond), time.Duration(p.CPU).Round(10*time.Millisecond), Megabytes(p.Peak), Megabytes(p.Written))
	if p.Processes > 0 {
		said += fmt.Sprintf(", at most %d processes", p.Processes)
	}
	if p.Throttled > 0 {
		said += ", held back for " + time.Duration(p.Throttled).Round(10*time.Millisecond).String()
	}
	if p.Limited > 0 {
		said += fmt.Sprintf("; %d met a limit", p.Limited)
	}
	if l := LimitsUse(p); l != "" {
		said += "; limits: " + l
	}
	return said
}

// LimitsUse is what programs used of what their boundary gives all of them.
func LimitsUse(p view.Programs) string {
	var parts []string
	if l := p.Limit.CPU; l > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s of processors", time.Duration(p.CPU).Round(10*time.Millisecond), l))
	}
	if l := p.Limit.Written; l > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s written", Megabytes(p.Written), Megabytes(l)))
	}
	if l := p.Limit.Time; l > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s of time", time.Duration(p.Time).Round(10*time.Millisecond), l))
	}
	return strings.Join(parts, ", ")
}
