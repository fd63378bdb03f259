package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Variables by what setting them does to the programs that see them. A name
// that ends in * is a prefix.
var (
	// quietVariables change how output looks, or nothing.
	quietVariables = [...]string{"LC_*", "LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLORTERM", "CI", "LS_COLORS", "GREP_COLOR", "GREP_COLORS", "RUST_BACKTRACE", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_LITERAL_PATHSPECS", "GIT_MERGE_AUTOEDIT", "DEBIAN_FRONTEND", "QUOTING_STYLE", "BLOCK_SIZE", "TIME_STYLE"}
	// countedVariables hold numbers: bash evaluates what they get.
	countedVariables = [...]string{"RANDOM", "SRANDOM", "SECONDS", "LINENO", "OPTIND", "HISTCMD", "BASHPID", "BASH_SUBSHELL", "BASH_ARGV0", "COMP_POINT", "COMP_CWORD", "EPOCHSECONDS", "UID", "EUID", "PPID", "SHLVL"}
	// commandVariables hold a command that programs run.
	commandVariables = [...]string{"PAGER", "GIT_PAGER", "MANPAGER", "BAT_PAGER", "GH_PAGER", "AWS_PAGER", "SYSTEMD_PAGER", "PSQL_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "FCEDIT", "SUDO_EDITOR", "BROWSER", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "RSYNC_RSH", "CVS_RSH", "RUSTC_WRAPPER", "SHELL"}
	// rulingVariables change what names, words or files mean, or load code into
	// any program.
	rulingVariables = [...]string{"PATH", "IFS", "ENV", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "BASH_FUNC_*", "BASH_ALIASES", "BASH_CMDS", "BASH_LOADABLES_PATH", "BASH_XTRACEFD", "BASH_COMPAT", "CDPATH", "GLOBIGNORE", "EXECIGNORE", "FPATH", "ZDOTDIR", "HOME", "PWD", "OLDPWD", "POSIXLY_CORRECT",
		"LD_*", "DYLD_*", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "MALLOC_*", "GLIBC_TUNABLES",
		"GIT_*", "LESS", "LESSOPEN", "LESSCLOSE", "LESSKEY*", "MANOPT", "MANROFFOPT", "GREP_OPTIONS", "TAR_OPTIONS", "RIPGREP_CONFIG_PATH", "WGETRC", "CURL_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS", "INPUTRC", "TERMINFO*", "TMPPREFIX", "READNULLCMD", "NULLCMD",
		"NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS", "PERL5OPT", "PERL5LIB", "PERL5DB", "PERLLIB", "RUBYOPT", "RUBYLIB", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONWARNINGS", "PYTHONBREAKPOINT", "PYTHONEXECUTABLE", "PHP_INI_SCAN_DIR", "PHPRC", "LUA_INIT*", "LUA_PATH*", "LUA_CPATH*",
		"GOFLAGS", "GOTOOLCHAIN", "GOROOT", "CARGO_*", "RUSTFLAGS", "RUSTC", "npm_config_*", "NPM_CONFIG_*", "PIP_*", "UV_*", "MAKEFLAGS", "GNUMAKEFLAGS", "MFLAGS", "MAKEFILES", "OPENSSL_CONF", "OPENSSL_MODULES", "SSLKEYLOGFILE", "GNUPGHOME", "SSH_AUTH_SOCK", "DOCKER_HOST", "DOCKER_CONFIG", "KUBECONFIG", "VIMINIT", "EXINIT", "EMACSLOADPATH", "GUILE_LOAD_PATH", "HGRCPATH", "TEXMFCNF", "TEXINPUTS", "XAUTHORITY", "SUDO_ASKPASS"}
)

func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(v string) bool {
		begin, open := strings.CutSuffix(v, "*")
		return v == name || open && strings.HasPrefix(name, begin)
	})
}

// assignment judges name=value; seen says that a program gets it.
func (r *reader) assignment(as *syntax.Assign, sc *scope, t *Command, seen bool) {
	if as.Index != nil && subscript(as.Index) == "" {
		r.arithm(as.Index, sc)
	}
	if as.Array != nil {
		for _, e := range as.Array.Elems {
			if e.Index != nil {
				r.arithm(e.Index, sc)
			}
			r.word(e.Value, sc)
		}
	}
	value := r.word(as.Value, sc)
	if as.Append || as.Array != nil || as.Index != nil {
		value = word{src: value.src}
	}
	if as.Name != nil {
		r.variable(t, as.Name.Value, value, sc, seen)
	}
}

// variable judges what setting a variable does; seen says that programs see it
// even if they didn't before.
func (r *reader) variable(t *Command, name string, value word, sc *scope, seen bool) {
	if value.lit && value.text != "" && value.text[0] == '/' {
		t.escapes(Secret(path.Clean(value.text)))
	}
	if oneOf(name, countedVariables[:]...) && !(value.lit && wholeNumber(value.text)) {
		r.hides("bash evaluates what " + name + " gets")
	}
	switch {
	case listed(quietVariables[:], name):
	case name == "IFS" && value.lit && strings.Trim(value.text, " \t\n") == "": // as blanks are anyway
	case listed(commandVariables[:], name):
		r.commandIn(t, name, value, sc)
	case name == "PATH" && strings.HasPrefix(strings.TrimPrefix(value.src, `"`), "$PATH:"):
		t.raise(WriteWorkspace, "PATH gets more places, after those it has")
	case name == "PYTHONPATH":
		if !value.lit || strings.HasPrefix(value.text, "/") || strings.Contains(value.text, "..") {
			t.raise(Destructive, "PYTHONPATH brings code from elsewhere")
		} else if seen {
			t.raise(WriteWorkspace, "PYTHONPATH brings code of the workspace")
		}
	case listed(rulingVariables[:], name):
		t.raise(Unparsable, "with "+name+" set, names and files may mean something else")
	case seen:
		t.raise(WriteWorkspace, "the program sees the variable "+clip(name)+", whatever it means to it")
	}
}

// commandIn judges a variable whose value programs run.
func (r *reader) commandIn(t *Command, name string, value word, sc *scope) {
	switch {
	case !value.lit:
		t.raise(Unparsable, name+" is run, and its value only shows then")
	case value.text != "":
		in := sc.inner()
		in.funcs = nil
		r.script(value.text, Sh, in, []string{name})
	}
}
