package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/belay-run/belay/internal/lib/match"
)

// isBuiltin reports whether a name is a command of the shell itself.
func isBuiltin(name string) bool {
	switch name {
	case ":", ".", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen",
		"complete", "compopt", "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export",
		"false", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout",
		"mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt",
		"source", "suspend", "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
		"wait":
		return true
	}
	return false
}

// builtin is a command of the shell itself.
type builtin struct{ *start }

// judge judges it by its name.
func (s builtin) judge() outcome {
	if s.r.dialect != Bash && (onlyBash(s.name) || s.name == "exec" && len(s.args) > 0 && s.args[0].option()) {
		s.raise(Unparsable, "sh may run a program of that name, or do something else")
	}
	switch s.name {
	case "cd", "pushd", "popd":
		return s.cd()
	case "eval":
		return s.eval()
	case "exec", "command", "builtin":
		return s.prefix()
	case "source", ".":
		return s.sourced()
	case "trap":
		s.trap()
	case "alias":
		s.forbid(func(w word) bool { return !w.lit || strings.Contains(w.text, "=") }, "what an alias makes of later lines depends on the shell")
	case "set":
		end := slices.IndexFunc(append(s.args[:len(s.args):len(s.args)], literal("--")), func(w word) bool { return w.lit && w.text == "--" })
		if slices.ContainsFunc(s.args[:end], func(w word) bool {
			return !w.lit && w.option() || (w.option() || strings.HasPrefix(w.text, "+")) && !setPlain.Match(w.text) ||
				oneOf(w.text, "posix", "keyword", "noexec", "onecmd", "braceexpand", "allexport", "history", "privileged", "physical", "emacs", "vi")
		}) {
			s.raise(Unparsable, "set changes how the rest is read")
		}
	case "shopt":
		s.forbid(func(w word) bool {
			return !w.lit || !oneOf(w.text, "-p", "-q", "-s", "-u", "nullglob", "failglob", "nocasematch", "globstar", "inherit_errexit")
		}, "shopt changes how the rest is read")
	case "test", "[":
		s.testBuiltin()
	case "printf", "read", "mapfile", "readarray", "unset", "getopts", "wait":
		s.naming()
	case "declare", "export", "local", "readonly", "typeset":
		s.declared()
	case "kill":
		s.start.judge(lookup("kill"), s.args)
	case "jobs":
		s.forbid(func(w word) bool { return !w.lit || w.option() && strings.Contains(w.text, "x") }, "jobs -x runs a command")
	case "let":
		s.r.hides("arithmetic evaluates what its names hold")
	case "enable", "bind", "complete", "compopt", "compgen", "fc", "history", "hash":
		s.forbid(func(w word) bool {
			return !w.lit || !oneOf(w.text, "-l", "-r", "-c", "-b", "-k", "-a") || s.name == "bind"
		}, s.name+" changes or runs what can't be judged")
	}
	s.finish()
	return stays(s.sc.dirs)
}

func oneOf(s string, list ...string) bool {
	return slices.Contains(list, s)
}

// forbid makes the command Unparsable when a word is one of those.
func (s builtin) forbid(bad func(word) bool, why string) {
	for _, w := range s.args {
		if bad(w) {
			s.raise(Unparsable, why)
			return
		}
	}
}

// cd follows a change of directory; when it fails the shell is where it was.
func (s builtin) cd() outcome {
	before := s.sc.dirs
	s.finish()
	words := s.args
	for len(words) > 0 && words[0].lit && oneOf(words[0].text, "-L", "-P", "-e", "--", "-n") {
		words = words[1:]
	}
	switch {
	case s.name == "popd" || len(words) > 1:
		return outcome{anywhere, anywhere}
	case len(words) == 0 && s.name == "cd" && s.r.o.Home != "":
		return outcome{dirs{known: true, list: []string{s.r.o.Home}}, before}
	case len(words) == 0 || !words[0].lit || words[0].text == "" || strings.HasPrefix(words[0].text, "-") || strings.HasPrefix(words[0].text, "+"):
		return outcome{ok: anywhere, fail: before}
	}
	if crosses(words[0].text) { // where that leads depends on links
		return outcome{ok: anywhere, fail: before}
	}
	return outcome{ok: before.to(words[0].text), fail: before}
}

