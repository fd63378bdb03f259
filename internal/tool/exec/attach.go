//go:build unix

package exec

import (
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

var _ tool.Attachable = (*job)(nil)

// PID is its number in the system.
func (j *job) PID() int { return j.proc.PID }

// Printed is a part of what it has printed.
func (j *job) Printed(offset int64, n int) ([]byte, int64, error) { return j.pieces.window(offset, n) }

// Grown is closed when it prints more.
func (j *job) Grown() <-chan struct{} { return j.out.next() }

// Over is closed when its end is recorded.
func (j *job) Over() <-chan struct{} { return j.over }

// TakesInput reports whether it can be given more.
func (j *job) TakesInput() bool {
	select {
	case <-j.proc.Done():
		return false
	default:
		return !j.shut.Load()
	}
}

// Terminal is the size of its terminal.
func (j *job) Terminal() (rows, cols int) {
	if s := j.size.Load(); s != nil {
		return s.Rows, s.Cols
	}
	return 0, 0
}

const maxSide = 1000

// Resize gives its terminal another size.
func (j *job) Resize(rows, cols int) error {
	if rows < 1 || cols < 1 || rows > maxSide || cols > maxSide {
		return tool.Failf(tool.BadArguments, tool.CodeBadArguments, "a terminal has 1 to %d rows and columns, not %dx%d", maxSide, rows, cols)
	}
	s := process.Size{Rows: rows, Cols: cols}
	err := j.proc.Resize(s)
	if err == nil {
		j.size.Store(&s)
	}
	return j.told(err, CodeNoTerminal, "it has no terminal")
}
