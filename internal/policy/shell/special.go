package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
)

// special is what judges a program whose words no table can tell, or nil where its
// row is enough.
func special(base string, p *program) func(*start, *program) {
	switch {
	case names("find,gfind", base):
		return find
	case names("sed,gsed,ssed", base), strings.HasPrefix(p.name, "awk,"):
		return script
	case strings.HasPrefix(p.name, "tar,"):
		return tar
	case strings.HasPrefix(p.name, "less,"):
		return pager
	case base == "rsync" || base == "scp":
		return remote
	case strings.HasPrefix(p.name, "make,"):
		return targets
	case strings.HasPrefix(p.name, "yq"), strings.HasPrefix(p.name, "jq"), strings.HasPrefix(p.name, "psql,"):
		return queries
	case base == "getent":
		return getent
	case names("ln,gln,link", base):
		return links
	case base == "wget" || base == "curl":
		return fetch
	case p.code:
		return interpreter
	}
	return nil
}

// tar judges tar: what it does with its archive depends on its mode.
func tar(s *start, p *program) {
	operands := s.options(p, s.args)
	if s.version {
		return
	}
	lists, reads := s.mode != "", s.mode != ""
	for mode := range strings.FieldsSeq(s.mode) {
		looks := oneOf(mode, "-t", "--list", "-d", "--diff", "--compare")
		lists, reads = lists && looks, reads && (looks || oneOf(mode, "-x", "--extract", "--get"))
	}
	for _, w := range s.archives {
		if !w.lit && !strings.Contains(w.text, "/") {
			s.raise(Network, clip(w.src)+" may be on another machine")
		}
		if hostname, _, remote := strings.Cut(w.text, ":"); remote && !strings.Contains(hostname, "/") {
			s.raise(Unparsable, "tar runs a remote shell for "+clip(w.src))
		}
		if reads {
			s.read(w)
		} else {
			s.write(w)
		}
	}
	switch {
	case lists:
	case reads:
		s.write(literal("."))
	case s.mode == "":
		s.raise(Destructive, "its mode isn't known")
	default:
		s.raise(WriteWorkspace, "it writes an archive")
		for _, w := range operands {
			s.read(w)
		}
	}
}

// pagerPlain is an option of a pager that is no more than it looks like.
var pagerPlain = match.Lazy(`^-(?:[A-Za-z]+|[0-9]+|[bhjxyz][0-9.]+|-[a-z-]+)$`)

// pager judges less and its kin, whose +COMMAND does anything they can.
func pager(s *start, p *program) {
	for _, w := range s.args {
		if strings.HasPrefix(w.text, "+") || w.option() && !pagerPlain.Match(w.text) || strings.ContainsAny(w.text, "\n\r") {
			s.r.hides(clip(w.src) + " holds more options or commands of the pager")
		}
	}
	for _, w := range s.options(p, s.args) {
		s.read(w)
	}
}

// remote judges rsync and scp: a place may be on another machine.
func remote(s *start, p *program) {
	operands := s.options(p, s.args)
	if p.class == Network {
		s.raise(p.class, p.why)
	}
	for i, w := range operands {
		last := i == len(operands)-1 && (i > 0 || w.several())
		switch {
		case isRemote(w):
			s.host(w)
			continue
		case !w.lit && !w.glob && !strings.HasPrefix(w.text, "/") && !strings.HasPrefix(w.text, "./") && len(operands) > 1:
			s.raise(Network, clip(w.src)+" may be on another machine")
			last = true
		}
		if last {
			s.write(w)
		} else {
			s.read(w)
		}
	}
}

// isRemote reports whether a place is written host:path or as a URL.
func isRemote(w word) bool {
	before, _, ok := strings.Cut(w.text, ":")
	return ok && !strings.Contains(before, "/") || strings.Contains(w.text, "://")
}

