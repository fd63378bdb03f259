//go:build unix

package exec

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

// program finds what argv[0] names: a path, relative to the folder the command
// runs in, or a name on the PATH the command gets. Relative entries of the
// PATH are passed over.
func program(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", tool.Failf(tool.BadArguments, tool.CodeBadArguments, "argv: the program's name is empty")
	}
	if strings.Contains(name, "/") {
		full := name
		if !filepath.IsAbs(full) {
			full = filepath.Join(dir, full)
		}
		info, err := os.Stat(full)
		switch {
		case err != nil:
			return "", missing(name)
		case info.IsDir() || info.Mode()&0o111 == 0:
			return "", tool.Failf(tool.Denied, CodeNotRunnable, "%s is not a program that can be run", name)
		}
		return full, nil
	}
	if full := process.LookPath(env, name); full != "" {
		return full, nil
	}
	return "", missing(name)
}

func missing(name string) error {
	return tool.Failf(tool.NotFound, CodeNoProgram, "there is no program %q", name).
		WithHint("check the name; for shell syntax use command instead of argv")
}

// Starts returns what the program would be started with, and which files it and
// programs of other names are for it.
func (p Program) Starts(names []string) tool.Start {
	s := tool.Start{Dir: p.Dir, Env: p.Env}
	for _, name := range append(p.Argv[:1:1], names...) {
		path, _ := program(name, p.Dir, p.Env)
		s.Programs = append(s.Programs, tool.FoundProgram{Name: name, Path: path})
	}
	return s
}
