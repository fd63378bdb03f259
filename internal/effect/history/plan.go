package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// Rollback is what going back to the end of a turn means for the files of the
// workspace. Looking changes nothing.
type Rollback struct {
	To      PastTurn        `json:"-"` // the last turn that stays; without id: none does
	Files   []FileChange    `json:"files,omitempty"`
	Foreign []Refusal       `json:"foreign,omitempty"` // changed by others since; they stay unless that is forced
	Lost    []Refusal       `json:"lost,omitempty"`    // can't be restored
	Ran     []UntrackedCall `json:"ran,omitempty"`     // calls whose changes to files are not known
	After   int64           `json:"-"`                 // the thread's last fact
}

// FileChange is a file of a plan: what is there, and what it becomes. Nil is
// nothing.
type FileChange struct {
	Path string     `json:"path"`
	Have *belay.Ref `json:"have,omitempty"`
	Want *belay.Ref `json:"want,omitempty"`
	Mode string     `json:"mode,omitempty"` // permission bits of a file that comes back
	// Forced: it was changed by others, and a person wants it back all the same.
	Forced bool `json:"forced,omitempty"`
}

// Digest is a content's digest as files are compared by it.
func Digest(r *belay.Ref) string {
	if r == nil {
		return file.Absent
	}
	return string(r.Digest)
}

// Refusal is a file that stays as it is, and why.
type Refusal struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// UntrackedCall is a call that started programs: what they did to files isn't recorded.
type UntrackedCall struct {
	Turn int          `json:"turn,omitempty"` // its number; 0: it was taken back before
	Call belay.CallID `json:"call"`
	Tool string       `json:"tool"`
	What string       `json:"what"`           // the beginning of its arguments
	Kept bool         `json:"kept,omitempty"` // a snapshot has what it did to files that git doesn't ignore
}

// String names the call for a person and for a model.
func (r UntrackedCall) String() string {
	where := ""
	if r.Kept {
		where = " that git ignores"
	}
	return fmt.Sprintf("%s %s: what it changed in files%s is not recorded", r.Tool, r.What, where)
}

// Planner is how a plan is made.
type Planner struct {
	Root   *os.Root  // the workspace
	Dir    string    // its path
	Keeper Snapshots // what turns kept of it; nil: nothing can be read
	Force  bool      // also what others changed since

	// What is there is kept before it is overwritten, unless one of these secrets
	// is in it; nil: nothing is overwritten, so nothing is kept.
	Secrets *secret.Scrubber
}

// PlanRollback returns the file changes that undo everything after a turn.
func (p *Past) PlanRollback(ctx context.Context, to PastTurn, l Planner) (*Rollback, error) {
	rb := &Rollback{To: to, After: p.Seq}
	f := &laterChanges{turns: map[belay.TurnID]int{}, calls: map[belay.StreamID]map[belay.CallID]UntrackedCall{}, agents: map[belay.StreamID]int{}, files: map[string]*changed{}, to: to.Number}
	for _, t := range p.Turns {
		f.turns[t.ID] = t.Number
	}
	from, err := p.at(ctx, to.End)
	if err != nil {
		return nil, err
	}
	for r, err := range p.st.Window(ctx, store.Window{Session: p.Session, After: from}) {
		if err != nil {
			return nil, err
		}
		switch ev := r.Event; {
		case ev.Stream == p.Thread.Stream():
			f.fold(ev)
			f.kept.fold(ev)
		default:
			f.below(p.Thread, ev)
		}
	}
	done, err := rb.lookKept(ctx, p, l, &f.kept)
	if err != nil {
		return nil, err
	}
	rb.Ran = f.ran
	for i := range rb.Ran {
		rb.Ran[i].Kept = l.Keeper != nil && f.kept.whole()
	}
	for _, path := range f.paths {
		if done[path] {
			continue
		}
		if err := rb.look(ctx, p.st, l, path, f.files[path]); err != nil {
			return nil, err
		}
	}
	return rb, nil
}

