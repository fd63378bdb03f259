//go:build unix

package file

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/workspace/protected"
)

const (
	maxPath = 4096
	maxName = 255
)

// Within is a path as it is spelled from a folder, if it is absolute and lies
// there as far as its text tells; others stay as they are. What is below the
// folder stays as it is spelled too.
func Within(dir, name string) string {
	dir = strings.TrimSuffix(dir, "/")
	if !strings.HasPrefix(name, "/") || !strings.HasPrefix(dir, "/") {
		return name
	}
	if strings.TrimRight(name, "/") == dir {
		return "."
	}
	if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
		return strings.TrimLeft(rest, "/")
	}
	return name
}

// Clean is the one spelling of a path that names something in the workspace:
// slash-separated, relative, without dot and dot-dot. Other paths are a problem.
func Clean(name string) (string, error) {
	switch {
	case name == "":
		return "", tool.Failf(tool.BadArguments, CodeBadPath, "the path is empty")
	case strings.IndexByte(name, 0) >= 0:
		return "", tool.Failf(tool.BadArguments, CodeBadPath, "the path contains a NUL character")
	case !utf8.ValidString(name):
		return "", tool.Failf(tool.BadArguments, CodeBadPath, "the path is not valid UTF-8")
	case len(name) > maxPath:
		return "", tool.Failf(tool.BadArguments, CodeBadPath, "the path has %d bytes; %d are possible", len(name), maxPath)
	case name[0] == '/':
		return "", outside(name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxName {
			return "", tool.Failf(tool.BadArguments, CodeBadPath, "a name in the path has %d bytes; %d are possible", len(part), maxName)
		}
	}
	clean := path.Clean(name)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", outside(name)
	}
	return clean, nil
}

func outside(name string) *tool.Error {
	return tool.Failf(tool.Denied, CodeOutside, "%s is outside the workspace", show(name)).
		WithHint("use a path relative to the workspace, without a leading / and without leaving it by .. or a link")
}

// show is a name for a message: bounded and without control characters.
func show(name string) string {
	if len(name) > 200 {
		name = name[:100] + "…" + name[len(name)-97:]
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, name)
}

// isProtected reports whether a path, free of links, must never be written: what
// git runs or obeys, and the runtime's own folder, at any depth and in any case.
// Whether it exists doesn't matter. Other protected names are the gate's
// business: a person may allow them.
func isProtected(real string) bool { return protected.Core(real) }
