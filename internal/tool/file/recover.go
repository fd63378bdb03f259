//go:build unix

package file

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// recoverWrite compares: a file that has the content was written, one that is
// as the thread knew it was not.
func recoverWrite(ctx context.Context, c tool.Call, in writeArgs) (tool.Result, bool, error) {
	return recovered(ctx, c, in.Path, func(past) ([]byte, bool) { return []byte(in.Content), true })
}

// recoverEdit makes the edit again on what was kept of the file before it.
func recoverEdit(ctx context.Context, c tool.Call, in editArgs) (tool.Result, bool, error) {
	return recovered(ctx, c, in.Path, func(was past) ([]byte, bool) {
		if !was.kept {
			return nil, false
		}
		e, err := in.apply(was.content)
		return e.after, err == nil
	})
}

// past is what is known of a file before the attempt.
type past struct {
	digest  string // absent for one the thread didn't know: then only a new file could be made
	content []byte
	kept    bool // content is there
}

func pastOf(c tool.Call, p *place) past {
	d, ok := expected(c, p)
	if !ok || d == Absent {
		return past{digest: Absent}
	}
	b, err := c.Sink.Kept(belay.Digest(d))
	return past{d, b, err == nil}
}

// recovered finds out what an attempt did; remake says what it would have made
// of the file, if that can be told.
func recovered(ctx context.Context, c tool.Call, name string, remake func(past) ([]byte, bool)) (r tool.Result, done bool, err error) {
	err = at(ctx, c.Root, name, func(p *place) error {
		if isProtected(p.real) {
			return nil // refused then, and will be again
		}
		p.sweep(tempPrefix(c.ID))
		now, _, err := p.current()
		if err != nil {
			return err
		}
		was := pastOf(c, p)
		if now == was.digest {
			return nil
		}
		made, ok := remake(was)
		if !ok || now != digestOf(made) {
			return tool.Failf(tool.Lost, CodeUnknownEffect, "%s is neither as it was nor as it should be", show(name)).
				WithHint("read %s to see what is there", show(name))
		}
		done = true
		r, err = found(c, p, was, made)
		return err
	})
	return r, done, err
}

// found is the result of an attempt whose effect is there, and records the
// change: whether the attempt still could is unknown.
func found(c tool.Call, p *place, was past, made []byte) (tool.Result, error) {
	fact := event.ArtifactChanged{Kind: "file", Path: p.real, Op: "changed", Kept: was.kept}
	if was.digest == Absent {
		fact.Op, fact.Kept = "created", true
	}
	if was.digest != Absent && p.info != nil {
		fact.Mode = modeOf(p.info) // a replaced file keeps it
	}
	if was.kept {
		fact.Before = &belay.Ref{Digest: belay.Digest(was.digest), Size: int64(len(was.content)), Media: textMedia}
	}
	var err error
	if fact.After, err = keep(c, made); err != nil {
		return tool.Result{}, err
	}
	c.Sink.Fact(fact)
	return tool.Result{
		Text:  fmt.Sprintf("%s %s before the interruption", fact.Op, p.name),
		Files: p.seen(digestOf(made)),
	}, nil
}
