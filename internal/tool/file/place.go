//go:build unix

package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/tool"
)

const maxLinks = 40

// errChanged means that a component of the path was swapped during the walk.
var errChanged = errors.New("changed while it was being opened")

// place is where a path leads after all links: the open directory that holds
// it and the last component. Each directory on the way was opened from the one
// above and compared with what stood there, so real is where dir really is.
type place struct {
	name    string // as asked for, cleaned
	real    string // without links
	dir     *os.Root
	base    string
	info    fs.FileInfo // nil when nothing is there
	missing []string    // directories to make in dir before base; then info is nil

	opened []*os.Root
	reads  []*os.File // what was read, open until the place is left
	made   []made     // folders
	steps  func(op string) error
}

// at walks to a path and calls f with the place. An absolute path may lie in the
// workspace.
func at(ctx context.Context, root *os.Root, name string, f func(p *place) error) error {
	clean, err := Clean(Within(root.Name(), name))
	if err != nil {
		return err
	}
	return withPlaces(ctx, root, []string{clean}, name, show(name), func(ps []*place) error { return f(ps[0]) })
}

// withPlaces walks to paths that are clean and calls f with their places. Paths that
// are swapped meanwhile are walked again, and given up after some tries: said are
// the paths together, changing what is reported of them then.
func withPlaces(ctx context.Context, root *os.Root, names []string, said, changing string, f func(ps []*place) error) error {
	for range 20 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := walkAll(ctx, root, names, f); !errors.Is(err, errChanged) {
			return Problem(err, said)
		}
	}
	return tool.Failf(tool.Transient, CodeKeepsChanging, "%s keeps changing while it is being opened", changing)
}

func walkAll(ctx context.Context, root *os.Root, names []string, f func(ps []*place) error) error {
	var ps []*place
	defer func() {
		for _, p := range ps {
			p.close()
		}
	}()
	for _, name := range names {
		p := &place{name: name, steps: stepsOf(ctx)}
		ps = append(ps, p)
		if err := p.walk(root); err != nil {
			return Problem(err, name)
		}
	}
	return f(ps)
}

func (p *place) close() {
	for _, f := range p.reads {
		f.Close()
	}
	for _, r := range p.opened {
		r.Close()
	}
}

// walk finds dir and base. Roots are only asked for single components that are
// no links; the links are followed here.
func (p *place) walk(root *os.Root) error {
	stack, names := []*os.Root{root}, []string{}
	todo, links := strings.Split(p.name, "/"), 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		dir := stack[len(stack)-1]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(names) == 0 {
				return outside(p.name)
			}
			stack, names = stack[:len(stack)-1], names[:len(names)-1]
			continue
		}
		info, err := dir.Lstat(part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return p.absent(dir, names, append([]string{part}, todo...))
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return tool.Failf(tool.Denied, CodeBadLink, "%s: more than %d links, or links in a circle", show(p.name), maxLinks)
			}
			target, err := dir.Readlink(part)
			if err != nil {
				return changed(err)
			}
			if path.IsAbs(target) {
				return outside(p.name)
			}
			todo = append(strings.Split(target, "/"), todo...)
		case len(todo) == 0:
			p.dir, p.base, p.info, p.real = dir, part, info, join(names, part)
			return nil
		case !info.IsDir():
			return tool.Failf(tool.BadArguments, CodeNotDirectory, "%s: %s is not a folder", show(p.name), show(join(names, part)))
		default:
			sub, err := p.open(dir, part, info)
			if err != nil {
				return err
			}
			stack, names = append(stack, sub), append(names, part)
		}
	}
	dir := stack[len(stack)-1]
	info, err := dir.Stat(".")
	p.dir, p.base, p.info, p.real = dir, ".", info, join(names, "")
	return err
}

// open opens a directory that was just seen, as that directory.
func (p *place) open(dir *os.Root, part string, seen fs.FileInfo) (*os.Root, error) {
	sub, err := files.OpenRootIn(dir, part)
	if err != nil {
		return nil, changed(err)
	}
	p.opened = append(p.opened, sub)
	if now, err := sub.Stat("."); err != nil || !os.SameFile(seen, now) {
		return nil, errChanged
	}
	return sub, nil
}

// changed is errChanged for an error that seeing the thing a moment ago makes
// impossible otherwise.
func changed(err error) error {
	for _, no := range []error{fs.ErrNotExist, files.ErrNotRegular, syscall.EINVAL, syscall.ENOTDIR, syscall.ELOOP} {
		if errors.Is(err, no) {
			return errChanged
		}
	}
	if escapes(err) {
		return errChanged
	}
	return err
}

// absent ends the walk at a component that isn't there.
func (p *place) absent(dir *os.Root, names, rest []string) error {
	rest = slices.DeleteFunc(rest, func(s string) bool { return s == "" || s == "." })
	if slices.Contains(rest, "..") {
		return fs.ErrNotExist
	}
	last := len(rest) - 1
	p.dir, p.missing, p.base = dir, rest[:last], rest[last]
	p.real = join(append(slices.Clone(names), rest[:last]...), p.base)
	return nil
}

func join(names []string, last string) string {
	return path.Join(append(slices.Clone(names), last, ".")...)
}

// file opens the place for reading if it is a regular file.
func (p *place) file() (*os.File, error) {
	if err := p.regular(); err != nil {
		return nil, err
	}
	f, now, err := files.OpenIn(p.dir, p.base)
	if err != nil {
		return nil, changed(err)
	}
	if !os.SameFile(now, p.info) {
		f.Close()
		return nil, errChanged
	}
	p.info = now
	return f, nil
}

// regular returns an error if the place is no regular file.
func (p *place) regular() error {
	switch {
	case p.info == nil:
		return fs.ErrNotExist
	case p.info.IsDir():
		return tool.Failf(tool.BadArguments, CodeIsDirectory, "%s is a folder", show(p.name)).WithHint("use list for folders")
	case !p.info.Mode().IsRegular():
		return tool.Failf(tool.Denied, CodeNotRegular, "%s is %s, not a regular file", show(p.name), kindOf(p.info.Mode()))
	}
	return nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
}
