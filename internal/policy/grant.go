package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy/shell"
)

// Of reports whether a grant is for calls of a tool.
func (g *Grant) Of(tool string) bool {
	return g.Tool == tool || like(strings.ToLower(g.Tool), strings.ToLower(tool))
}

// sees is what a grant covers besides plain calls. Of exactly one call nothing has to be
// read: the person saw it.
func (g *Grant) sees(r *Request, sub *subject) sees {
	exact := g.Bound != ""
	return sees{unparsable: exact, escape: exact, keys: exact, egress: g.accepts(r, sub)}
}

// accepts reports whether a grant covers what the conversation, with what it has from
// outside, could send by a call. A host that was named is where that goes, whoever wants
// it. Else it has to be content of the server or host alone that the call is for, and
// whoever gave the grant knew of it: from the question, or because they named the server
// or, in the settings, the hosts.
func (g *Grant) accepts(r *Request, sub *subject) bool {
	own := func(t Taint) bool { return slices.Contains(g.Taint, t.Kind+":"+t.Origin) }
	switch hosts := r.Tool.Hosts; {
	case len(g.Taint) > 0:
	case g.ofHost(r) && g.Scope != "session":
		return true
	case g.Kind != "rule":
		return false
	case r.Tool.Server != "":
		own = func(t Taint) bool { return t.Kind == TaintMCP && t.Origin == r.Tool.Server }
	case len(hosts) > 0 && byHost(&r.Tool) && allLike(sub.hosts, hosts):
		own = func(t Taint) bool {
			return t.Kind == TaintWeb && len(t.Origin) < MaxOrigin && allLike([]string{t.Origin}, hosts)
		}
	default:
		return false
	}
	return !slices.ContainsFunc(r.Taint, func(t Taint) bool { return t.fromOutside() && !own(t) })
}

// allLike reports whether each of some hosts fits one of the patterns.
func allLike(hosts, patterns []string) bool {
	return len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h string) bool {
		return h == "" || !slices.ContainsFunc(patterns, func(p string) bool { return like(p, h) })
	})
}

// Sessioned is a grant of all calls like one for a session: of its tool, and where that
// names a host of this host, because a page must not choose another one. own is what such
// calls bring from outside, as kind:origin.
func Sessioned(r *Request, own []string) Grant {
	g := Grant{Tool: r.Tool.Name, Tier: TierUser, Kind: "answer", Scope: "session", Dialect: r.Dialect, Taint: Accepted(r, own)}
	g.Prefix = oneHost(r)
	return g
}

// Accepted is what a person who was told of it accepts of what calls like one bring from
// outside: the content of the one server or host that they are for.
func Accepted(r *Request, own []string) []string {
	if r.Tool.Server == "" && oneHost(r) == "" || slices.ContainsFunc(own, func(t string) bool {
		kind, origin, _ := strings.Cut(t, ":")
		return kind != TaintMCP && kind != TaintWeb || len(origin) >= MaxOrigin
	}) {
		return nil
	}
	return own
}

// oneHost is the host that a call names, if it names one alone.
func oneHost(r *Request) string {
	if byHost(&r.Tool) {
		if hosts := subjectsOf(r)[0].hosts; len(hosts) > 0 && onlyHost(hosts, hosts[0]) {
			return hosts[0]
		}
	}
	return ""
}

// reaches reports whether a grant covers a call, or one simple command of it.
func (g *Grant) reaches(r *Request, sub *subject) bool {
	switch {
	case !g.Of(r.Tool.Name), r.Tool.Command != nil && g.Dialect != r.Dialect:
		return false
	case g.Bound != "":
		return g.Bound == r.Binding
	case g.Prefix == "":
		return true
	case sub.cmd != nil:
		return sub.class.Rank() <= g.Worst.Rank() && begins(sub.cmd, strings.Fields(g.Prefix))
	case g.ofHost(r):
		return onlyHost(sub.hosts, g.Prefix)
	}
	return allBelow(sub.paths, g.Prefix)
}

// ofHost reports whether a grant names a host that calls of its tool connect to.
func (g *Grant) ofHost(r *Request) bool {
	return g.Prefix != "" && byHost(&r.Tool)
}

// byHost reports whether grants of a tool are for the hosts that its calls name.
func byHost(t *belay.ToolSpec) bool { return t.HostArg != "" && t.Command == nil && t.PathArg == "" }

func onlyHost(hosts []string, host string) bool {
	return len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h string) bool { return h == "" || h != host })
}