// targets judges make and its kin: variables on the command line can be commands.
func targets(s *start, p *program) {
	s.judge(p, s.args)
	for _, w := range s.args {
		name, value, ok := strings.Cut(w.text, "=")
		if !ok || strings.HasPrefix(name, "-") {
			continue
		}
		if name = strings.TrimRight(name, ":?+!"); oneOf(name, "SHELL", ".SHELLFLAGS", "MAKEFLAGS", "MAKE", "MAKEFILES") || strings.ContainsAny(value, "$`;|&<>") || !w.lit {
			s.raise(Unparsable, "make runs what "+clip(w.src)+" says")
		}
	}
}

// loading finds operators of yq that read a file or a variable, or run a program.
var loading = match.Lazy(`(^|[^.\w"])(\w*_)?load(_\w+)?\s*\(|env\(|system`)

// clientCommand finds what clients of databases take for a command of their own.
var clientCommand = match.Lazy(`(?i)^\s*\.|\\|program|load_extension`)

// queries judges the filters of jq and yq, those that load, write or tell secrets, and what
// clients of databases are told: their own commands run programs.
func queries(s *start, p *program) {
	var words []word
	for i := 0; i < len(s.args); i++ {
		w := s.args[i]
		words = append(words, w)
		if w.lit && oneOf(w.text, "--arg", "--argjson", "--slurpfile", "--rawfile") && i+2 < len(s.args) { // a name and a value
			words = append(words, s.args[i+1])
			if i += 2; strings.HasSuffix(w.text, "file") {
				s.read(s.args[i])
			}
		}
	}
	s.judge(p, words)
	for _, w := range s.args {
		if strings.HasPrefix(p.name, "psql,") {
			if !w.lit || clientCommand.Get().MatchString(w.text) {
				s.raise(Unparsable, clip(w.src)+" may be a command of the client")
			}
		} else if strings.Contains(w.text, "import ") || strings.Contains(w.text, "include ") || p.name == "yq" && loading.Get().MatchString(w.text) {
			s.raise(Destructive, "the filter reads other files or runs programs")
		}
	}
}

// getent judges getent, which asks name servers for some of its databases.
func getent(s *start, p *program) {
	operands := s.options(p, s.args)
	if len(operands) == 0 || !operands[0].lit || !oneOf(operands[0].text, "passwd", "group", "services", "protocols", "ethers", "shadow", "gshadow", "aliases", "rpc", "initgroups", "netgroup") {
		s.raise(Network, "it asks a name server, and the question carries data")
	}
}

// links judges ln: what is written through a link is written where it leads.
func links(s *start, p *program) {
	operands := s.options(p, s.args)
	s.raise(p.class, p.why)
	s.operands(p.args, operands)
	last := len(operands) - 1
	if last == 0 || s.target {
		last = len(operands)
	}
	for _, w := range operands[:max(last, 0)] {
		names, known := s.sc.places(w)
		if strings.Contains(w.text, "..") {
			known = false
		}
		for _, p := range names {
			known = known && s.r.o.Workspace != "" && within(p, s.r.o.Workspace) && !isProtected(p[len(s.r.o.Workspace):])
		}
		if !known {
			s.raise(EscapeAttempt, "a link to "+clip(w.src)+" leads out of the workspace, or nobody can tell where")
		}
	}
}

// interpreter judges a program that runs code.
func interpreter(s *start, p *program) {
	before := s.Class
	operands := s.options(p, s.args)
	switch {
	case s.version && s.Class == before && len(s.args) == 1, s.module:
	case s.Class == Unparsable:
	case len(operands) > 0 && !(operands[0].lit && operands[0].text == "-"):
		s.runsFile(operands[0])
	case len(s.Reads) > 0 && s.Class != ReadOnly: // a file that an option has named
	default:
		s.raise(Unparsable, "it runs what it reads, which only shows then")
	}
}

