package shell

import (
	"cmp"
	"slices"
	"strings"
)

// gitSettings are settings that hold no command and lead nowhere. A name that ends
// in * is a prefix.
var gitSettings = [...]string{"color.*", "user.name", "user.email", "advice.*", "core.quotepath", "core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.precomposeunicode", "core.abbrev", "core.safecrlf", "core.whitespace", "init.defaultbranch", "log.*", "diff.algorithm", "diff.noprefix", "diff.mnemonicprefix", "diff.renames", "diff.renamelimit", "diff.context", "diff.wserrorhighlight", "diff.colormoved", "merge.conflictstyle", "merge.ff", "pull.rebase", "pull.ff", "push.default", "push.autosetupremote", "fetch.prune", "rebase.autostash", "rebase.autosquash", "gc.auto", "commit.gpgsign", "tag.gpgsign", "commit.verbose", "status.*", "column.*", "grep.*", "blame.*", "rerere.enabled", "feature.*", "index.*", "pack.*", "branch.autosetuprebase", "branch.autosetupmerge", "branch.sort", "tag.sort", "versionsort.*", "format.pretty", "safe.directory", "i18n.*", "help.autocorrect", "stash.*", "protocol.version", "http.postbuffer", "submodule.recurse", "core.commentchar", "core.fscache", "core.longpaths", "core.compression"}

func harmlessSetting(name string) bool { return listed(gitSettings[:], strings.ToLower(name)) }

// gitSetting judges git -c NAME=VALUE.
func (s *optionReader) gitSetting(w word) {
	name, value, _ := strings.Cut(w.text, "=")
	low := strings.ToLower(name)
	switch {
	case harmlessSetting(name) && (w.lit || strings.Contains(w.text, "=")):
	case w.lit && (oneOf(low, "core.pager", "core.editor", "sequence.editor", "core.sshcommand") || strings.HasPrefix(low, "pager.")):
		if value != "" && !oneOf(value, "true", "false") {
			s.source(literal(value), "git -c "+name)
		}
	default:
		s.raise(Unparsable, "git -c "+clip(w.src)+" may hold a command")
	}
}

// gitPlace judges --git-dir and --work-tree: settings found there may hold
// commands.
func (s *optionReader) gitPlace(w word) {
	if !s.inWorkspace(w) {
		s.raise(EscapeAttempt, "the repository "+clip(w.src)+" is outside the workspace")
	}
	s.raise(WriteWorkspace, "settings found in "+clip(w.src)+" may hold commands")
}

// git is a command of git.
type git struct{ *start }

// subcommand judges what a row can't tell; false is a subcommand that its row is
// enough for.
func (s git) subcommand(sub string, p *program, words []word) bool {
	s.elsewhere()
	s.secrets(sub, words)
	switch sub {
	case "config":
		s.config(words)
		return true
	case "reflog":
		if hasWord(words, "expire", "delete", "drop", "write") {
			s.raise(Destructive, "what it throws away isn't kept")
		}
	case "rm":
		if hasWord(words, "--cached") {
			s.raise(WriteWorkspace, "it changes the index")
			return true
		}
	case "checkout":
		s.checkout(words)
	case "clone", "fetch", "pull", "push", "ls-remote":
		s.remote(sub, p, words)
		return true
	case "diff", "grep": // they read what is in no repository, too
		for _, w := range words {
			if strings.HasPrefix(w.text, "/") || strings.Contains(w.text, "../") || !s.sc.dirs.known {
				s.read(w)
			}
		}
	}
	return false
}

// hasWord reports whether one of the words is one of a list.
func hasWord(words []word, list ...string) bool {
	return slices.ContainsFunc(words, func(w word) bool { return w.lit && oneOf(w.text, list...) })
}

// elsewhere judges git in another folder than that of the workspace:
// it may hold a repository of its own, even one without .git, whose settings
// hold commands.
func (s git) elsewhere() {
	d, home := s.sc.dirs, cmp.Or(s.r.o.Workspace, s.r.o.Dir)
	if home == "" {
		return
	}
	for _, p := range d.list {
		if p != home {
			s.raise(WriteWorkspace, "settings found in "+p+" may hold commands")
		}
	}
	if !d.known {
		s.raise(WriteWorkspace, "settings found where it runs may hold commands")
	}
}

// config judges git config: looking is harmless, changing isn't.
func (s git) config(words []word) {
	var operands []string
	asks, outside := false, false
	for _, w := range words {
		switch {
		case !w.lit:
			s.raise(EscapeAttempt, clip(w.src)+" may change any setting")
		case oneOf(w.text, "--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch", "--get-color", "--get-colorbool") || len(operands) == 0 && oneOf(w.text, "list", "get"):
			asks = true
		case oneOf(w.text, "--global", "--system"):
			outside = true
		case oneOf(w.text, "--local", "--worktree", "--show-origin", "--show-scope", "--name-only", "-z", "--null", "--includes", "--no-includes", "--bool", "--int", "--path", "--type=bool", "--type=int", "--type=path", "--all"):
		case strings.HasPrefix(w.text, "-"):
			s.raise(EscapeAttempt, "it changes settings that may hold commands")
		default:
			operands = append(operands, w.text)
		}
	}
	if len(operands) > 0 && operands[0] == "set" {
		operands = operands[1:]
	} else if asks || len(operands) < 2 && !slices.Contains(operands, "edit") {
		return
	}
	switch {
	case outside:
		s.raise(EscapeAttempt, "it changes settings outside the workspace")
	case len(operands) > 0 && harmlessSetting(operands[0]) && operands[0] != "safe.directory":
		s.raise(WriteWorkspace, "it changes a setting of the repository")
	default:
		s.raise(EscapeAttempt, "it changes .git/config, whose settings may hold commands")
	}
}

// checkout judges git checkout: going to a branch keeps changes, naming
// files throws them away.
func (s git) checkout(words []word) {
	for i, w := range words {
		switch {
		case !w.lit:
			s.raise(Destructive, clip(w.src)+" may throw changes away")
		case oneOf(w.text, "-b", "--orphan", "--track", "-t"):
			return
		case oneOf(w.text, "--", ".", "-f", "--force", "-B", "--ours", "--theirs", "-p", "--patch") || i > 0 && !strings.HasPrefix(w.text, "-"):
			s.raise(Destructive, "what git checkout throws away isn't kept")
		case strings.Contains(w.text, "/") && strings.Contains(w.text, "."), strings.ContainsAny(w.text, "*?"):
			s.raise(Destructive, clip(w.text)+" may be a file whose changes are thrown away")
		}
	}
}

// remote judges what speaks to another repository.
func (s git) remote(sub string, p *program, words []word) {
	operands := s.options(p, words)
	s.raise(p.class, p.why)
	for i, w := range operands {
		if strings.Contains(w.text, "::") || strings.HasPrefix(w.text, "ext:") || strings.HasPrefix(w.text, "-") {
			s.raise(Unparsable, "git runs a helper for "+clip(w.src))
		}
		if strings.Contains(w.text, "://") || i == 0 && strings.Contains(w.text, "@") && strings.Contains(w.text, ":") {
			s.host(w)
		}
		if sub == "push" && (strings.HasPrefix(w.text, "+") || strings.HasPrefix(w.text, ":")) {
			s.raise(Destructive, "it overwrites or removes what others have")
		}
		if sub == "clone" && i == 1 {
			s.write(w)
		}
	}
	if sub == "clone" && len(operands) == 1 {
		s.write(literal("."))
	}
}