// eval reads its words as a source of the same shell.
func (s builtin) eval() outcome {
	words := s.args
	if len(words) > 0 && words[0].lit && words[0].text == "--" {
		words = words[1:]
	}
	list, ok := texts(words)
	if !ok {
		s.raise(Unparsable, "eval runs what only shows when it runs")
		s.finish()
		return outcome{}
	}
	if s.touches() || len(list) == 0 {
		s.finish()
	}
	s.r.script(strings.Join(list, " "), s.r.dialect, s.sc, s.wrappedIn())
	return stays(s.sc.dirs)
}

// wrappedIn is the list of wrappers for what this command runs.
func (s *start) wrappedIn() []string {
	return append(s.call.wrapped[:len(s.call.wrapped):len(s.call.wrapped)], s.name)
}

// prefix judges exec, command and builtin, which run their words.
func (s builtin) prefix() outcome {
	words := s.args
	for len(words) > 0 && words[0].option() {
		w := words[0]
		if s.name == "command" && w.lit && strings.ContainsAny(w.text, "vV") {
			s.finish()
			return stays(s.sc.dirs)
		}
		clear := w.lit && (s.name != "exec" || oneOf(w.text, "-a", "-c", "-l", "-cl", "-lc", "--"))
		if clear && s.name == "exec" && w.text == "-a" {
			words = words[1:]
			clear = len(words) == 0 || !words[0].several()
		}
		if !clear {
			s.raise(Unparsable, "which command this is only shows when it runs")
			s.finish()
			return outcome{}
		}
		if words = words[min(1, len(words)):]; w.text == "--" {
			break
		}
	}
	if len(words) == 0 {
		s.finish()
		return stays(s.sc.dirs)
	}
	in := *s.sc
	in.funcs = nil
	out := s.r.run(words, &in, call{direct: s.name == "exec", in: s.call.in, paths: s.Command, wrapped: s.wrappedIn()})
	s.sc.loose = in.loose
	return out
}

// sourced judges a file that the shell reads as if it stood here.
func (s builtin) sourced() outcome {
	if len(s.args) > 0 && s.call.in.known && s.args[0].lit && oneOf(s.args[0].text, "/dev/stdin", "/dev/fd/0") {
		s.finishTouched()
		s.r.script(s.call.in.text, s.r.dialect, s.sc, s.wrappedIn())
		return stays(s.sc.dirs)
	}
	if len(s.args) > 0 {
		s.runsFile(s.args[0])
	}
	s.finish()
	s.sc.loose = true
	return outcome{anywhere, anywhere}
}

// trap reads the command of a trap, which runs at any time.
func (s builtin) trap() {
	words := s.args
	for len(words) > 0 && words[0].lit && oneOf(words[0].text, "-p", "-l", "--", "-P") {
		words = words[1:]
	}
	if slices.ContainsFunc(words, word.several) {
		s.raise(Unparsable, "trap runs what only shows when it runs")
	}
	if len(words) < 2 || words[0].lit && words[0].text == "-" {
		return
	}
	in := s.sc.inner()
	s.r.adrift(in)
	if !words[0].lit {
		s.raise(Unparsable, "trap runs what only shows when it runs")
		return
	}
	s.r.script(words[0].text, s.r.dialect, in, s.wrappedIn())
}

// setPlain are the options of set that don't change how the rest is read.
var setPlain = match.Lazy(`^[-+][euxvfCbhETo]*$`)

// shellOption judges what set -o and the -o of a shell name.
func (s *start) shellOption(w word) {
	if !w.lit || !oneOf(w.text, "pipefail", "errexit", "nounset", "xtrace", "noglob", "noclobber", "verbose", "errtrace", "functrace") {
		s.raise(Unparsable, "option "+clip(w.src)+" of a shell changes how it reads")
	}
}

