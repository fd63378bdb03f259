//go:build unix

package git

import (
	"context"
	"path/filepath"
	"strings"
	"time"
)

// Status is where a workspace stands in its repository.
type Status struct {
	Branch  string // empty: none is checked out
	Head    string // the commit's id; empty: there is none
	Changed int    // files of the workspace that aren't as in it, or unknown to git
}

// statusTime bounds looking for a status: a turn waits for it.
const statusTime = 100 * time.Millisecond

// Status looks where a workspace stands. It doesn't wait long: a large repository is
// context.DeadlineExceeded. A workspace in no repository is ErrNone.
func (g Git) Status(ctx context.Context, workspace string) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	r, err := g.Open(ctx, workspace)
	if err != nil {
		return Status{}, err
	}
	args := []string{"--no-optional-locks", "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--no-renames"}
	if real, err := filepath.EvalSymlinks(workspace); err == nil && real != r.Top {
		if below, err := filepath.Rel(r.Top, real); err == nil {
			args = append(args, "--", ":(literal,top)"+filepath.ToSlash(below))
		}
	}
	out, err := r.Run(ctx, args...)
	if err != nil {
		return Status{}, err
	}
	var s Status
	for line := range strings.SplitSeq(string(out), "\x00") {
		switch kind, rest, _ := strings.Cut(line, " "); {
		case kind == "":
		case kind != "#":
			s.Changed++
		case strings.HasPrefix(rest, "branch.oid "):
			s.Head = strings.TrimPrefix(rest, "branch.oid ")
		case strings.HasPrefix(rest, "branch.head "):
			s.Branch = strings.TrimPrefix(rest, "branch.head ")
		}
	}
	if s.Head == "(initial)" {
		s.Head = ""
	}
	if s.Branch == "(detached)" {
		s.Branch = ""
	}
	return s, nil
}