// pythonModules are modules that python runs by name. A file of the folder that
// python is started in may stand for each.
var pythonModules = []struct {
	names string
	class Class
}{
	{"json.tool,ast,tokenize,dis,calendar,this,platform,base64,pyclbr,symtable,locale,pytest,unittest,doctest,venv,virtualenv,compileall,py_compile,build,black,isort,ruff,flake8,pylint,mypy,coverage,tox,nox,inspect,site,cProfile,profile,trace,sysconfig,zipapp,ensurepip,mkdocs,sphinx,pre_commit", WriteWorkspace},
	{"pip,http.server,http.client,urllib.request,smtplib,ftplib,telnetlib,uv,poetry,pipx,twine,wget,webbrowser,smtpd,nntplib", Network},
}

// pythonModule judges python -m NAME.
func (s *optionReader) pythonModule(w word) {
	s.module, s.stop = true, true
	if !w.lit {
		s.raise(Unparsable, "which module runs only shows then")
		return
	}
	for _, m := range pythonModules {
		if names(m.names, w.text) {
			s.raise(m.class, "it runs the module "+w.text)
			return
		}
	}
	s.raise(Unparsable, "nothing is known about the module "+clip(w.text))
}

// helper judges an option that names a program, which gets unknown words.
func (s *optionReader) helper(w word, name string) {
	if !w.lit || strings.ContainsAny(w.text, "\\$#'\"`;&|<>()*?[]{}~!\n") {
		s.raise(Unparsable, "option "+name+" runs what can't be judged")
		return
	}
	var words []word
	for f := range strings.FieldsSeq(w.text) {
		words = append(words, literal(f))
	}
	if len(words) > 0 {
		s.r.run(append(words, word{src: "{}", text: "/"}), s.within(), call{direct: true, wrapped: s.wrappedIn()})
	}
}

// scriptFile judges a file of code that an option names.
func (s *optionReader) scriptFile(w word) {
	s.pattern = true
	if w.lit && oneOf(path.Clean(w.text), "-", "/dev/stdin") {
		s.raise(Unparsable, "it runs what it reads, which only shows then")
		return
	}
	s.runsFile(w)
}

// specialSub judges subcommands that a row can't tell; false is one that its row is
// enough for.
func specialSub(s *start, name string, p *program, words []word) bool {
	program, sub, _ := strings.Cut(name, " ")
	switch {
	case program == "git":
		return git{s}.subcommand(sub, p, words)
	case program == "ip":
		if len(words) > 0 && !(words[0].lit && oneOf(words[0].text, "show", "s", "sh", "list", "ls", "l", "get")) {
			s.raise(EscapeAttempt, p.why)
		}
		return true
	case oneOf(name, "go run", "go install", "go list", "go tool", "go doc", "go vet", "go build", "go test"):
		for _, w := range words {
			if strings.Contains(w.text, "@") {
				s.raise(Network, "it downloads "+clip(w.src))
				if oneOf(name, "go run", "go install") {
					s.raise(Destructive, "and nothing is known about what it runs")
				}
			}
		}
	}
	return false
}

// fetch judges curl and wget, which may write where they run.
func fetch(s *start, p *program) {
	s.judge(p, s.args)
	here := strings.HasPrefix(p.name, "wget") && !slices.ContainsFunc(s.args, func(w word) bool { return w.lit && w.text == "--spider" })
	for _, w := range s.args {
		here = here || w.lit && (oneOf(w.text, "--remote-name", "--remote-name-all") || strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "O"))
	}
	if here && !s.version && len(s.Writes) == 0 {
		s.worksHere()
	}
}

// fromFile takes the argument of options such as curl's -d, where @ names a
// file that is sent.
func (s *optionReader) fromFile(w word) {
	if strings.HasPrefix(w.text, "@") {
		s.read(w.from(1))
		return
	}
	for _, sign := range [...]string{"=@", "=<", "@"} { // a form's file, its text, --data-urlencode NAME@FILE
		if _, file, ok := strings.Cut(w.text, sign); ok {
			file, _, _ = strings.Cut(file, ";")
			s.read(literal(file))
			return
		}
	}
}
