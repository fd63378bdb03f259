package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/belay-run/belay/internal/lib/match"
)

// notPlain says why a source that only reads isn't plain, or nothing: where no
// boundary holds a program to what was read in its text, only text counts that
// nobody can read in two ways. Plain are literal words and patterns, pipes and
// lists, values that the source itself has set to literal words, others that stand for one
// word or are only printed, programs of the
// table that obey no settings of the folder that they run in. redirects tells of
// redirections to or from a file, which what only reads hasn't got.
func notPlain(f *syntax.File) (why string, redirects bool) {
	set, printed := map[string]bool{}, map[syntax.WordPart]bool{}
	for _, s := range f.Stmts { // only what stands for itself lasts
		if c, ok := s.Cmd.(*syntax.CallExpr); ok && len(c.Args) == 0 {
			for _, as := range c.Assigns {
				set[as.Name.Value] = true
			}
		}
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		if why != "" {
			return false
		}
		switch n := n.(type) {
		case nil, *syntax.File, *syntax.Word, *syntax.Lit, *syntax.Comment, *syntax.BinaryCmd:
		case *syntax.DblQuoted: // one word, whatever it is
			for _, p := range n.Parts {
				printed[p] = true
			}
		case *syntax.SglQuoted:
			if n.Dollar {
				why = "a quote that is decoded"
			}
		case *syntax.Stmt:
			if n.Background || n.Coprocess || n.Disown {
				why = "something runs beside it"
			}
		case *syntax.CallExpr:
			why = plainCall(n)
			if len(n.Args) > 0 && names("echo,printf", n.Args[0].Lit()) {
				for _, w := range n.Args {
					for _, p := range w.Parts {
						printed[p] = true
					}
				}
			}
		case *syntax.Assign:
			if n.Append || n.Index != nil || n.Array != nil || n.Name == nil ||
				!plainVariable.Get().MatchString(n.Name.Value) || !plainValue(n.Value) {
				why = "a variable gets more than a plain word"
			}
		case *syntax.ParamExp:
			plain := n.Short || !n.Excl && !n.Length && n.Index == nil && n.Slice == nil && n.Repl == nil && n.Exp == nil &&
				n.Names == 0 && n.Flags == nil
			if !plain || !set[n.Param.Value] && !printed[n] {
				why = "$" + n.Param.Value + " isn't a plain word that it has set"
			}
		case *syntax.Redirect:
			to, ok := spelled(n.Word)
			duplicates := n.Op == syntax.DplOut && wholeNumber(to)
			if !ok || n.Hdoc != nil || n.Op == syntax.WordHdoc || n.Op == syntax.DplIn ||
				n.Op == syntax.DplOut && !duplicates || n.N != nil && !wholeNumber(n.N.Value) {
				why = "a redirection that isn't to a plain name"
			}
			redirects = redirects || !duplicates && to != "/dev/null"
		default:
			why = "a construct"
		}
		return true
	})
	return why, redirects
}

// plainVariable is a variable that means nothing to a shell: bash evaluates what some
// of its own get.
var plainVariable = match.Lazy(`^[A-Za-z_]*[a-z][A-Za-z0-9_]*$|^[A-Z]$|^(?:DIR|FILE|NAME|SRC|ROOT|BASE|OUT|LOG|PATTERN)S?$`)

// plainText is what has no meaning to a shell, however often it is read.
var plainText = match.Lazy(`^[A-Za-z0-9_./:,@%+=-]*$`)

func plainValue(w *syntax.Word) bool {
	if w == nil {
		return true
	}
	text, ok := spelled(w)
	return ok && plainText.Match(text)
}

// plainCall says why a simple command isn't plain, by its words.
func plainCall(c *syntax.CallExpr) string {
	if len(c.Args) == 0 {
		return ""
	}
	name, ok := spelled(c.Args[0])
	for _, as := range c.Assigns {
		if !listed(quietVariables[:], as.Name.Value) {
			return "it sets " + as.Name.Value
		}
	}
	switch {
	case !ok:
		return "which program it is only shows when it runs"
	case name == "command" && len(c.Args) > 1 && c.Args[1].Lit() == "-v":
	case isBuiltin(name) && !names("cd,echo,pwd,true,false,:,type,test,[,printf,exit", name): // those take their words as they are
		return name + " changes what is read after it"
	case names("test,[,printf", name):
		for _, w := range c.Args[1:] {
			if strings.HasPrefix(w.Lit(), "-v") {
				return name + " -v"
			}
		}
	}
	return ""
}

// obeying are programs that only read and do so by settings of the folder that they
// run in or of the person, by code that they are given, or through a server.
const obeying = "npm,pnpm,yarn,bun,cnpm,go,cargo,docker,podman,nerdctl,docker-compose,kubectl,cloc,tokei,man,info," +
	"pip,pip3,uv,poetry,conda,yq,delta,bat,batcat,brew,gem,bundle,composer,rustup,rustc"

// machine are programs that show processes, sockets, services and users of the
// machine. In a boundary they show those of the call.
const machine = "ps,pgrep,pidof,pstree,lsof,fuser,ss,netstat,ip,ifconfig,route,arp,docker,podman,nerdctl,docker-compose," +
	"systemctl,journalctl,loginctl,hostnamectl,who,w,users,last,lastb,uptime,free," +
	"vmstat,iostat,mpstat,lsns,lslocks,lsipc,dmesg,ipcs"

// ShowsMachine reports whether what a command shows is the machine's: in a boundary
// it is only its own call's.
func (c *Command) ShowsMachine() bool { return names(machine, path.Base(c.Name)) }

// psPlain is a word of ps by which it shows no variables of processes.
var psPlain = match.Lazy(`^(?:-?[aAdfFlTuxHjLMwcmnhsvX]+|-[eA][fFlLTHwj]*|-e?o|-[pCuU]|[0-9,]+|(?:p?pid|comm|cmd|args|user|stat|e?time|rss|%?cpu|%?mem|[,=])+|--sort=?[-%a-df-z]*)$`)

// NotPlain says why a command isn't plain although its words are, or nothing. Of git
// that only its repository tells.
func (c *Command) NotPlain() string {
	for _, name := range append(c.Wrapped[:len(c.Wrapped):len(c.Wrapped)], c.Name) {
		name = path.Base(name)
		p := lookup(name)
		switch {
		case name == "git" && slices.ContainsFunc(c.Args, func(a string) bool {
			return a == "help" || strings.HasPrefix(a, "--help") || strings.Contains(a, "submodule")
		}):
			return "git shows help by another program, or looks into other repositories"
		case name == "ps" && slices.ContainsFunc(c.Args, func(a string) bool { return !psPlain.Match(a) }):
			return "ps may show the variables of processes"
		case names(obeying, name):
			return name + " obeys settings, or asks a server"
		case p != nil && (p.starts == "shell" || p.code) || strings.HasSuffix(name, "awk"):
			return name + " runs code"
		}
	}
	return ""
}