// testBuiltin judges test and [, which look into a subscript after -v.
func (s builtin) testBuiltin() {
	for i, w := range s.args {
		var next word
		if i+1 < len(s.args) {
			next = s.args[i+1]
		}
		if w.several() && !w.glob || w.option() && (!next.lit || next.text != "]" && strings.Contains(next.text, "[")) && (!w.lit || oneOf(w.text, "-v", "-R")) {
			s.r.hides(clip(w.src) + " may be -v, and what follows a subscript that runs commands")
		}
	}
}

// naming judges builtins that assign to the variables that their words name.
func (s builtin) naming() {
	if s.name == "printf" && len(s.args) > 0 && (len(s.args) == 1 && !s.args[0].several() || s.args[0].lit && !strings.HasPrefix(s.args[0].text, "-v")) {
		return // it is the format
	}
	for _, w := range s.args {
		switch {
		case variableName(w):
			s.named(w)
		case !w.lit && w.option() || strings.Contains(w.text, "[") || w.lit && strings.HasPrefix(w.text, "-C"):
			s.r.hides(clip(w.src) + " may be a variable whose name runs commands")
		}
	}
}

// named judges a variable that a builtin sets to an unknown value.
func (s *start) named(w word) {
	if !variableName(w) {
		s.r.hides("a variable whose name " + clip(w.src) + " isn't plain may run commands or change what they mean")
		return
	}
	s.r.variable(&s.Command, w.text, word{src: "what is read"}, s.sc, false)
}

// variableName reports whether a word is a plain name.
func variableName(w word) bool {
	return w.lit && syntax.ValidName(w.text)
}

// declared judges declare, export and the like where they are written so that
// the parser takes them for any command.
func (s builtin) declared() {
	for _, w := range s.args {
		name, value, ok := strings.Cut(w.text, "=")
		switch {
		case w.lit && w.option() && plainAttributes(w.text):
		case !variableName(literal(name)) || !w.lit && !ok:
			s.r.hides(s.name + " " + clip(w.src) + " may run commands or change what they mean")
		case ok:
			v := literal(value)
			if !w.lit {
				v = w.from(len(name) + 1)
			}
			s.r.variable(&s.Command, name, v, s.sc, s.name == "export")
		}
	}
}

// plainAttributes reports whether the options of declare change nothing but who
// sees a variable: not -i, which evaluates values, nor -n, which points away.
func plainAttributes(opts string) bool {
	return strings.Trim(opts[1:], "xrgaAfFpult") == ""
}

// shows judges export NAME: programs see the value that the variable has.
func (s *start) shows(name string) {
	if !listed(quietVariables[:], name) && !listed(rulingVariables[:], name) && !listed(commandVariables[:], name) {
		s.raise(WriteWorkspace, "programs see the variable "+clip(name)+", whatever it means to them")
	}
}

// declare judges the clause that declare, export and the like are parsed as.
func (r *reader) declare(c *syntax.DeclClause, sc *scope) {
	s := &start{r: r, sc: sc, name: c.Variant.Value}
	exports := s.name == "export"
	s.raise(ReadOnly, "")
	for _, as := range c.Args {
		if as.Name != nil {
			if as.Naked {
				if as.Index != nil {
					r.arithm(as.Index, sc)
				}
				if exports {
					s.shows(as.Name.Value)
				}
				continue
			}
			if r.dialect != Bash && r.word(as.Value, sc).split {
				s.raise(Unparsable, "some shells make several assignments of a value that isn't quoted")
			}
			r.assignment(as, sc, &s.Command, exports)
			continue
		}
		w := r.word(as.Value, sc)
		s.args = append(s.args, w)
		exports = exports || strings.Contains(w.text, "x")
		if !w.lit || !w.option() || !plainAttributes(w.text) {
			s.r.hides(s.name + " " + clip(w.src) + " may run commands or change what they mean")
		}
	}
	if s.name == "nameref" {
		s.raise(Unparsable, "nameref makes one name mean another")
	}
	s.finish()
}
