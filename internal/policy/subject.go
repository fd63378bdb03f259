package policy

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy/shell"
	"github.com/belay-run/belay/internal/workspace/protected"
)

// subject is what rules are held against: a call, or one simple command of it.
type subject struct {
	tool   string // in lower case
	does   []string
	cmd    *Command
	class  Class
	paths  []access
	hosts  []string
	egress bool   // it can send data out
	starts bool   // it can if it has a network: by the programs that it starts
	secret bool   // it reads a secret
	keys   string // the file that usually holds a secret which a file tool names, and why; of commands the class says so
	guards string // the protected name that it writes, and why it is one; empty: none
	steers bool   // the thread answers it; no tool runs
	args   *arguments
	vars   map[string]any // what expressions can name; made when the first one asks
}

// access is one file and what is done with it. The path of a file inside the
// workspace is relative to it.
type access struct {
	path   string
	write  bool
	inside bool
	own    bool // the command's own folder, empty at its beginning: nobody else's files are there
}

// maxCommands is how many simple commands of a line are judged one by one; a
// line with more can't be looked through.
const maxCommands = 1000

// subjectsOf takes a call apart; there is at least one part.
func subjectsOf(r *Request) []subject {
	whole := subject{tool: strings.ToLower(r.Tool.Name), steers: r.Tool.Handled != "", args: &arguments{raw: r.Args}}
	if whole.steers || r.Tool.Command == nil {
		whole.of(r)
		return []subject{whole}
	}
	commands := r.Commands
	switch {
	case len(commands) == 0:
		commands = []Command{{Name: r.Tool.Name, Class: Unparsable, Reason: "there is no command in it that could be read"}}
	case len(commands) > maxCommands:
		commands = []Command{{Name: commands[0].Name, Class: Unparsable, Reason: "it has too many commands"}}
	}
	out := make([]subject, len(commands))
	for i := range commands {
		out[i] = whole
		out[i].ofCommand(r, &commands[i])
	}
	return out
}

// Changes reports whether a tool can change things, by what it says of itself.
func Changes(t belay.ToolSpec) bool { return t.Handled == "" && !t.ReadOnly }

func (sub *subject) of(r *Request) {
	t := &r.Tool
	for _, p := range r.Paths {
		sub.paths = append(sub.paths, accessTo(r.Workspace, p, t.Access == belay.Write))
		for _, l := range r.Links {
			if l.Path == spelled(r.Workspace, p) {
				sub.paths = append(sub.paths, accessTo(r.Workspace, l.Real, t.Access == belay.Write))
			}
		}
	}
	if t.HostArg != "" {
		sub.hosts = hostsIn(sub.args, t.HostArg)
	}
	edits := t.PathArg != "" && t.Access == belay.Write && !t.Destructive && len(sub.paths) > 0 && !slices.ContainsFunc(sub.paths, func(a access) bool { return !a.inside })
	switch {
	case t.Handled == "complete":
		sub.does = []string{"completes"}
	case t.Handled == "ask":
		sub.does = []string{"asks"}
	case t.ReadOnly && !t.Destructive:
		sub.does = []string{"reads"}
	case edits:
		sub.does = []string{"edits", "changes"}
	default:
		sub.does = []string{"changes"}
	}
	sub.starts = has(t.Capabilities, capProcess) && Changes(*t)
	sub.egress = has(t.Capabilities, capNetwork) || has(t.Capabilities, capSend) || sub.starts && !r.keptIn()
	sub.guards = guarded(sub.paths, tainted(r.Taint))
	sub.keys = keysIn(sub.paths)
	sub.secret = has(t.Capabilities, capSecrets) || sub.keys != ""
}

func (sub *subject) ofCommand(r *Request, c *Command) {
	sub.cmd, sub.class = c, c.Class
	if !slices.Contains(classes, c.Class) {
		sub.class = Unparsable
	}
	for _, p := range c.Reads {
		if !harmless(p) {
			a := accessTo(r.Workspace, p, false)
			a.own = sub.class == ReadOnly && r.gives(p)
			sub.paths = append(sub.paths, a)
		}
	}
	for _, p := range c.Writes {
		if !sink(p) {
			sub.paths = append(sub.paths, accessTo(r.Workspace, p, true))
		}
	}
	sub.paths = append(sub.paths, elsewhere(r.Workspace, c)...)
	for _, h := range c.Hosts {
		sub.hosts = append(sub.hosts, hostName(h))
	}
	sub.does = []string{"runs"}
	if sub.class != ReadOnly {
		sub.does = []string{"runs", "changes"}
	}
	sub.guards = guarded(sub.paths, tainted(r.Taint))
	sub.starts = sub.class != ReadOnly
	sub.egress = sub.starts && (!r.keptIn() || sub.class == Network && r.Network != belay.NetworkNone) // a yes to what needs the network gives it
	sub.secret = slices.ContainsFunc(sub.paths, func(a access) bool { return maybeSecret(a.path) }) ||
		namesSecret(c, tainted(r.Taint)) || showsSecrets(c)
}

