package thread

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// Bounds of what is remembered of instructions.
const (
	maxNested = 256 // files that were given
	maxDue    = 8   // files that are given at once
)

// surroundings is what the model was told of where the thread works, as long as that
// stands in the conversation. Instructions stay what they were when the conversation
// began, so that each request begins with the bytes of the one before.
type surroundings struct {
	Told        bool     `json:"told,omitempty"`        // in the running turn
	Environment []string `json:"environment,omitempty"` // as name: value

	Anew         bool                `json:"anew,omitempty"`         // the conversation begins anew
	Instructions *belay.Content      `json:"instructions,omitempty"` // that it began with
	Given        []event.ContextItem `json:"given,omitempty"`        // files of them, as they were given last
	Nested       []string            `json:"nested,omitempty"`       // files for folders that were given, or can't be
	Due          []string            `json:"due,omitempty"`          // and that are to be given
}

// forget makes the model be told everything again: what it was told is not in the
// conversation any more. Requests keep their instructions until there are new ones.
func (s *surroundings) forget() { *s = surroundings{Anew: true, Instructions: s.Instructions} }

// lookAround has the model told where it works, in the first message of a turn: all
// of it at first, and what changed in later turns. Instructions for folders follow
// the results of the calls that were the first there.
func lookAround(d *decision) bool {
	t := d.Turn
	if st := t.Step; st != nil && !(st.settled() && len(st.Calls) > 0) && !(st.Phase == stepFailed && d.from() > st.From) {
		return false
	}
	if in := d.instructs(); in != nil {
		d.record(d.fact(event.ContextResolved{Items: d.rules.Context, Omitted: d.rules.LeftOut, Instructions: in}))
		return true
	}
	e := core.LookAround{IDs: d.ids(), Look: t.Looks + 1, Dir: d.rules.Workspace}
	if e.Environment = d.rules.Environment && !d.Told; e.Environment {
		e.Changed, e.Gone = d.changed()
		if d.rules.Settings.Instructions != "none" {
			e.Again = d.ofFolders()
		}
		e.Lines, e.Known = d.rules.surroundings(), d.Environment
		if e.From = d.from(); e.From > 1 {
			e.Recall, e.Least = max(usable(d.to()), 0)*recallPart/100, cmp.Or(d.rules.Settings.Relevance, belay.DefaultRelevance)
		}
	} else if e.Nested = d.Due; len(e.Nested) == 0 {
		return false
	}
	d.want(e)
	return true
}

// instructs is the instructions that the conversation begins with, if it begins and
// they are others than before.
func (d *decision) instructs() *belay.Content {
	switch in := d.rules.Instructions; {
	case !d.Anew && (d.Turn != nil || d.Prev != nil):
	case in == nil && d.Instructions != nil: // there are none any more
		return &belay.Content{}
	default:
		return in
	}
	return nil
}

// instructionsRef is the instructions of the place that requests begin with.
func (s *surroundings) instructionsRef() *belay.Ref {
	if s.Instructions == nil {
		return nil
	}
	return s.Instructions.Ref
}

// fixed is how many tokens each request has before the conversation; 0: it wasn't
// counted.
func (d *decision) fixed() int64 {
	if d.Instructions == nil || d.rules.Tokens == 0 {
		return d.rules.Tokens
	}
	return d.rules.Tokens + d.Instructions.Tokens
}

// ofFolders are the instructions for folders that the model was given.
func (s *surroundings) ofFolders() []event.ContextItem {
	return slices.DeleteFunc(slices.Clone(s.Given), func(g event.ContextItem) bool { return g.Scope != scopeFolder })
}

// changed are the instructions that aren't what the model was given, and the files
// that are no more. Items of other kinds, such as skills, have no content of their own.
func (d *decision) changed() (changed []event.ContextItem, gone []string) {
	for _, i := range d.rules.Context {
		if i.Kind == kindInstruction && !slices.ContainsFunc(d.Given, func(g event.ContextItem) bool { return sameItem(g, i) && sameRef(g.Ref, i.Ref) }) {
			changed = append(changed, i)
		}
	}
	for _, g := range d.Given {
		if g.Kind == kindInstruction && g.Scope != scopeFolder && !slices.ContainsFunc(d.rules.Context, func(i event.ContextItem) bool { return sameItem(g, i) }) {
			gone = append(gone, g.Name)
		}
	}
	return changed, gone
}

