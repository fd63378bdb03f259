//go:build unix

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/patch"
)

// pendingSwap is a change that only needs its name to be changed.
type pendingSwap struct {
	patch.Change
	p    *place
	temp string
	fact event.ArtifactChanged
	mine fs.FileInfo // the file that was put there
	done bool        // the name is changed
}

// commit makes the changes. Everything is kept and written beside the files
// first; then the names change one by one, new contents before removals. When
// one of them fails those before it are taken back.
func (s *patchSet) commit(changes []patch.Change) (tool.Result, error) {
	all := make([]*pendingSwap, 0, len(changes))
	for _, c := range changes {
		f, err := s.fact(c)
		if err != nil {
			return tool.Result{}, err
		}
		all = append(all, &pendingSwap{Change: c, p: s.places[c.Name], fact: f})
	}
	if err := s.stage(all); err != nil {
		s.unstage(all)
		return tool.Result{}, err
	}
	if err := s.swapAll(all); err != nil {
		return tool.Result{}, err
	}
	for _, st := range all {
		s.call.Sink.Fact(st.fact)
	}
	return tool.Result{Text: s.text(changes), Files: s.seen(changes)}, nil
}

// fact is what to say of a change when it is made; both contents are kept.
func (s *patchSet) fact(c patch.Change) (event.ArtifactChanged, error) {
	ch := &change{p: s.places[c.Name], call: s.call, before: []byte(c.Before), absent: !c.Was}
	if c.Is {
		return ch.fact([]byte(c.After))
	}
	f, err := ch.fact(nil)
	f.Op, f.After = "removed", nil
	return f, err
}

// stage writes the new contents beside the files.
func (s *patchSet) stage(all []*pendingSwap) (err error) {
	for _, st := range all {
		if !st.Is {
			continue
		}
		if st.temp, err = st.p.stage(tempPrefix(s.call.ID), []byte(st.After), s.look(st)); err != nil {
			return Problem(err, st.Name)
		}
	}
	for _, st := range all {
		if err := st.p.unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// look is the mode of a new content: a moved or copied file keeps its own.
func (s *patchSet) look(st *pendingSwap) look {
	l := st.p.look()
	if from := s.places[st.From]; st.From != "" && from != nil && l.of == nil {
		l.of = from.info
	}
	if st.Exec {
		l.perm = 0o777
	}
	return l
}

// unstage removes what stage left.
func (s *patchSet) unstage(all []*pendingSwap) {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].temp != "" {
			all[i].p.drop(all[i].temp)
		}
		all[i].p.unmakeFolders()
	}
}

// swapAll changes the names.
func (s *patchSet) swapAll(all []*pendingSwap) error {
	for i, st := range all {
		err := st.swap()
		if err == nil {
			continue
		}
		left := takeBack(all[:i+1], tempPrefix(s.call.ID))
		s.unstage(all)
		if len(left) > 0 {
			return s.torn(err, left)
		}
		return Problem(err, st.Name)
	}
	return nil
}

// swap changes one name.
func (st *pendingSwap) swap() (err error) {
	if !st.Is {
		if err = st.p.remove(); err != nil {
			return err
		}
		st.done = true
		return st.p.settle("removed")
	}
	temp := st.temp
	st.temp = "" // swap drops it itself
	if err = st.p.swap(temp); err != nil {
		return err
	}
	st.done = true
	if st.mine, err = st.p.dir.Lstat(st.p.base); err != nil {
		return err
	}
	return st.p.settle("replaced")
}

// takeBack puts back what was there before, last change first, and gives those
// that can't be.
func takeBack(all []*pendingSwap, prefix string) (left []*pendingSwap) {
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].done {
			continue
		}
		if err := all[i].takeBack(prefix); err != nil {
			left = append(left, all[i])
		}
	}
	return left
}

func (st *pendingSwap) takeBack(prefix string) error {
	now, err := st.p.dir.Lstat(st.p.base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if st.Is && (err != nil || st.mine == nil || !sameState(now, st.mine)) || !st.Is && err == nil {
		return errChanged // it was changed meanwhile
	}
	if !st.Was {
		if err := st.p.do("take back", func() error { return st.p.dir.Remove(st.p.base) }); err != nil {
			return err
		}
		return syncDir(st.p.dir)
	}
	temp, err := st.p.stage(prefix, []byte(st.Before), st.p.look())
	if err != nil {
		return err
	}
	if err := st.p.do("take back", func() error { return st.p.dir.Rename(temp, st.p.base) }); err != nil {
		st.p.drop(temp)
		return err
	}
	return syncDir(st.p.dir)
}

// torn is the worst end: a part was changed and can't be taken back.
func (s *patchSet) torn(err error, left []*pendingSwap) error {
	names := make([]string, len(left))
	e := tool.Failf(tool.Lost, CodeUnknownEffect, "")
	for i, st := range left {
		names[i] = show(st.Name)
		s.call.Sink.Fact(st.fact)
		e.Files = bounded(append(e.Files, s.seen([]patch.Change{st.Change})...), maxSeen/2)
	}
	e.Message = fmt.Sprintf("only a part of the patch was made, and could not be taken back: %s; the cause: %v", strings.Join(names, ", "), err)
	return e.WithHint("read these files before you go on")
}
