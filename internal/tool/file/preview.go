//go:build unix

package file

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/patch"
)

// Planned is what a call would make of a file.
type Planned struct {
	Path   string
	Op     string // created, changed, removed
	Before string
	After  string
}

// Plan returns what a call of edit, write or patch would make of files as they are now;
// nothing is changed. It looks at them through clean, which takes secrets out. Another
// tool is no error: nothing is known of it then. What the call would fail with is an
// error.
func Plan(ctx context.Context, root *os.Root, name string, args json.RawMessage, clean func(string) string) ([]Planned, error) {
	p := planner{ctx, root, clean}
	switch name {
	case "edit":
		var in editArgs
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		before, is, err := p.look(in.Path)
		if err == nil && !is {
			err = Problem(fs.ErrNotExist, in.Path)
		}
		if err != nil {
			return nil, err
		}
		e, err := in.apply([]byte(before))
		return []Planned{{in.Path, "changed", before, string(e.after)}}, err
	case "write":
		var in writeArgs
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		before, is, err := p.look(in.Path)
		return []Planned{{in.Path, opOf(is, true), before, in.Content}}, err
	case "patch":
		return p.patch(args)
	}
	return nil, nil
}

// planner looks at files and leaves them as they are.
type planner struct {
	ctx   context.Context
	root  *os.Root
	clean func(string) string
}

func (p planner) look(name string) (content string, is bool, err error) {
	b, err := Content(p.ctx, p.root, name, maxContent)
	if e, ok := errors.AsType[*tool.Error](err); ok && e.Code == CodeNoSuchFile {
		return "", false, nil
	}
	return p.clean(string(b)), true, err
}

func (p planner) patch(args json.RawMessage) ([]Planned, error) {
	var in patchArgs
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	parsed, err := patch.Parse(in.Patch)
	if err != nil {
		return nil, unreadable(err)
	}
	a, err := parsed.Apply(p.look)
	if err != nil {
		return nil, unfit(err)
	}
	var out []Planned
	for _, c := range a.Changes {
		out = append(out, Planned{c.Name, opOf(c.Was, c.Is), c.Before, c.After})
	}
	return out, nil
}

func opOf(was, is bool) string {
	switch {
	case !was:
		return "created"
	case !is:
		return "removed"
	}
	return "changed"
}

// Failed reports whether an error of Plan is what the call would fail with, and says it.
func Failed(err error) (string, bool) {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return "", false
	}
	return e.Message, true
}
