package term

import (
	"cmp"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/belay-run/belay/internal/block"
)

// Look is how blocks are rendered on a stream. What isn't a terminal gets lines as long
// as they are, without colours.
func (e *Env) Look(out io.Writer) block.Options {
	o := block.Options{UTF8: e.utf8(out), ScreenReader: e.ScreenReader, Verbose: e.Verbose}
	if e.Now != nil {
		o.Now = e.Now()
	}
	moves := e.moves(out)
	if f, ok := out.(*os.File); ok && moves {
		o.Width, _, _ = term.GetSize(int(f.Fd()))
	}
	switch e.Colour {
	case "always":
		o.Colour = true
	case "never":
	default:
		o.Colour = e.colours(out) && e.Getenv("NO_COLOR") == ""
	}
	return o
}

// moves reports whether a stream is a terminal on which lines are drawn over.
func (e *Env) moves(out io.Writer) bool { return e.colours(out) && !e.ScreenReader }

// colours reports whether a stream is a terminal that understands more than text.
func (e *Env) colours(out io.Writer) bool {
	return e.IsTerminal != nil && e.IsTerminal(out) && !e.JSON && !e.Plain && e.Getenv("TERM") != "dumb"
}

// utf8 reports whether a stream shows more than ASCII, as the locale says. Without one a
// terminal does.
func (e *Env) utf8(out io.Writer) bool {
	locale := strings.ToLower(cmp.Or(e.Getenv("LC_ALL"), e.Getenv("LC_CTYPE"), e.Getenv("LANG")))
	if locale == "" {
		return e.IsTerminal != nil && e.IsTerminal(out)
	}
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}
