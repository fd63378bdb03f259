package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/workspace/protected"
)

// Sweeps are the files and folders of which a command that only reads may show
// all there is, though its text doesn't name it: it goes through a folder, or
// variables and other commands say what it reads. here says that the folder it
// runs in is one.
func (c *Command) Sweeps() (folders []string, here bool) {
	if c.Class != ReadOnly || c.names {
		return nil, false
	}
	open := c.unsure || len(c.Open) > 0 && len(c.Wrapped) > 0
	if open || c.recursive() {
		return c.Reads, open || len(c.Reads) == 0
	}
	return nil, false
}

// recursive reports whether a command searches or compares whole folders.
func (c *Command) recursive() bool {
	switch path.Base(c.Name) {
	case "rg", "ag", "ack", "rgrep", "ugrep", "ug":
		return true
	case "grep", "egrep", "fgrep", "ggrep", "diff", "gdiff":
		return slices.ContainsFunc(c.Args, recursive)
	case "git":
		return slices.Contains(c.Args, "grep") || slices.Contains(c.Args, "--no-index")
	}
	return false
}

// OnlyNames reports whether a command shows names of files, not what is in them.
func (c *Command) OnlyNames() bool { return c.names }

// recursive reports whether an argument has a search go through folders.
func recursive(arg string) bool {
	if long, ok := strings.CutPrefix(arg, "--"); ok {
		return strings.HasPrefix(long, "rec") || strings.HasPrefix(long, "deref") || strings.HasPrefix(long, "dir")
	}
	return strings.HasPrefix(arg, "-") && strings.ContainsAny(arg, "rRd")
}

// secrets judges the files whose content git shows, now or of old.
func (s git) secrets(sub string, words []word) {
	if !oneOf(sub, "diff", "show", "log", "blame", "annotate", "cat-file", "archive", "grep", "reflog", "whatchanged", "diff-tree", "diff-files", "diff-index", "format-patch", "stash") {
		return
	}
	files := sub != "grep" // of which the first operand is a pattern
	for _, w := range words {
		files = files || w.text == "--"
		if !files || w.option() {
			continue
		}
		_, file, ok := strings.Cut(w.text, ":") // of a revision
		if !ok {
			file = w.text
		}
		if why := protected.Secret(file); why != "" && !(w.lit && file == path.Base(file) && !strings.Contains(file, ".")) {
			s.raise(EscapeAttempt, clip(w.src)+" "+why)
		}
	}
}
