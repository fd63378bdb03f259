package policy

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
)

// Bound is a boundary by the name that people call it. Is.Name says what of the
// workspace can be written: read-only, workspace-write, or full for no boundary.
type Bound struct {
	Name string         `json:"name"`
	Is   belay.Boundary `json:"is"`
}

// Boundary is a boundary that people declare. Its name is how rules call it.
type Boundary struct {
	belay.Boundary
	Base  string `json:"base,omitempty"` // read-only or workspace-write, which is the default
	Tier  Tier   `json:"tier,omitempty"`
	Where string `json:"where,omitempty"` // file:line:column
}

// BuiltinBoundaries are the names that exist everywhere.
var BuiltinBoundaries = []string{belay.BoundaryReadOnly, belay.BoundaryWorkspace, belay.BoundaryFull}

// confinedName is what rules of earlier builds called the boundary of a workspace.
const confinedName = "confined"

// ModeBoundary is the default boundary of a mode. No mode leaves the boundary by
// itself: mode and boundary are two switches.
func ModeBoundary(m belay.Mode) string {
	if m == belay.ModePlan {
		return belay.BoundaryReadOnly
	}
	return belay.BoundaryWorkspace
}

// ModeLeast is the lowest level that a mode accepts. Modes that run programs
// without asking need one that confines files and network; where a person
// approves each program, that person may accept any level.
func ModeLeast(m belay.Mode) belay.Level {
	switch m {
	case belay.ModeAuto, belay.ModeOnRequest, belay.ModeOnFailure, belay.ModeBypass:
		return belay.L2
	}
	return belay.L0
}

// Bound finds a boundary by its name. Of two that people declared under one
// name the stronger tier's counts.
func (s *Set) Bound(name string) (Bound, bool) {
	switch {
	case name == confinedName:
		name = belay.BoundaryWorkspace
		fallthrough
	case slices.Contains(BuiltinBoundaries, name):
		b := belay.Boundary{Name: name, Network: belay.NetworkNone, Limits: belay.DefaultProcessLimits}
		if name == belay.BoundaryFull {
			b.Network, b.Limits = belay.NetworkFull, belay.ProcessLimits{}
		}
		return Bound{name, b}, true
	case s == nil:
		return Bound{}, false
	}
	best := -1
	var found Bound
	for _, o := range s.doc.Boundaries {
		if tier := slices.Index(Tiers, cmp.Or(o.Tier, TierDefault)); o.Name == name && tier > best {
			best, found = tier, Bound{name, o.Boundary}
			found.Is.Name = cmp.Or(o.Base, belay.BoundaryWorkspace)
			found.Is.Network = cmp.Or(o.Network, belay.NetworkNone)
		}
	}
	return found, best >= 0
}

// OfTool is the boundary that a tool's programs run in by its own word. A name that
// doesn't exist gives the narrowest one.
func (s *Set) OfTool(t *belay.ToolBounds) Bound {
	b, ok := s.Bound(cmp.Or(t.Boundary, belay.BoundaryWorkspace))
	if !ok {
		b, _ = s.Bound(belay.BoundaryReadOnly)
	}
	if b.Unbounded() {
		return b
	}
	if t.Network != "" {
		b.Is.Network, b.Is.Hosts, b.Name = t.Network, nil, b.Name+", network "+t.Network
	}
	for _, p := range t.Write {
		b.Is.Write, b.Name = append(slices.Clone(b.Is.Write), p), b.Name+", write "+p
	}
	return b
}

// Boundaries are the names of all boundaries there are.
func (s *Set) Boundaries() []string {
	names := slices.Clone(BuiltinBoundaries)
	if s != nil {
		for _, o := range s.doc.Boundaries {
			if !slices.Contains(names, o.Name) {
				names = append(names, o.Name)
			}
		}
	}
	return names
}

// Bare reports whether nothing hides secrets from programs: the machine can't
// give them a view of their own, or the turn's boundary is none.
func Bare(level, boundary string) bool {
	return !belay.Level(level).AtLeast(belay.L3) || boundary == belay.BoundaryFull
}

