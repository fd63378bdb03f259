package shell

import (
	"cmp"
	"slices"
	"strings"
)

// gitSettings are settings that hold no command and lead nowhere.
var gitSettings = [...]string{"color.", "user.name", "user.email", "advice.", "core.quotepath", "core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.precomposeunicode", "core.abbrev", "core.safecrlf", "core.whitespace", "init.defaultbranch", "log.", "diff.algorithm", "diff.noprefix", "diff.mnemonicprefix", "diff.renames", "diff.renamelimit", "diff.context", "diff.wserrorhighlight", "diff.colormoved", "merge.conflictstyle", "merge.ff", "pull.rebase", "pull.ff", "push.default", "push.autosetupremote", "fetch.prune", "rebase.autostash", "rebase.autosquash", "gc.auto", "commit.gpgsign", "tag.gpgsign", "commit.verbose", "status.", "column.", "grep.", "blame.", "rerere.enabled", "feature.", "index.", "pack.", "branch.autosetuprebase", "branch.autosetupmerge", "branch.sort", "tag.sort", "versionsort.", "format.pretty", "safe.directory", "i18n.", "help.autocorrect", "stash.", "protocol.version", "http.postbuffer", "submodule.recurse", "core.commentchar", "core.fscache", "core.longpaths", "core.compression"}

