package term

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/view/story"
)

// Say prints what a command did: as JSON, or as a line.
func (e *Env) Say(v any, format string, args ...any) (int, error) {
	return e.say(e.Out, v, format, args...)
}

// SayBeside is Say for what isn't the answer: people read it beside that.
func (e *Env) SayBeside(v any, format string, args ...any) (int, error) {
	return e.say(e.Err, v, format, args...)
}

func (e *Env) say(to io.Writer, v any, format string, args ...any) (int, error) {
	if e.JSON {
		e.PrintJSON(v)
		return belay.ExitOK, nil
	}
	_, err := fmt.Fprintf(to, format+"\n", args...)
	return belay.ExitOK, err
}

// Show prints what a command found: as JSON, or in words.
func (e *Env) Show(v any, words func()) (int, error) {
	if e.JSON {
		e.PrintJSON(v)
	} else {
		words()
	}
	return belay.ExitOK, nil
}

// Some prints a line about a number of things, if there are any: their number and noun,
// and what is said of them.
func Some(to io.Writer, n int, noun, said string) {
	if n > 0 {
		fmt.Fprintf(to, "%s %s\n", Plural(n, noun), said)
	}
}

// Row prints one figure of what is shown, behind its name.
func (e *Env) Row(name, format string, args ...any) {
	fmt.Fprintf(e.Out, "%-10s %s\n", name, Line(fmt.Sprintf(format, args...)))
}

// PrintRows prints rows: as JSON one in a line, else as a table. none, if it isn't
// empty, is said where there are no rows.
func PrintRows[T any](e *Env, rows []T, none, heads string, cells func(T) []any) (int, error) {
	if e.JSON {
		for _, r := range rows {
			e.PrintJSON(r)
		}
		return belay.ExitOK, nil
	}
	if len(rows) == 0 && none != "" {
		_, err := fmt.Fprintln(e.Out, none)
		return belay.ExitOK, err
	}
	return belay.ExitOK, WriteTable(e.Out, rows, heads, cells)
}

// WriteTable aligns the cells of rows below their heads, which are separated by
// tabs and may be empty.
func WriteTable[T any](to io.Writer, rows []T, heads string, cells func(T) []any) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if heads != "" {
		fmt.Fprintln(t, heads)
	}
	for _, r := range rows {
		c := cells(r)
		fmt.Fprintf(t, strings.TrimSuffix(strings.Repeat("%v\t", len(c)), "\t")+"\n", c...)
	}
	return t.Flush()
}

// PrintJSON writes one line to standard output.
func (e *Env) PrintJSON(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("cli/term: " + err.Error()) // everything printed is plain data
	}
	e.Out.Write(append(safeJSON([]byte(story.PlainJSON(string(b)))), '\n')) //nolint:errcheck // nobody is left to tell
}