// PlainOnly says what holds where nothing confines programs.
const PlainOnly = "nothing confines programs here: a command that only reads runs unasked if its text is plain"

// Within is a place as a machine's level and the session's boundary leave it.
func (at Place) Within(level, boundary string) Place {
	at.Bare, at.Full = Bare(level, boundary), boundary == belay.BoundaryFull
	at.Loose = !belay.Level(level).AtLeast(belay.L2)
	return at
}

// Meet names what two boundaries of a set both allow, and returns the set that has it. One
// that the set hasn't got allows no more than reading.
func (s *Set) Meet(name, other string) (*Set, string) {
	a, _ := s.Bound(name)
	b, known := s.Bound(other)
	if !known {
		b, _ = s.Bound(belay.BoundaryReadOnly)
	}
	switch m := Meet(a, b); {
	case m.as(a):
		return s, a.Name
	case m.as(b) || s == nil:
		return s, b.Name
	default:
		set := *s
		is := Boundary{Boundary: m.Is, Base: m.Is.Name, Tier: TierAgent}
		is.Name = m.Name
		set.doc.Boundaries = append(slices.Clip(s.doc.Boundaries), is)
		return &set, m.Name
	}
}

// Unbounded reports whether nothing is confined.
func (b Bound) Unbounded() bool { return b.Is.Name == belay.BoundaryFull }

// Meet is what both boundaries allow.
func Meet(a, b Bound) Bound {
	leave, history := both(a.Is.Leave, b.Is.Leave), a.Is.History && b.Is.History // nothing confines that, so no boundary is without
	switch {
	case a.Unbounded():
		b.Is.Leave, b.Is.History = leave, history
		return b
	case b.Unbounded():
		a.Is.Leave, a.Is.History = leave, history
		return a
	}
	out := Bound{Is: belay.Boundary{Name: belay.BoundaryWorkspace, Network: belay.NetworkNone, Limits: tighter(a.Is.Limits, b.Is.Limits), Least: a.Is.Least, Leave: leave, History: history}}
	if a.Is.Name != belay.BoundaryWorkspace || b.Is.Name != belay.BoundaryWorkspace {
		out.Is.Name = belay.BoundaryReadOnly
	}
	if b.Is.Least.AtLeast(out.Is.Least) {
		out.Is.Least = b.Is.Least
	}
	out.Is.Write = both(a.Is.Write, b.Is.Write)
	out.Is.Read = both(slices.Concat(a.Is.Read, a.Is.Write), slices.Concat(b.Is.Read, b.Is.Write))
	out.Is.Read = slices.DeleteFunc(out.Is.Read, func(p string) bool { return slices.Contains(out.Is.Write, p) })
	switch {
	case a.Is.Network == belay.NetworkFull:
		out.Is.Network, out.Is.Hosts = b.Is.Network, b.Is.Hosts
	case b.Is.Network == belay.NetworkFull:
		out.Is.Network, out.Is.Hosts = a.Is.Network, a.Is.Hosts
	case a.Is.Network == belay.NetworkHosts && b.Is.Network == belay.NetworkHosts:
		out.Is.Hosts = slices.DeleteFunc(slices.Clone(a.Is.Hosts), func(h string) bool { return !slices.Contains(b.Is.Hosts, h) })
		if len(out.Is.Hosts) > 0 {
			out.Is.Network = belay.NetworkHosts
		}
	}
	switch {
	case out.as(a):
		out.Name = a.Name
	case out.as(b):
		out.Name = b.Name
	default:
		out.Name = a.Name + " and " + b.Name
	}
	return out
}

// onlyReading is a boundary without what it lets programs change, leave and reach. What
// can be written in it can still be read, and its limits and its least level stay.
func onlyReading(b Bound) Bound {
	out := b
	out.Is.Name, out.Is.Network, out.Is.Hosts, out.Is.Leave, out.Is.History = belay.BoundaryReadOnly, belay.NetworkNone, nil, nil, false
	out.Is.Write, out.Is.Read = nil, b.reads()
	usual, _ := (*Set)(nil).Bound(belay.BoundaryReadOnly)
	if out.Name = b.Name + ", only reading"; out.as(usual) {
		out.Name = usual.Name
	}
	return out
}

