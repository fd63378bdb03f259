//go:build unix

package fswalk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/files"
)

// maxIgnore is how many bytes of an ignore file are read.
const maxIgnore = 1 << 20

// rules are the ignore rules of a folder and of those above it.
type rules struct {
	above *rules
	skip  int // bytes of a path that stand before what the rules are held against
	list  []rule
}

// rule is one line of an ignore file.
type rule struct {
	keep    bool // it begins with !
	folders bool // it is about folders only
	pattern pathPattern
}

// ignored reports whether a path is excluded: the last rule that fits decides,
// and a file further down speaks before one above.
func (r *rules) ignored(full, name string, dir bool) bool {
	for ; r != nil; r = r.above {
		for i := len(r.list) - 1; i >= 0; i-- {
			l := &r.list[i]
			if l.folders && !dir {
				continue
			}
			p := name
			if !l.pattern.base {
				p = full[r.skip:]
			}
			if l.pattern.match(p) {
				return !l.keep
			}
		}
	}
	return false
}

// rulesAbove are the rules of the folders above one.
func rulesAbove(root *os.Root, start string) (r *rules, err error) {
	if start == "." {
		return nil, nil
	}
	at := "."
	for part := range strings.SplitSeq(start, "/") {
		f, err := open(root, at, r)
		if err != nil {
			return nil, err
		}
		r = f.withRules()
		f.root.Close()
		at = path.Join(at, part)
	}
	return r, nil
}

// withRules are the rules that hold in a folder: those from above and its own.
func (f *folder) withRules() *rules {
	own := &rules{above: f.rules}
	if f.path != "." {
		own.skip = len(f.path) + 1
	}
	if info, err := f.root.Lstat(".git"); err == nil && info.IsDir() {
		own.list = f.readRules(".git/info/exclude")
	}
	own.list = slices.Concat(own.list, f.readRules(".gitignore"), f.readRules(".ignore"))
	if len(own.list) == 0 {
		return f.rules
	}
	return own
}

// readRules reads an ignore file; one that can't be read says nothing, and a
// link isn't followed, as git doesn't.
func (f *folder) readRules(name string) []rule {
	if info, err := f.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, _, err := files.OpenIn(f.root, name)
	if err != nil {
		return nil
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxIgnore))
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return parseRules(string(b))
}

// parseRules reads the lines of an ignore file.
func parseRules(text string) (list []rule) {
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		if r, ok := parseRule(line); ok {
			list = append(list, r)
		}
	}
	return list
}

func parseRule(line string) (r rule, ok bool) {
	line = trimSpaces(strings.TrimSuffix(line, "\r"))
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.keep, line = true, line[1:]
	}
	line, r.folders = strings.CutSuffix(line, "/")
	if line == "" {
		return r, false
	}
	r.pattern, ok = readPattern(line, true)
	return r, ok
}

// trimSpaces removes spaces at the end that no backslash protects.
func trimSpaces(s string) string {
	end := -1 // where the spaces begin that end the line
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if end < 0 {
				end = i
			}
		case '\\':
			i++
			end = -1
		default:
			end = -1
		}
	}
	if end >= 0 {
		return s[:end]
	}
	return s
}
