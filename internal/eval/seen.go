package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/files"
)

// Seen is what a scenario left: its files, its log and what its commands said.
type Seen struct {
	Workspace string
	Before    map[string]string // the files it began with
	Facts     []event.Envelope  // in the order of the log
	Calls     []Call            // in the order in which the model asked for them
	Said      string            // by the model, answer by answer
	Exits     []int
	Printed   string // by the last command
	Took      time.Duration

	play *play
}

// Call is a call that the model asked for, and its outcome.
type Call struct {
	ID       belay.CallID
	Tool     string
	Args     json.RawMessage
	Result   *string        // what the model read of a good end
	Problem  *event.Problem // of a bad one
	Attempts int            // how often it was started
	Refused  bool           // it never ran: the tool doesn't exist
}

// look reads the log of a scenario.
func look(ctx context.Context, p *play, took time.Duration) (*Seen, error) {
	st, err := p.Open(ctx, p.at.Store)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	s := &Seen{Workspace: p.at.Workspace, Before: p.s.Files, Exits: p.exits, Printed: p.last, Took: took, play: p}
	text := func(c belay.Content) string {
		if c.Ref != nil {
			if b, err := st.Get(ctx, c.Ref.Digest); err == nil {
				return string(b)
			}
		}
		return c.Text
	}
	var said []string
	for r, err := range st.Scan(ctx, 0) {
		if err != nil {
			return nil, err
		}
		e := r.Event
		s.Facts = append(s.Facts, e)
		switch d := e.Data.(type) {
		case event.ModelCompleted:
			said = append(said, text(d.Text))
			for _, c := range d.Calls {
				args := c.Args
				if c.ArgsRef != nil {
					args = json.RawMessage(text(belay.Content{Ref: c.ArgsRef}))
				}
				s.Calls = append(s.Calls, Call{ID: c.ID, Tool: c.Name, Args: args})
			}
		case event.ToolStarted:
			s.call(e, func(c *Call) { c.Attempts++ })
		case event.ToolResult:
			out := text(d.Output)
			s.call(e, func(c *Call) { c.Result, c.Problem = &out, nil })
		case event.ToolFailed:
			s.call(e, func(c *Call) { c.Problem, c.Refused = &d.Problem, d.Problem.Code == "UNKNOWN_TOOL" })
		}
	}
	s.Said = strings.Join(said, "\n")
	return s, nil
}

func (s *Seen) call(e event.Envelope, set func(*Call)) {
	if i := slices.IndexFunc(s.Calls, func(c Call) bool { return c.ID == e.IDs.Call }); i >= 0 {
		set(&s.Calls[i])
	}
}

// End is how the last turn ended: an outcome, and the code of a bad one. A turn
// that hasn't ended waits.
func (s *Seen) End() (outcome, code, reason string) {
	outcome = waiting
	for _, e := range s.Facts {
		switch d := e.Data.(type) {
		case event.TurnSubmitted:
			outcome, code, reason = waiting, "", ""
		case event.TurnCompleted:
			outcome, code, reason = string(belay.Completed), "", ""
		case event.TurnFailed:
			outcome, code, reason = string(d.Outcome), d.Code, d.Reason
		}
	}
	return outcome, code, reason
}

// waiting is a turn that hasn't ended.
const waiting = "waiting"

// Count is how many facts meet a condition.
func (s *Seen) Count(f Fact) (n int) {
	for _, e := range s.Facts {
		if f.holds(e) {
			n++
		}
	}
	return n
}

// maxSeen bounds a file that is looked at.
const maxSeen = 64 << 20

// File is a file of the workspace; there reports whether it exists.
func (s *Seen) File(name string) (content string, there bool, err error) {
	b, err := files.ReadUpTo(filepath.Join(s.Workspace, filepath.FromSlash(name)), maxSeen)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(b), err == nil, err
}

// Files are the paths of all files of the workspace but git's.
func (s *Seen) Files() (names []string, err error) {
	err = filepath.WalkDir(s.Workspace, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(s.Workspace, p)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(names)
	return names, err
}

// verify checks the store as belay verify does.
func (s *Seen) verify(ctx context.Context) (string, bool) {
	var out bytes.Buffer
	exit := s.play.Program(ctx, Command{Args: s.play.run("verify"), Dir: s.Workspace, Env: s.play.environ(""), Stdout: &out, Stderr: &out})
	return out.String(), exit == belay.ExitOK
}