// Within reports whether a boundary allows nothing that another doesn't.
func (b Bound) Within(o Bound) bool { return Meet(b, o).as(b) }

// as reports whether two boundaries allow the same.
func (b Bound) as(o Bound) bool {
	if !alike(b.Is.Leave, o.Is.Leave) || b.Is.History != o.Is.History {
		return false
	}
	if b.Unbounded() || o.Unbounded() {
		return b.Unbounded() && o.Unbounded()
	}
	return b.Is.Name == o.Is.Name && b.Is.Network == o.Is.Network && b.Is.Limits == o.Is.Limits &&
		alike(b.Is.Write, o.Is.Write) && alike(b.Is.Hosts, o.Is.Hosts) && alike(b.reads(), o.reads())
}

func (b Bound) reads() []string { return outermost(slices.Concat(b.Is.Read, b.Is.Write)) }

// alike reports whether two lists of places mean the same.
func alike(a, b []string) bool { return slices.Equal(outermost(a), outermost(b)) }

// outermost leaves out the places that lie below another.
func outermost(places []string) (out []string) {
	for _, p := range places {
		if !slices.ContainsFunc(places, func(q string) bool { return p != q && below(p, q) }) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// both are the places that lie in one of either list.
func both(a, b []string) (out []string) {
	for _, l := range [][2][]string{{a, b}, {b, a}} {
		for _, p := range l[0] {
			if !slices.Contains(out, p) && slices.ContainsFunc(l[1], func(q string) bool { return below(p, q) }) {
				out = append(out, p)
			}
		}
	}
	return outermost(out)
}

// below reports whether a path is another or lies below it.
func below(p, folder string) bool {
	return p == folder || folder == "/" || strings.HasPrefix(p, strings.TrimSuffix(folder, "/")+"/")
}

// tighter is the smaller of each limit; zero is none. All of them are whole numbers.
func tighter(a, b belay.ProcessLimits) belay.ProcessLimits {
	into, of := reflect.ValueOf(&a).Elem(), reflect.ValueOf(b)
	for i := range of.NumField() {
		if n := of.Field(i).Int(); into.Field(i).IsZero() || n != 0 && n < into.Field(i).Int() {
			into.Field(i).SetInt(n)
		}
	}
	return a
}

// LimitsText is a boundary's limits in the words of files. Default ones are
// marked.
func LimitsText(l belay.ProcessLimits) string {
	d := belay.DefaultProcessLimits
	var parts []string
	say := func(set, usual bool, name, value string) {
		if usual {
			value += " (default)"
		}
		if set {
			parts = append(parts, name+" "+value)
		}
	}
	size := func(name string, n int64) { say(n > 0, false, name, SizeText(n)) }
	span := func(name string, d belay.Duration) { say(d > 0, false, name, d.String()) }
	size("memory", l.Memory)
	say(l.MemoryShare > 0, l.MemoryShare == d.MemoryShare, "memory", fmt.Sprintf("%d%%", l.MemoryShare))
	say(l.Processes > 0, l.Processes == d.Processes, "processes", strconv.Itoa(l.Processes))
	span("cpu", l.CPU)
	span("wall", l.Wall)
	say(l.CPUQuota > 0, false, "cpu_quota", fmt.Sprintf("%d%%", l.CPUQuota))
	size("file_size", l.FileSize)
	say(l.OpenFiles > 0, false, "open_files", strconv.Itoa(l.OpenFiles))
	size("disk", l.Disk)
	size("output", l.Output)
	span("total_cpu", l.TotalCPU)
	size("total_written", l.TotalWritten)
	span("total_time", l.TotalTime)
	span("session_cpu", l.SessionCPU)
	size("session_written", l.SessionWritten)
	span("session_time", l.SessionTime)
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// SizeText is bytes as files write them.
func SizeText(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if size := int64(1) << (10 * (4 - i)); n >= size && n%size == 0 {
			return strconv.FormatInt(n/size, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10)
}
