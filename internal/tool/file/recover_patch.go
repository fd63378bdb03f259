//go:build unix

package file

import (
	"context"
	"errors"
	"strings"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/patch"
)

// recoverPatch finds out how far an attempt came: not at all, to the end, or
// somewhere between two names; then it is finished, since the attempt had
// checked everything before it changed the first. A file that is neither as it
// was nor as it should be makes the effect unknown.
func recoverPatch(ctx context.Context, c tool.Call, in patchArgs) (r tool.Result, done bool, err error) {
	p, err := patch.Parse(in.Patch)
	if err != nil {
		return r, false, nil //nolint:nilerr // the attempt failed by it, and will again
	}
	err = atAll(ctx, c.Root, p.Names(), func(places map[string]*place) error {
		s := &patchSet{call: c, places: places, open: map[string]*change{}}
		l, err := s.lookUp(p)
		if err != nil || l == nil {
			return err
		}
		r, done, err = s.finish(l)
		return err
	})
	if e, ok := errors.AsType[*tool.Error](err); ok && e.Class != tool.Lost && e.Code != CodeKeepsChanging {
		return tool.Result{}, false, nil // it was refused, and will be again
	}
	return r, done, err
}

// lookedUp is how far an attempt came.
type lookedUp struct {
	changes []patch.Change
	undone  []patch.Change
	unknown []string
}

// lookUp compares the files with what they were and what they should become;
// nil when the attempt can't have begun.
func (s *patchSet) lookUp(p *patch.Patch) (*lookedUp, error) {
	now := map[string]string{}
	var unknown []string
	for _, name := range p.Names() {
		pl := s.places[name]
		if isProtected(pl.real) {
			return nil, nil
		}
		pl.sweep(tempPrefix(s.call.ID))
		digest, content, err := pl.current()
		if errors.Is(err, errChanged) {
			return nil, err
		} else if err != nil {
			return nil, partialPatchError(err)
		}
		now[name] = digest
		was := pastOf(s.call, pl)
		ch := &change{p: pl, call: s.call, before: was.content, absent: was.digest == Absent}
		if digest == was.digest {
			ch.before = content
		} else if !ch.absent && !was.kept {
			unknown = append(unknown, name)
		}
		s.open[name] = ch
	}
	if len(unknown) > 0 {
		return &lookedUp{unknown: unknown}, nil
	}
	a, err := p.Apply(s.tree)
	if err != nil {
		return nil, nil //nolint:nilerr // it didn't fit then
	}
	return s.compare(a.Changes, now), nil
}

func (s *patchSet) compare(changes []patch.Change, now map[string]string) *lookedUp {
	l := &lookedUp{changes: changes}
	for _, c := range changes {
		switch now[c.Name] {
		case digestIf(c.Is, c.After):
		case digestIf(c.Was, c.Before):
			l.undone = append(l.undone, c)
		default:
			l.unknown = append(l.unknown, c.Name)
		}
	}
	return l
}

// finish makes what is missing of a patch that was begun.
func (s *patchSet) finish(l *lookedUp) (r tool.Result, done bool, err error) {
	switch {
	case len(l.unknown) > 0:
		return r, false, tool.Failf(tool.Lost, CodeUnknownEffect, "neither as before the patch nor as after it: %s", show(strings.Join(l.unknown, ", "))).
			WithHint("read the files of the patch to see what is there")
	case len(l.undone) == len(l.changes):
		return r, false, nil
	}
	missing := map[string]bool{}
	for _, c := range l.undone {
		missing[c.Name] = true
	}
	if len(l.undone) > 0 {
		if _, err = s.commit(l.undone); errors.Is(err, errChanged) {
			return r, false, err // looked up again
		}
	}
	for _, c := range l.changes {
		if missing[c.Name] {
			continue
		}
		f, err := s.fact(c)
		if err != nil {
			return r, false, err
		}
		s.call.Sink.Fact(f)
	}
	if err != nil {
		return r, false, partialPatchError(err)
	}
	r = tool.Result{Text: s.text(l.changes) + "\nA part of it, or all, was done before the interruption.", Files: s.seen(l.changes)}
	return r, true, nil
}

// partialPatchError is the failure to finish a patch that was begun.
func partialPatchError(err error) error {
	return tool.Failf(tool.Lost, CodeUnknownEffect, "a part of the patch was done before the interruption, and the rest could not be: %v", err).
		WithHint("read the files of the patch to see what is there")
}