// at is the position of a fact of the thread; 0: before the first.
func (p *Past) at(ctx context.Context, seq int64) (store.Position, error) {
	if seq == 0 {
		return 0, nil
	}
	for r, err := range p.st.Window(ctx, store.Window{Stream: p.Thread.Stream()}) {
		if err != nil || r.Event.Seq == seq {
			return r.Position, err
		}
	}
	return 0, store.ErrNotFound
}

// below takes a fact of another stream of the session: those of agents that turns after it
// started count as theirs.
func (f *laterChanges) below(main belay.ThreadID, ev event.Envelope) {
	if p, ok := ev.Data.(event.SubagentSpawned); ok {
		n, mine := f.agents[ev.IDs.Thread.Stream()]
		if ev.IDs.Thread == main {
			n, mine = f.turns[ev.IDs.Turn], f.turns[ev.IDs.Turn] > f.to
		}
		if mine {
			f.agents[p.Thread.Stream()] = n
		}
	}
	if _, mine := f.agents[ev.Stream]; mine {
		f.fold(ev)
	}
}

// laterChanges is what happened to files after a turn.
type laterChanges struct {
	to     int // the turn's number; 0: before the first
	turns  map[belay.TurnID]int
	agents map[belay.StreamID]int // by the number of the turn that they worked for
	calls  map[belay.StreamID]map[belay.CallID]UntrackedCall
	ran    []UntrackedCall
	files  map[string]*changed
	paths  []string // in the order of their first change
	kept   turnSnapshots
}

// changed is a file's first and last recorded change. broken means that the
// current content was made on top of an unrecorded change.
type changed struct {
	first, last event.ArtifactChanged
	broken      bool
	was         map[string]bool // by content: broken when it came
}

// then takes the next change.
func (c *changed) then(p event.ArtifactChanged, restored bool) {
	if c.was == nil {
		c.first, c.was = p, map[string]bool{content(p.Before, p.Op == "created"): false}
	} else if broken, known := c.was[content(p.After, p.Op == "removed")]; restored {
		c.broken = broken || !known // what others did since is gone
	} else {
		c.broken = c.broken || !follows(c.last, p)
	}
	c.last = p
	if _, known := c.was[content(p.After, p.Op == "removed")]; !known {
		c.was[content(p.After, p.Op == "removed")] = c.broken
	}
}

func (f *laterChanges) fold(ev event.Envelope) {
	switch p := ev.Data.(type) {
	case event.ModelCompleted:
		calls := map[belay.CallID]UntrackedCall{}
		f.calls[ev.Stream] = calls
		turn := cmp.Or(f.agents[ev.Stream], f.turns[ev.IDs.Turn])
		for _, c := range p.Calls {
			calls[c.ID] = UntrackedCall{Turn: turn, Call: c.ID, Tool: c.Name, What: event.CutText(string(c.Args), Preview)}
		}
	case event.SandboxApplied:
		if r, ok := f.calls[ev.Stream][ev.IDs.Call]; ok && ev.IDs.Call != "" {
			delete(f.calls[ev.Stream], ev.IDs.Call) // once, also with several attempts
			f.ran = append(f.ran, r)
		}
	case event.ArtifactChanged:
		if p.Kind != "file" || p.Path == "" {
			return
		}
		c := f.files[p.Path]
		if c == nil {
			c = &changed{}
			f.paths = append(f.paths, p.Path)
			f.files[p.Path] = c
		}
		c.then(p, ev.IDs.Turn == "")
	}
}

// content names what a fact says of a file's content: also that there was none,
// and that it wasn't kept.
func content(r *belay.Ref, none bool) string {
	if r == nil && !none {
		return "not kept"
	}
	return Digest(r)
}

// follows reports whether a change began with what the one before it left.
func follows(a, b event.ArtifactChanged) bool {
	switch {
	case b.Op == "created":
		return a.Op == "removed"
	case a.Op == "removed" || a.After == nil || b.Before == nil:
		return false
	}
	return a.After.Digest == b.Before.Digest
}

// lose plans nothing for a file.
func (rb *Rollback) lose(path, why string) error {
	rb.Lost = append(rb.Lost, Refusal{path, why})
	return nil
}

