//go:build unix

package file

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// change is one file on its way from one content to another.
type change struct {
	p      *place
	call   tool.Call
	before []byte // nil only when absent
	absent bool
}

// open looks at what is there and checks that the thread knows it.
func open(c tool.Call, p *place) (*change, error) {
	ch := &change{p: p, call: c}
	if isProtected(p.real) {
		return nil, tool.Failf(tool.Denied, CodeProtected, "%s is protected and can't be written", show(p.real)).
			WithHint("git's hooks and configuration and the runtime's own folder are not for tools to change")
	}
	if p.info == nil {
		ch.absent = true
		return ch, ch.known()
	}
	if err := p.regular(); err != nil {
		return nil, err
	}
	if err := p.writable(); err != nil {
		return nil, err
	}
	var err error
	if ch.before, err = p.content(); err != nil {
		return nil, err
	}
	return ch, ch.known()
}

// writable reports whether the file itself may be written: replacing it asks only
// for its folder, and root may do anything.
func (p *place) writable() error {
	if p.info.Mode().Perm()&0o222 == 0 {
		return tool.Failf(tool.Denied, CodeReadOnlyFile, "%s is read-only", show(p.name))
	}
	f, err := p.dir.OpenFile(p.base, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return changed(err)
	}
	return f.Close()
}

// content is the whole file.
func (p *place) content() ([]byte, error) { return p.upTo(maxContent, "changed") }

// current is what is at the place, and its digest.
func (p *place) current() (digest string, content []byte, err error) {
	if p.info == nil {
		return Absent, nil, nil
	}
	content, err = p.content()
	return digestOf(content), content, err
}

// upTo is the whole file if it isn't larger than most.
func (p *place) upTo(most int64, done string) ([]byte, error) {
	f, err := p.file()
	if err != nil {
		return nil, err
	}
	p.reads = append(p.reads, f)
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, tool.Failf(tool.Denied, CodeTooLarge, "%s has %s; files over %s can't be %s", show(p.name), size(p.info.Size()), size(most), done)
	}
	return b, nil
}

// Content is a file of the workspace, for other tools that take one: opened as
// the tools of this package open files, and at most so many bytes long.
func Content(ctx context.Context, root *os.Root, name string, most int64) (content []byte, err error) {
	err = at(ctx, root, name, func(p *place) error {
		content, err = p.upTo(most, "taken")
		return err
	})
	return content, err
}

// expected is the digest that the thread last saw.
func expected(c tool.Call, p *place) (string, bool) {
	d, ok := c.Expect[p.name]
	if !ok {
		d, ok = c.Expect[p.real]
	}
	return d, ok
}

// known refuses a file that isn't as the thread knows it.
func (ch *change) known() error {
	p := ch.p
	want, ok := expected(ch.call, p)
	switch {
	case ch.absent && (!ok || want == Absent):
		return nil
	case ch.absent:
		e := tool.Failf(tool.Conflict, CodeConflict, "%s was removed since it was read", show(p.name)).
			WithHint("write it again if it should exist")
		e.Files = p.seen(Absent)
		return e
	case !ok:
		return tool.Failf(tool.Conflict, CodeNotRead, "%s exists and was not read", show(p.name)).
			WithHint("read %s before you change it", show(p.name))
	case want == digestOf(ch.before):
		return nil
	}
	e := tool.Failf(tool.Conflict, CodeConflict, "%s was changed by others since it was read", show(p.name)).
		WithHint("read %s again and make the change to what is there now", show(p.name))
	if want == Absent {
		e.Message = show(p.name) + " was created by others meanwhile"
	} else if old, err := ch.call.Sink.Kept(belay.Digest(want)); err == nil {
		e.Text = conflictDiff(p.name, old, ch.before)
	}
	return e
}

// restore is a text of the model with the file's own values where it has marks:
// what a mark stands for is put back only into the file that has it.
func (ch *change) restore(text string) (string, error) {
	text, unknown := ch.call.Sink.Restore(text, ch.before)
	if unknown == "" {
		return text, nil
	}
	return "", tool.Failf(tool.Conflict, CodeRedacted, "%s stands for a secret that isn't in %s", unknown, show(ch.p.name)).
		WithHint("nothing was written; a mark keeps the value that the file has, so read the file again, or let a person put the value there")
}

// apply makes the file have the content, after what was there is kept, and
// records it.
func (ch *change) apply(after []byte) error {
	fact, err := ch.fact(after)
	if err != nil {
		return err
	}
	if err := ch.p.replace(tempPrefix(ch.call.ID), after, ch.p.look(), "replaced"); err != nil {
		return err
	}
	ch.call.Sink.Fact(fact)
	return nil
}

// fact keeps both contents and is what to say when the change is made. Content
// with a secret in it isn't kept: the change happens all the same, and the fact
// says that it can't be undone.
func (ch *change) fact(after []byte) (event.ArtifactChanged, error) {
	f := event.ArtifactChanged{Kind: "file", Path: ch.p.real, Op: "created", Kept: true}
	var err error
	if !ch.absent {
		f.Op, f.Mode = "changed", modeOf(ch.p.info)
		if f.Before, err = keep(ch.call, ch.before); err != nil {
			return f, err
		}
		if f.Before == nil {
			f.Kept, f.Note = false, "the content before holds a secret and wasn't kept"
		}
	}
	f.After, err = keep(ch.call, after)
	return f, err
}

// keep stores content, unless it must not reach the store: then there is no ref.
func keep(c tool.Call, content []byte) (*belay.Ref, error) {
	ref, err := c.Sink.Keep(content, textMedia)
	switch {
	case errors.Is(err, tool.ErrHoldsSecret):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &ref, nil
}

// note returns what a replaced name means for the file's other names.
func (ch *change) note() string {
	if ch.p.info != nil {
		if st, ok := ch.p.info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
			return "\nThe file had other hard links; they keep the old content."
		}
	}
	return ""
}