// ownPlaces are folders that each program has for itself, in a view of its own.
var ownPlaces = []string{"/tmp", "/var/tmp", "/dev/shm"}

// gives reports whether a path that a command reads lies in a folder that its
// boundary gives it empty.
func (r *Request) gives(p string) bool {
	p = path.Clean(p)
	return r.Confine && r.Boundary == "" && belay.Level(r.Level).AtLeast(belay.L3) && !below(r.Workspace, p) &&
		slices.ContainsFunc(ownPlaces, func(o string) bool { return below(p, o) })
}

// elsewhere are the folders outside of the workspace that a command runs in: what
// it reads without naming it.
func elsewhere(workspace string, c *Command) (out []access) {
	for _, d := range c.Dirs {
		if a := accessTo(workspace, d, false); !a.inside && !harmless(d) {
			out = append(out, a)
		}
	}
	if c.Astray {
		out = append(out, access{path: "", write: false})
	}
	return out
}

// keptIn reports whether what a call starts, if nobody is asked about it, reaches no
// network.
func (r *Request) keptIn() bool { return r.offline || r.Network == belay.NetworkNone }

// Capabilities that say what a tool can do with data.
const (
	capProcess = "process"
	capNetwork = "network"
	capSend    = "send"    // it tells people or other systems something
	capSecrets = "secrets" // it hands out secrets
)

func has(list []string, w string) bool { return slices.Contains(list, w) }

// accessTo is a file as it lies to the workspace, by its text.
func accessTo(workspace, p string, write bool) access {
	a := access{path: p, write: write, inside: Inside(p)}
	if strings.HasPrefix(p, "/") && workspace != "" && !strings.ContainsRune(p, 0) {
		if rest, ok := strings.CutPrefix(path.Clean(p)+"/", strings.TrimSuffix(workspace, "/")+"/"); ok {
			a.path, a.inside = path.Clean("./"+rest), true
		}
	}
	return a
}

// guarded is the first protected name among the files that are written, and why
// it is one; lured reports whether content from outside is in the conversation.
func guarded(paths []access, lured bool) string {
	for _, a := range paths {
		if !a.write {
			continue
		}
		e, ok := protected.Of(a.path)
		if !ok && lured {
			e, ok = protected.Lured(a.path)
		}
		if ok {
			return a.path + " is protected: " + e.Why
		}
	}
	return ""
}

// keysIn is the first file that usually holds a secret, and why it is one.
func keysIn(paths []access) string {
	for _, a := range paths {
		if why := shell.Secret(a.path); why != "" {
			return why
		}
	}
	return ""
}

// Hosts are what a call of a tool connects to, by its arguments.
func Hosts(t belay.ToolSpec, args []byte) []string {
	subjects := subjectsOf(&Request{Tool: t, Args: args})
	return slices.Compact(slices.Sorted(slices.Values(subjects[0].hosts)))
}

// hostsIn is the hosts that an argument names, as a URL or by name; one that
// can't be read is empty, which no pattern fits.
func hostsIn(args *arguments, arg string) []string {
	v, ok := args.at(strings.Split(arg, "."))
	list, isList := as[[]string](v, ok)
	if !isList {
		one, isText := as[string](v, ok)
		if !isText {
			return []string{""}
		}
		list = []string{one}
	}
	out := make([]string, len(list))
	for i, text := range list {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			text = u.Hostname()
		}
		out[i] = hostName(text)
	}
	return out
}

// hostName is a host in one spelling; empty when it is none.
func hostName(h string) string {
	h = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(h)), ".")
	if strings.ContainsAny(h, "/\\@?# \x00\r\n\t") {
		return ""
	}
	if strings.HasPrefix(h, "[") {
		h, _, _ = strings.Cut(h[1:], "]")
		return h
	}
	if name, _, port := strings.Cut(h, ":"); port && strings.Count(h, ":") == 1 {
		return name
	}
	return h
}

// Risk tags that the gate adds to those of rules.
const (
	TagSecret    = "secret"    // the call reads a secret
	TagEgress    = "egress"    // it can send out what a tainted thread knows
	TagProtected = "protected" // it writes a name that something else runs or obeys
)

func (sub *subject) tags(tags []string, r *Request) []string {
	var more []string
	if sub.secret {
		more = append(more, TagSecret)
	}
	if sub.egress && len(r.Taint) > 0 {
		more = append(more, TagEgress)
	}
	if sub.guards != "" {
		more = append(more, TagProtected)
	}
	if slices.Index(classes, sub.class) >= slices.Index(classes, Network) {
		more = append(more, string(sub.class))
	}
	if len(more)+len(tags) == 0 {
		return nil
	}
	return union(tags, more)
}