// look decides what becomes of one file.
func (rb *Rollback) look(ctx context.Context, st store.Run, l Planner, path string, c *changed) error {
	want, have := c.first.Before, c.last.After
	if c.first.Op != "created" && (want == nil || !c.first.Kept) {
		return rb.lose(path, cmp.Or(c.first.Note, "the content before wasn't kept"))
	}
	now, err := file.Look(ctx, l.Root, path)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return rb.lose(path, Reason(path, err).Error())
	case now.Digest == Digest(want):
		return nil // it is so already
	}
	if want != nil {
		if err := there(ctx, st, *want); err != nil {
			return rb.lose(path, "the content before is not in the store any more")
		}
	}
	why := ""
	switch {
	case c.last.Op != "removed" && have == nil:
		why = "what the agent wrote holds a secret and wasn't kept, so whether it was changed since is unknown"
	case now.Digest != Digest(have):
		why = changedSince
	case c.broken:
		why = changedBetween
	}
	return rb.change(ctx, st, l, FileChange{Path: path, Have: have, Mode: c.last.Mode}, now, why, func() (*belay.Ref, error) { return want, nil })
}

// Why a file isn't the agent's alone.
const (
	changedSince   = "it was changed by others since"
	changedBetween = "it was changed by others between the agent's changes"
)

// change plans that a file becomes what want returns. f.Mode is the mode of a file
// that comes back, and why says how others changed it; empty: they did not.
func (rb *Rollback) change(ctx context.Context, st store.Run, l Planner, f FileChange, now file.Standing, why string, want func() (*belay.Ref, error)) (err error) {
	if f.Forced = why != ""; f.Forced {
		rb.Foreign = append(rb.Foreign, Refusal{f.Path, why})
		if !l.Force {
			return nil
		}
		f.Have = nil
	}
	said := "what is there holds a secret and can't be kept, so it is not overwritten"
	if now.Digest != file.Absent {
		if f.Mode = now.Mode; f.Have == nil {
			f.Have, err = l.keep(ctx, st, now.Content)
		}
	}
	if err == nil {
		said = "the content before holds a secret and can't be kept; git has it"
		f.Want, err = want()
	}
	switch {
	case errors.Is(err, tool.ErrHoldsSecret):
		return rb.lose(f.Path, said)
	case err == nil:
		rb.Files = append(rb.Files, f)
	}
	return err
}

func there(ctx context.Context, st store.Run, ref belay.Ref) error {
	r, err := st.Open(ctx, ref.Digest)
	if err != nil {
		return err
	}
	return r.Close()
}

// Command is the rollback as a wish, its plan kept as content.
func (rb *Rollback) Command(ctx context.Context, st store.Run, scope, reason string) (belay.RollBack, error) {
	c := belay.RollBack{Scope: scope, To: rb.To.ID, After: rb.After, Files: len(rb.Files), Reason: reason}
	for _, r := range rb.Ran {
		c.Kept = append(c.Kept, event.CutText(r.String(), 400))
	}
	for _, r := range slices.Concat(rb.unforced(), rb.Lost) {
		c.Kept = append(c.Kept, event.CutText(r.Path+": "+r.Why, 400))
	}
	c.Kept = event.Fitting(c.Kept, RoomForArtifacts)
	if len(rb.Files) == 0 {
		return c, nil
	}
	raw, err := json.Marshal(rb.Files)
	if err != nil {
		return c, err
	}
	ref, err := st.Put(ctx, raw, "application/json")
	c.Plan = &ref
	return c, err
}

// unforced are the files of others that stay as they are.
func (rb *Rollback) unforced() []Refusal {
	return slices.DeleteFunc(slices.Clone(rb.Foreign), func(r Refusal) bool {
		return slices.ContainsFunc(rb.Files, func(f FileChange) bool { return f.Path == r.Path })
	})
}

// RoomForArtifacts bounds the files, and the reasons, that a fact names, in bytes.
const RoomForArtifacts = 5 << 10

// Reason is why a file stays as it is, in a line.
func Reason(path string, err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return errors.New(e.Message)
	}
	return errors.New(path + ": " + strings.ReplaceAll(err.Error(), "\n", " "))
}