// begins reports whether a command, which no other program runs, begins with words
// that stand there literally.
func begins(c *Command, words []string) bool {
	if len(words) == 0 || len(c.Wrapped) > 0 || len(c.Args) < len(words)-1 || c.Name != words[0] {
		return false
	}
	for i, w := range words[1:] {
		if !c.Literal(i) || c.Args[i] != w {
			return false
		}
	}
	return true
}

// allBelow reports whether all files lie in a folder of the workspace.
func allBelow(files []access, folder string) bool {
	folder = path.Clean(folder)
	for _, f := range files {
		at := path.Clean(f.path)
		if !f.inside || folder != "." && at != folder && !strings.HasPrefix(at, folder+"/") {
			return false
		}
	}
	return len(files) > 0
}

// notPlain are characters that a shell gives a meaning.
const notPlain = "$`'\"\\;|&<>(){}*?[]~#=!"

// mostPrefix is how many words of a command are proposed at most.
const mostPrefix = 4

// ProposePrefix returns the words by which commands like the first one that does more
// than read could be allowed: its program and a subcommand, or more if these leave open
// what runs. Empty: no words do.
func ProposePrefix(commands []Command) string {
	for _, c := range commands {
		if c.Class == ReadOnly || len(c.Wrapped) > 0 {
			continue
		}
		words := []string{c.Name}
		for i, arg := range c.Args {
			named := shell.Opens(words) == ""
			if named && (len(words) > 1 || strings.HasPrefix(arg, "-") || strings.ContainsAny(arg, "./")) || len(words) == mostPrefix || !c.Literal(i) || strings.ContainsAny(arg, notPlain+" \t\n") {
				break
			}
			words = append(words, arg)
		}
		if strings.ContainsAny(c.Name, notPlain+" ") || shell.Opens(words) != "" {
			return ""
		}
		return strings.Join(words, " ")
	}
	return ""
}

// Prefixed is a grant of everything that begins as a call does. It is an error
// if the call can't have such a grant, or isn't covered by it itself.
func Prefixed(r Request, prefix string) (Grant, error) {
	g := Grant{Tool: r.Tool.Name, Tier: TierUser, Kind: "answer", Scope: "prefix", Prefix: strings.Join(strings.Fields(prefix), " "), Dialect: r.Dialect}
	subjects := subjectsOf(&r)
	switch {
	case byHost(&r.Tool):
		if g.Prefix = hostName(g.Prefix); !onlyHost(subjects[0].hosts, g.Prefix) {
			return g, belay.Errorf(belay.CodeBadCommand, "the call that asks doesn't connect to that host alone").WithHint("the host of the call, such as docs.example.com")
		}
		return g, nil
	case r.Tool.Command == nil && r.Tool.PathArg == "":
		return g, belay.Errorf(belay.CodeBadCommand, "calls of %s have no beginning that could be allowed", r.Tool.Name).WithHint("allow it once, or for the session")
	case g.Prefix == "" || r.Tool.Command != nil && strings.ContainsAny(g.Prefix, notPlain):
		return g, belay.Errorf(belay.CodeBadCommand, "the prefix must be plain words").WithHint("the first words of a command, or a folder")
	case r.Tool.Command == nil && "/"+path.Clean(g.Prefix) != path.Clean("/"+g.Prefix) && g.Prefix != ".":
		return g, belay.Errorf(belay.CodeBadCommand, "the prefix must be a folder of the workspace, as seen from there")
	}
	if r.Tool.Command != nil {
		if why := shell.Opens(strings.Fields(g.Prefix)); why != "" {
			return g, belay.Errorf(belay.CodeBadCommand, "%q can't be allowed: %s", g.Prefix, why).WithHint("add the words that say what runs, such as the script's name, or allow it once")
		}
	}
	covered := false
	for i := range subjects {
		sub := &subjects[i]
		if sub.cmd != nil && begins(sub.cmd, strings.Fields(g.Prefix)) {
			covered = true
			if sub.class.Rank() > g.Worst.Rank() || g.Worst == "" {
				g.Worst = sub.class
			}
		}
		covered = covered || sub.cmd == nil && allBelow(sub.paths, g.Prefix)
	}
	if !covered {
		return g, belay.Errorf(belay.CodeBadCommand, "the call that asks doesn't begin with %q itself", g.Prefix)
	}
	return g, nil
}

// reason describes what a person allowed.
func (g *Grant) reason() string {
	by := cmp.Or(g.By, "the user")
	switch {
	case g.Bound != "":
		return "exactly this call is allowed by " + by
	case g.Scope == "prefix":
		return "what begins with " + g.Prefix + " is allowed by " + by
	case g.Prefix != "":
		return g.Prefix + " is allowed for this session by " + by
	}
	return "allowed for this session by " + by
}
