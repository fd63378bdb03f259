package sandbox

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// maxSwept is how many entries of a folder that programs see are looked at for
// secrets, nearest to its root first.
const maxSwept = 50_000

// secretsIn lists what lies in folders and below, usually holds a secret and isn't in
// shown: files, and whole folders of keys. A link's target counts, if it is in one of
// the folders. Version control's own files and installed packages
// aren't looked through.
func secretsIn(roots []string, secret func(path string, folder bool) bool, shown func(path string) bool) (found []string) {
	hide := func(p string) {
		if !shown(p) && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	for _, root := range roots {
		seen := 0
		for level := []string{root}; len(level) > 0 && seen <= maxSwept; {
			var next []string
			for _, dir := range level {
				entries, err := os.ReadDir(dir)
				if err != nil {
					continue // a program can't read it either
				}
				for _, e := range entries {
					switch p := filepath.Join(dir, e.Name()); {
					case e.IsDir() && secret(p[len(root):], true):
						hide(p)
					case e.IsDir():
						if n := e.Name(); n != ".git" && n != "node_modules" {
							next = append(next, p)
						}
					case !secret(p[len(root):], false):
					case e.Type()&fs.ModeSymlink != 0:
						if real, err := filepath.EvalSymlinks(p); err == nil && slices.ContainsFunc(roots, func(r string) bool { return boxinit.Within(real, r) && real != r }) && regular(real) {
							hide(real)
						}
					case e.Type().IsRegular() && holdsSecret(p):
						hide(p)
					}
				}
				seen += len(entries)
			}
			level = next
		}
	}
	slices.Sort(found)
	return topmost(found)
}

func regular(p string) bool {
	info, err := os.Lstat(p)
	return err == nil && info.Mode().IsRegular()
}

// maxTold is how much of a file is read to find out whether it holds a secret.
const maxTold = 256 << 10

// holdsSecret reports whether a file that may hold a secret does. For certificates and
// settings of npm the content decides: builds need those without one.
func holdsSecret(p string) bool {
	var marks []string
	switch name := strings.ToLower(filepath.Base(p)); {
	case strings.HasSuffix(name, ".pem"):
		marks = []string{"PRIVATE KEY"}
	case name == ".npmrc":
		marks = []string{"_auth", "_password", "Token", "//"}
	default:
		return true
	}
	f, _, err := files.OpenUnlinked(p)
	if err != nil {
		return true
	}
	defer f.Close()
	b, err := files.UpTo(f, maxTold)
	return err != nil || slices.ContainsFunc(marks, func(m string) bool { return bytes.Contains(b, []byte(m)) })
}

// maxApart is how many files of a covered folder are covered one by one.
const maxApart = 1000

// apart covers the files of a folder one by one where version control knows some of
// them: it looks at each.
func apart(sealed, tracked []string) (all []string) {
	for _, p := range sealed {
		files := []string{p}
		if slices.ContainsFunc(tracked, func(t string) bool { return t != p && boxinit.Within(t, p) }) {
			if in := filesIn(p); len(in) > 0 {
				files = in
			}
		}
		all = append(all, files...)
	}
	return all
}

// filesIn are the ordinary files below a folder; none if they are too many.
func filesIn(dir string) (all []string) {
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || len(all) > maxApart:
			return fs.ErrInvalid
		case !e.IsDir() && !e.Type().IsRegular():
			return fs.ErrInvalid // what a link leads to may be anything
		case !e.IsDir():
			all = append(all, p)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return all
}

// toGit makes git take a file for unchanged that has the size and time it noted,
// whatever else a cover can't have, and tells it the attributes.
func toGit(env []string) []string {
	n := 0
	env = slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		count, ok := strings.CutPrefix(e, "GIT_CONFIG_COUNT=")
		if ok {
			n, _ = strconv.Atoi(count)
		}
		return ok
	})
	for _, s := range [][2]string{{"core.checkStat", "minimal"}, {"core.trustctime", "false"}, {"core.attributesFile", boxinit.Attributes}} {
		env = append(env, "GIT_CONFIG_KEY_"+strconv.Itoa(n)+"="+s[0], "GIT_CONFIG_VALUE_"+strconv.Itoa(n)+"="+s[1])
		n++
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(n))
}
