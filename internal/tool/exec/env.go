//go:build unix

package exec

import (
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/tool"
)

// inherited are the variables of an environment that pass, and a PATH in any case.
func inherited(from []string, pass func(name string) bool) map[string]string {
	vars := map[string]string{"PATH": process.SystemPath}
	for _, kv := range from {
		if name, value, ok := strings.Cut(kv, "="); ok && pass(name) {
			vars[name] = value
		}
	}
	return vars
}

// sorted is an environment of variables and PWD, the folder a program runs in.
func sorted(vars map[string]string, dir string) []string {
	vars["PWD"], vars[process.Parent] = dir, "1"
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// environment is what a program gets: the allowed variables of the runtime and
// those that the call declares, none of them refused.
func environment(from []string, declared map[string]string, dir string) ([]string, error) {
	vars := inherited(from, allowed)
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if !match.Variable.Match(name) || strings.IndexByte(declared[name], 0) >= 0 {
			return nil, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "env: %q is not a variable that can be set", name)
		}
		if why := refused(name); why != "" {
			return nil, tool.Failf(tool.Denied, CodeEnvRefused, "env: %s may not be set: %s", name, why).
				WithHint("leave %s out", name)
		}
		vars[name] = declared[name]
	}
	return sorted(vars, dir), nil
}

// allowed reports whether the runtime's own variable is passed on.
func allowed(name string) bool {
	switch name {
	case "PATH", "HOME", "LANG", "TERM", "TMPDIR":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// refused returns why a variable may not be set, or nothing.
func refused(name string) string {
	n := strings.ToUpper(name)
	for _, begin := range [...]string{"LD_", "DYLD_", "GIT_", "BASH_FUNC_", "BELAY_"} {
		if strings.HasPrefix(n, begin) {
			return "it changes which code runs"
		}
	}
	if strings.HasSuffix(n, "_OPTIONS") || strings.HasSuffix(n, "_PRELOAD") {
		return "it changes which code runs"
	}
	switch n {
	case "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_COMPAT", "POSIXLY_CORRECT", "BASH_LOADABLES_PATH", "BASH_XTRACEFD", "EXECIGNORE", "GLOBIGNORE", "PROMPT_COMMAND", "PS0", "PS4", "IFS", "PERL5OPT", "PERL5DB", "RUBYOPT",
		"PYTHONSTARTUP", "PYTHONHOME", "GCONV_PATH", "EDITOR", "VISUAL", "PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE":
		return "it changes which code runs"
	}
	if secret.IsName(name) {
		return "it is the name of a secret, and arguments are recorded"
	}
	return ""
}

// Named is an environment of PATH, PWD, the runtime's variables that are named
// and those that are set. It is for tools that a person declared, so nothing is
// refused; what is not named doesn't pass.
func Named(from, pass []string, set map[string]string, dir string) []string {
	vars := inherited(from, func(name string) bool { return name == "PATH" || slices.Contains(pass, name) })
	maps.Copy(vars, set)
	return sorted(vars, dir)
}
