package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy/shell"
)

// reaches reports whether a grant covers a call, or one simple command of it.
func (g *Grant) reaches(r *Request, sub *subject) bool {
	switch {
	case g.Tool != r.Tool.Name, r.Tool.Command != nil && g.Dialect != r.Dialect:
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
	switch g.Scope {
	case "prefix":
		return "what begins with " + g.Prefix + " is allowed by " + by
	case "count", "until":
		return "exactly this call is allowed by " + by
	}
	return "allowed for this session by " + by
}