func harmlessSetting(name string) bool {
	name = strings.ToLower(name)
	for _, p := range gitSettings {
		if name == p || strings.HasSuffix(p, ".") && strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// gitSetting judges git -c NAME=VALUE.
func (s *start) gitSetting(w word) {
	name, value, _ := strings.Cut(w.text, "=")
	low := strings.ToLower(name)
	switch {
	case harmlessSetting(name) && (w.lit || strings.Contains(w.text, "=")):
	case w.lit && (low == "core.pager" || strings.HasPrefix(low, "pager.") || low == "core.editor" || low == "sequence.editor" || low == "core.sshcommand"):
		if value != "" && !oneOf(value, "true", "false") {
			s.source(literal(value), "git -c "+name)
		}
	case w.lit && strings.HasPrefix(low, "alias.") && strings.HasPrefix(value, "!"):
		s.source(literal(value[1:]), "git -c "+name)
		s.raise(Unparsable, "an alias of git runs a command")
	default:
		s.raise(Unparsable, "git -c "+clip(w.src)+" may hold a command")
	}
}

// gitPlace judges --git-dir and --work-tree: settings found there may hold
// commands.
func (s *start) gitPlace(w word) {
	names, known := s.r.places(w, s.sc)
	for _, p := range names {
		known = known && s.r.o.Workspace != "" && within(p, s.r.o.Workspace)
	}
	if !known {
		s.raise(EscapeAttempt, "the repository "+clip(w.src)+" is outside the workspace")
	}
	s.raise(WriteWorkspace, "settings found in "+clip(w.src)+" may hold commands")
}

// specialSub judges subcommands that a row can't tell; false is one that its
// row is enough for.
func (s *start) specialSub(name string, p *program, words []word) bool {
	sub, ok := strings.CutPrefix(name, "git ")
	if !ok {
		return s.otherSub(name, p, words)
	}
	s.gitElsewhere()
	s.gitFiles(sub, words)
	first := ""
	if len(words) > 0 && words[0].lit {
		first = words[0].text
	}
	switch sub {
	case "config":
		s.gitConfig(words)
	case "branch", "tag", "remote", "stash", "worktree", "notes", "submodule", "bisect", "symbolic-ref", "lfs", "sparse-checkout", "bundle", "maintenance", "replace", "rerere", "reflog":
		return s.gitList(sub, first, words)
	case "init":
		for _, w := range words {
			if !w.option() {
				s.writes(w)
			}
		}
		return false
	case "rm":
		for _, w := range words {
			if w.lit && w.text == "--cached" {
				s.raise(WriteWorkspace, "it changes the index")
				return true
			}
		}
		return false
	case "checkout":
		return s.gitCheckout(words)
	case "clone", "fetch", "pull", "push", "ls-remote":
		s.gitRemote(sub, p, words)
	case "grep", "log", "show", "diff":
		s.judge(p, words)
	default:
		return false
	}
	return true
}

// gitElsewhere judges git in another folder than that of the workspace:
// it may hold a repository of its own, even one without .git, whose settings
// hold commands.
func (s *start) gitElsewhere() {
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

// gitFiles notes what git diff and git grep read that is in no repository.
func (s *start) gitFiles(sub string, words []word) {
	if !oneOf(sub, "diff", "grep") {
		return
	}
	for _, w := range words {
		if strings.HasPrefix(w.text, "/") || strings.Contains(w.text, "../") || !s.sc.dirs.known {
			s.r.reads(&s.touched, w, s.sc)
		}
	}
}

// gitConfig judges git config: looking is harmless, changing isn't.
func (s *start) gitConfig(words []word) {
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

// gitLists are subcommands of git's subcommands, by what they do. What isn't
// there is judged by the row.
var gitLists = []struct {
	name  string // "" is without words
	class Class
}{
	{"stash list,stash show,worktree list,submodule status,submodule summary,notes show,notes list,bisect log,bisect visualize-none,remote -v,remote --verbose,remote get-url,reflog show,reflog list,reflog exists,sparse-checkout list,lfs ls-files,lfs status,lfs env,bundle verify,bundle list-heads,rerere status,rerere diff,tag -l,tag --list,tag -n,tag --contains,tag --points-at,tag --merged,tag --sort,branch -a,branch -r,branch -v,branch -vv,branch -l,branch --list,branch --all,branch --show-current,branch --contains,branch --merged,branch --no-merged,branch --sort,branch --format,branch --remotes,branch --points-at", ReadOnly},
	{"stash drop,stash clear,branch -D,branch -d,branch --delete,branch -f,branch --force,branch -M,branch -C,tag -d,tag --delete,tag -f,tag --force,worktree remove,worktree prune,reflog expire,reflog delete,submodule deinit,notes remove,notes prune,remote rm,remote remove,remote prune,replace -d,symbolic-ref -d", Destructive},
	{"remote update,remote show,submodule update,submodule add,submodule init,lfs fetch,lfs pull,lfs push,lfs clone,maintenance run", Network},
	{"remote add,remote set-url,remote rename,remote set-head,remote set-branches,submodule set-url,submodule sync,lfs install,maintenance start,maintenance register", EscapeAttempt},
	{"submodule foreach,bisect run", Unparsable},
}

// gitList judges a subcommand that lists or changes by its first word. It is
// read-only only if every option is one that lists.
func (s *start) gitList(sub, first string, words []word) bool {
	if sub == "reflog" && !oneOf(first, "expire", "delete", "drop", "show", "list", "exists", "write") {
		return false // it is a log
	}
	if name, _, ok := strings.Cut(first, "="); ok && strings.HasPrefix(first, "--") {
		first = name
	}
	class := WriteWorkspace
	switch {
	case len(words) == 0 && sub != "stash":
		class = ReadOnly
	case (sub == "worktree" && first == "add" || sub == "bundle" && first == "create") && len(words) > 1:
		s.creates(words[1:])
	case sub == "bisect" && first == "run":
		s.r.run(words[1:], s.within(), s.inner())
	case sub == "submodule" && first == "foreach":
		s.foreach(words[1:])
	default:
		for _, l := range gitLists {
			if first != "" && names(l.name, sub+" "+first) {
				class = l.class
			}
		}
	}
	if class == ReadOnly {
		class = s.onlyLists(sub, words)
	} else {
		for _, w := range words { // a later option may do more than the first
			for _, l := range gitLists {
				if w.lit && names(l.name, sub+" "+w.text) {
					class = Join(class, l.class)
				}
			}
			if !w.lit {
				class = Join(class, Destructive)
			}
		}
	}
	if class == Unparsable && (sub == "bisect" || sub == "submodule") {
		class = WriteWorkspace // what it runs is judged by itself
	}
	s.raise(class, "git "+sub+" "+clip(first)+" changes the repository")
	return true
}

// creates judges what git worktree add and git bundle create write: the first
// operand, wherever it stands among the options.
func (s *start) creates(words []word) {
	s.writes(literal("."))
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w.lit && oneOf(w.text, "-b", "-B", "--reason"):
			i++
		case !w.option():
			s.writes(w)
			return
		}
	}
}

// onlyLists looks at all words of a subcommand that seems to list.
func (s *start) onlyLists(sub string, words []word) Class {
	for _, w := range words {
		switch {
		case !w.lit:
			return Destructive
		case strings.HasPrefix(w.text, "-"):
			name, _, _ := strings.Cut(w.text, "=")
			if names(gitLists[0].name, sub+" "+name) || oneOf(name, "--color", "--no-color", "--column", "--no-column", "--abbrev", "--no-abbrev", "--ignore-case", "-i", "--porcelain", "-z", "-p", "--stat", "--name-only", "--name-status", "--patch", "-q", "--cached", "--recursive", "--all", "--push") || strings.HasPrefix(name, "-n") || oneOf(name, "-av", "-avv", "-rv", "-ra", "-vva", "-va") {
				continue
			}
			return Destructive
		case groups(sub) && strings.HasPrefix(words[0].text, "-"):
			return Destructive // an option before the subcommand hides it
		case !groups(sub) && !slices.ContainsFunc(words, listing):
			return WriteWorkspace // with a name it makes one
		}
	}
	return ReadOnly
}

// groups tells whether a subcommand of git has subcommands of its own.
func groups(sub string) bool {
	return !oneOf(sub, "branch", "tag", "symbolic-ref", "replace")
}

// listing tells whether an option makes git branch and git tag take names for
// patterns.
func listing(w word) bool {
	name, _, _ := strings.Cut(w.text, "=")
	return w.lit && (oneOf(name, "--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at") || strings.HasPrefix(name, "-n"))
}

// foreach judges git submodule foreach, whose words a shell reads.
func (s *start) foreach(words []word) {
	for len(words) > 0 && words[0].lit && oneOf(words[0].text, "--recursive", "--quiet") {
		words = words[1:]
	}
	list, ok := texts(words)
	if !ok {
		s.raise(Unparsable, "it hands a shell what only shows when it runs")
		return
	}
	in := s.within()
	in.dirs = dirs{}
	s.r.script(strings.Join(list, " "), in, s.wrappedIn())
}

// gitCheckout judges git checkout: going to a branch keeps changes, naming
// files throws them away.
func (s *start) gitCheckout(words []word) bool {
	for i, w := range words {
		switch {
		case !w.lit:
			s.raise(Destructive, clip(w.src)+" may throw changes away")
		case oneOf(w.text, "-b", "--orphan", "--track", "-t"):
			return false
		case oneOf(w.text, "--", ".", "-f", "--force", "-B", "--ours", "--theirs", "-p", "--patch") || i > 0 && !strings.HasPrefix(w.text, "-"):
			s.raise(Destructive, "what git checkout throws away isn't kept")
		case strings.Contains(w.text, "/") && strings.Contains(w.text, "."), strings.ContainsAny(w.text, "*?"):
			s.raise(Destructive, clip(w.text)+" may be a file whose changes are thrown away")
		}
	}
	return false
}

// gitRemote judges what speaks to another repository.
func (s *start) gitRemote(sub string, p *program, words []word) {
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
			s.writes(w)
		}
	}
	if sub == "clone" && len(operands) == 1 {
		s.writes(literal("."))
	}
}
