package turns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
)

// before answers a repeated submission, and refuses one that can't be repeated.
func (s *submission) before(ctx context.Context) (*app.Result, error) {
	in, st := s.in, s.state
	s.named = in.Thread != ""
	if n := len(st.Threads); !s.named && n > 0 {
		in.Thread = st.Threads[n-1]
	} else if !s.named {
		in.Thread = app.FirstThread(in.Session)
	}
	if err := s.foreign(ctx); err != nil {
		// Perhaps it was submitted a moment before, and the session knows by
		// now.
		if s.state, _ = s.Session(ctx, in.Session); s.state == nil || !slices.Contains(s.state.Turns, in.Turn) {
			return nil, err
		}
		st = s.state
	}
	if st.Session == "" {
		return nil, nil
	}
	if in.Workspace != "" {
		ws, err := s.Workspaces.Workspace(ctx, in.Workspace)
		if err != nil {
			return nil, input.At("workspace", err)
		}
		if ws != st.Workspace {
			return nil, input.At("workspace", belay.Errorf(belay.CodeBadState, "the session works in another folder").At(string(in.Session)))
		}
	}
	if slices.Contains(st.Turns, in.Turn) {
		return s.repeated(ctx)
	}
	if !slices.Contains(st.Threads, in.Thread) {
		return nil, nil
	}
	t, err := s.Thread(ctx, in.Thread)
	if err == nil {
		err = t.Takes(belay.QueueMode(in.Queue))
	}
	return nil, err
}

// foreign refuses ids of threads and tasks that are another session's.
func (s *submission) foreign(ctx context.Context) error {
	in := s.in
	if !slices.Contains(s.state.Threads, in.Thread) {
		if _, err := s.Store.Head(ctx, in.Thread.Stream()); !errors.Is(err, store.ErrNotFound) {
			return input.At("threadId", cmp.Or(err, error(belay.Errorf(belay.CodeIDConflict, "thread %s isn't one of this session", in.Thread))))
		}
	}
	if slices.Contains(s.state.Turns, in.Turn) {
		return nil // its task is compared with the one it had
	}
	if _, err := s.Store.Head(ctx, in.Task.Stream()); !errors.Is(err, store.ErrNotFound) {
		return input.At("taskId", cmp.Or(err, error(belay.Errorf(belay.CodeIDConflict, "task %s exists already", in.Task))))
	}
	return nil
}

// handledWithin is how long a repeated submission waits for the thread to learn of it.
const handledWithin = 2 * time.Second

// repeated answers a turn that the session knows: it must be the same one. The
// thread may learn of it a moment after the session.
func (s *submission) repeated(ctx context.Context) (*app.Result, error) {
	soon, cancel := context.WithTimeout(ctx, handledWithin)
	defer cancel()
	for {
		changed := s.Store.Changed(soon)
		told, err := s.submitted(ctx)
		if told != nil || err != nil {
			return told, err
		}
		select {
		case <-changed:
		case <-soon.Done():
			return nil, belay.Errorf(belay.CodeBusy, "turn %s was accepted and isn't handled yet", s.in.Turn).WithHint("repeat the request")
		}
	}
}

// submitted answers a turn that a thread of the session knows; nil: none does.
func (s *submission) submitted(ctx context.Context) (*app.Result, error) {
	in := s.in
	text, err := s.content(ctx, s.state.Workspace, s.state.Settings)
	if err != nil {
		return nil, err
	}
	threads := append([]belay.ThreadID{in.Thread}, s.state.Threads...)
	for _, th := range threads {
		for ev, err := range s.Store.Read(ctx, th.Stream(), 0) {
			if err != nil {
				return nil, err
			}
			p, ok := ev.Data.(event.TurnSubmitted)
			if !ok || ev.IDs.Turn != in.Turn {
				continue
			}
			if s.named && th != in.Thread || p.Text.Text != text.Text || refOf(p.Text) != refOf(text) || !sameFiles(p.Text, text, len(in.Attached)) || ev.IDs.Task != in.Task {
				return nil, input.At("turnId", belay.Errorf(belay.CodeIDConflict, "turn %s was submitted with another text, thread or task, or other files", in.Turn).WithHint("bring a new turn id"))
			}
			in.Thread = th
			told, err := s.told(ctx, 0, "", false)
			told.Repeated = true
			return told, err
		}
	}
	return nil, nil
}

func refOf(c belay.Content) belay.Digest {
	if c.Ref == nil {
		return ""
	}
	return c.Ref.Digest
}

// sameFiles reports whether what is told again has the same n files as what was told first.
// Those behind them are resources that the text names: what they had then counts.
func sameFiles(first, again belay.Content, n int) bool {
	if len(first.From) == 0 || len(first.Attached) < n {
		return slices.EqualFunc(first.Attached, again.Attached, sameFile)
	}
	return slices.EqualFunc(first.Attached[:n], again.Attached[:n], sameFile)
}

func sameFile(a, b belay.Attachment) bool { return a.Name == b.Name && a.Ref.Digest == b.Ref.Digest }
