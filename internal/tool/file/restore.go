//go:build unix

package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// Standing is what is at a path.
type Standing struct {
	Digest  string // Absent when nothing is
	Mode    string // permission bits in octal
	Content []byte
}

// Look reads the file at a path, which leads there without links. Anything else
// than a regular file, or nothing, is a problem.
func Look(ctx context.Context, root *os.Root, name string) (st Standing, err error) {
	err = at(ctx, root, name, func(p *place) error {
		st, err = p.standing()
		return err
	})
	return st, err
}

func (p *place) standing() (Standing, error) {
	switch {
	case p.real != p.name:
		return Standing{}, tool.Failf(tool.Conflict, CodeConflict, "a link leads from %s to %s now", show(p.name), show(p.real))
	case isProtected(p.real):
		return Standing{}, tool.Failf(tool.Denied, CodeProtected, "%s is protected", show(p.real))
	}
	digest, b, err := p.current()
	return Standing{Digest: digest, Mode: modeOf(p.info), Content: b}, err
}

// Restoration is a file that becomes what it was.
type Restoration struct {
	Path   string
	Have   string                 // digest of what must be there: any other content stays
	Want   string                 // digest of what it becomes; Absent: it is removed
	Mode   string                 // permission bits in octal, of a file that comes back; empty: the usual ones
	Mark   string                 // the same in every attempt: temporary files are found by it
	Before func() ([]byte, error) // the content it becomes
}

// Restore makes a file what it was. did is false when it was so already: an
// attempt before did it. What is neither as it must be nor as it becomes is a
// CONFLICT, and is left alone.
func Restore(ctx context.Context, root *os.Root, r Restoration) (did bool, err error) {
	prefix := tempPrefix(belay.CallID(r.Mark))
	err = at(ctx, root, r.Path, func(p *place) error {
		p.sweep(prefix)
		now, err := p.standing()
		switch {
		case err != nil:
			return err
		case now.Digest == r.Want:
			return nil
		case now.Digest != r.Have:
			return tool.Failf(tool.Conflict, CodeConflict, "%s was changed by others", show(r.Path))
		}
		did = true
		if r.Want == Absent {
			return p.takeAway()
		}
		content, err := r.Before()
		if err != nil {
			return err
		}
		return p.bring(prefix, content, r.Mode)
	})
	return did && err == nil, err
}

// bring puts content at the place. A file that is there keeps its mode, one
// that comes back gets the one it had.
func (p *place) bring(prefix string, content []byte, mode string) error {
	l := p.look()
	if p.info != nil {
		if err := p.writable(); err != nil {
			return err
		}
	} else if perm := permOf(mode); perm != 0 {
		l.perm, l.exact = perm, true
	}
	return p.replace(prefix, content, l, "restored")
}

// takeAway removes the file.
func (p *place) takeAway() error {
	if err := p.remove(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errChanged
		}
		return err
	}
	return p.settle("removed")
}

// modeOf is a file's mode; empty when it isn't there any more.
func modeOf(info fs.FileInfo) string {
	if info == nil {
		return ""
	}
	return strconv.FormatUint(uint64(info.Mode().Perm()), 8)
}

// permOf reads a mode; zero when there is none.
func permOf(mode string) fs.FileMode {
	n, err := strconv.ParseUint(mode, 8, 32)
	if err != nil {
		return 0
	}
	return fs.FileMode(n).Perm()
}