func sameItem(a, b event.ContextItem) bool { return a.Name == b.Name && a.Scope == b.Scope }

func sameRef(a, b *belay.Ref) bool {
	return a == b || a != nil && b != nil && a.Digest == b.Digest
}

// looked folds what the model was told.
func (s *State) looked(p event.ContextResolved) {
	if in := p.Instructions; in != nil {
		s.Anew, s.Instructions, s.Given = false, in, p.Items
		if in.Ref == nil {
			s.Instructions = nil
		}
	}
	if p.Look == 0 {
		return
	}
	s.Turn.Looks, s.Told = p.Look, true
	for _, line := range p.Environment {
		name, _, _ := strings.Cut(line, ": ")
		s.Environment = append(slices.DeleteFunc(s.Environment, func(l string) bool { return strings.HasPrefix(l, name+": ") }), line)
	}
	for _, i := range p.Items {
		if i.Kind == kindInstruction {
			s.nested(i.Name)
			s.Given = append(slices.DeleteFunc(s.Given, func(g event.ContextItem) bool { return sameItem(g, i) }), i)
		}
	}
	if of := s.ofFolders(); len(of) > maxNested {
		s.Given = slices.DeleteFunc(s.Given, func(g event.ContextItem) bool { return sameItem(g, of[0]) })
	}
	for _, o := range p.Omitted {
		s.nested(o.Name)
		if o.Reason == reasonMissing {
			s.Given = slices.DeleteFunc(s.Given, func(g event.ContextItem) bool { return g.Name == o.Name })
			s.Nested = slices.DeleteFunc(s.Nested, func(name string) bool { return name == o.Name }) // it may come back
		}
	}
}

// Words of facts about instructions.
const (
	kindInstruction = "instruction"
	scopeFolder     = "folder"
	reasonMissing   = "missing"
)

// nested folds that a file of instructions was given, or can't be.
func (s *surroundings) nested(name string) {
	if i := slices.Index(s.Due, name); i >= 0 {
		s.Due = slices.Delete(s.Due, i, i+1)
		s.Nested = keep(append(s.Nested, name), maxNested)
	}
}

// works folds that the thread works in folders that have instructions.
func (s *surroundings) works(files []string) {
	for _, f := range files {
		given := slices.ContainsFunc(s.Given, func(g event.ContextItem) bool { return g.Name == f })
		if !given && !slices.Contains(s.Nested, f) && !slices.Contains(s.Due, f) && len(s.Due) < maxDue {
			s.Due = append(s.Due, f)
		}
	}
}

// surroundings is what the rules say of where the turn works, as name: value.
func (r *Rules) surroundings() []string {
	name := cmp.Or(r.Settings.Boundary, policy.ModeBoundary(r.Settings.Mode))
	boundary, network := name+", "+r.Boundary.Level, belay.NetworkFull
	if b, ok := r.Gate().Bound(name); ok {
		network = cmp.Or(b.Is.Network, belay.NetworkNone)
	}
	if policy.Bare(r.Boundary.Level, r.Settings.Boundary) && !r.Boundary.Tries {
		boundary, network = "none: "+cmp.Or(r.Boundary.Why, "programs aren't confined"), belay.NetworkFull
	}
	shell := "/bin/sh"
	if s := r.Settings.Shell; s != nil {
		shell = s.Path
	}
	cwd := r.Workspace
	if r.Cwd != "" {
		cwd = path.Join(r.Workspace, r.Cwd) + " (of the person; tools start in the workspace)"
	}
	return []string{
		"workspace: " + r.Workspace, "cwd: " + cwd, "shell: " + shell, "boundary of programs: " + boundary, "network of programs: " + network,
	}
}
