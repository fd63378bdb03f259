// Package local is the runtime of a conversation that this process drives. It promises
// that it does what a server does with the same commands, and that it drives no session
// that it wasn't asked to.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view/feed"
)

// sessionsAtOnce is how many sessions one conversation drives at the same time.
const sessionsAtOnce = 16

// Config is what a Runtime is made of.
type Config struct {
	Runtime  *app.Runtime // with an engine; what flows between facts goes to the hub
	Hub      *feed.Hub
	Commands []app.Command
	Reads    []app.Read
}

// Runtime drives sessions in this process.
type Runtime struct {
	c      Config
	drives *driven
	loop   dispatcher
	hold   chan struct{} // closed: no session begins to be driven
	stop   context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex
	followers map[*follower]struct{}
}

var _ chat.Runtime = (*Runtime)(nil)

// dispatcher runs sessions that have something to do.
type dispatcher interface {
	Wait()
	Sessions() []belay.SessionID
}

// New begins to drive: the sessions that its commands give work to. The caller calls
// Close, which closes the app's runtime too.
func New(ctx context.Context, c Config) *Runtime {
	r := &Runtime{c: c, hold: make(chan struct{}), followers: map[*follower]struct{}{}}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	d := c.Runtime.Engine.NewDispatcher(make(chan struct{}, sessionsAtOnce), sessionsAtOnce, r.drive, slog.New(slog.DiscardHandler))
	r.loop, r.drives = d, &driven{Scheduler: d, ids: map[belay.SessionID]bool{}}
	d.Only = r.drives.has
	c.Runtime.Drives, c.Runtime.Reads.Hub, c.Runtime.Open = r.drives, c.Hub, true
	r.wg.Go(func() { d.Loop(ctx, ctx, r.hold); d.Wait() })
	r.wg.Go(func() {
		if err := c.Hub.Run(ctx); err != nil && ctx.Err() == nil {
			r.broke("", err)
		}
	})
	return r
}

// drive runs a session until it rests. Those that follow it learn why it can't be.
func (r *Runtime) drive(ctx context.Context, id belay.SessionID) error {
	err := r.c.Runtime.Drive(ctx, id)
	if err != nil && ctx.Err() == nil {
		r.broke(id, err)
	}
	return err
}

// broke tells the followers of a session, or all of them, what is wrong.
func (r *Runtime) broke(id belay.SessionID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for f := range r.followers {
		if id == "" || f.session == id {
			select {
			case f.broken <- err:
			default: // it wasn't told the last one yet
			}
		}
	}
}

// Do implements chat.Runtime.
func (r *Runtime) Do(ctx context.Context, command string, in, out any) error {
	cmd := app.Find(r.c.Commands, command)
	if cmd == nil {
		return belay.Errorf(belay.CodeNotFound, "there is no command %q", command)
	}
	body := []byte("{}")
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return belay.Errorf(belay.CodeBadCommand, "the command can't be written as JSON").Wrap(err)
		}
	}
	answer, err := cmd.Do(ctx, r.c.Runtime.Call(command), body)
	return give(answer, err, out)
}

// Read implements chat.Runtime.
func (r *Runtime) Read(ctx context.Context, name string, q chat.Query, out any) error {
	row := app.FindRead(r.c.Reads, name)
	if row == nil {
		return belay.Errorf(belay.CodeNotFound, "there is no read %q", name)
	}
	answer, err := row.Do(ctx, r.c.Runtime.Call(name), app.Query{ID: q.ID, Values: q.Values})
	if d, ok := answer.(*app.Document); ok && err == nil {
		w, ok := out.(io.Writer)
		if !ok {
			return belay.Errorf(belay.CodeUsage, "%s answers with a document", name)
		}
		return d.Write(ctx, w)
	}
	return give(answer, err, out)
}

// give copies an answer as it would travel.
func give(answer any, err error, out any) error {
	if err != nil || out == nil {
		return said(err)
	}
	raw, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	return err
}

// said is an error that names the field at fault as its place.
func said(err error) error {
	f, named := errors.AsType[*input.FieldError](err)
	e, ok := errors.AsType[*belay.Error](err)
	if !named || !ok || e.Where != "" {
		return err
	}
	at := *e
	return at.At(f.Field)
}

// Owner is the process that drives a session; nil: none does.
func (r *Runtime) Owner(ctx context.Context, id belay.SessionID) (*store.Owner, error) {
	return r.c.Runtime.Store.OwnerOf(ctx, id)
}

// Server implements chat.Runtime.
func (r *Runtime) Server() string { return "" }

// restWithin is how long Close waits for sessions whose turns have ended: their tasks and
// their budgets are still to be brought to an end.
const restWithin = 5 * time.Second

// Close implements chat.Runtime.
func (r *Runtime) Close() error {
	close(r.hold)
	if !r.goesOn() {
		rested := make(chan struct{})
		r.wg.Go(func() { defer close(rested); r.loop.Wait() })
		late := time.NewTimer(restWithin)
		defer late.Stop()
		select {
		case <-rested:
		case <-late.C:
		}
	}
	r.stop()
	r.wg.Wait()
	return r.c.Runtime.Close()
}

// goesOn reports whether a session that is driven doesn't come to rest by itself: a turn
// hasn't ended, or a program in the background.
func (r *Runtime) goesOn() bool {
	for _, id := range r.loop.Sessions() {
		if r.c.Runtime.ProgramsGoOn(context.Background(), id) {
			return true
		}
		s, err := r.c.Runtime.Session(context.Background(), id)
		if err != nil {
			return true
		}
		for _, th := range s.Threads {
			if t, err := r.c.Runtime.Thread(context.Background(), th); err != nil || app.Unfinished(t) {
				return true
			}
		}
	}
	return false
}

// driven is the scheduler of the sessions that this process was asked to drive.
type driven struct {
	app.Scheduler
	mu  sync.Mutex
	ids map[belay.SessionID]bool
}

func (d *driven) has(id belay.SessionID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids[id]
}

func (d *driven) note(id belay.SessionID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids[id] = true
}

// Enqueue implements app.Scheduler.
func (d *driven) Enqueue(id belay.SessionID, priority int) {
	d.note(id)
	d.Scheduler.Enqueue(id, priority)
}

// ApplyLanes implements app.Scheduler.
func (d *driven) ApplyLanes(rows []store.LaneRow) {
	for _, row := range rows {
		d.note(row.Session)
	}
	d.Scheduler.ApplyLanes(rows)
}

// follower is one that follows a session.
type follower struct {
	session belay.SessionID
	broken  chan error // capacity 1
}

func (r *Runtime) join(id belay.SessionID) (*follower, func()) {
	f := &follower{id, make(chan error, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.followers[f] = struct{}{}
	return f, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.followers, f)
	}
}

// Follow implements chat.Runtime.
func (r *Runtime) Follow(ctx context.Context, id belay.SessionID, cursor string) chat.Stream {
	return func(yield func(chat.Item, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		f, leave := r.join(id)
		defer leave()
		reader, err := r.c.Runtime.Reads.SessionReader(ctx, read.Query{ID: string(id), LastEvent: cursor})
		if err != nil {
			yield(chat.Item{}, said(err))
			return
		}
		come, ended := make(chan []feed.Message), make(chan error, 1)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel() // before the wait
		wg.Go(func() {
			ended <- reader.Follow(ctx, func(ms []feed.Message) error {
				select {
				case come <- ms:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		})
		for {
			select {
			case err := <-ended:
				if err != nil {
					yield(chat.Item{}, err)
				}
				return
			case err := <-f.broken:
				if !yield(chat.Item{Cursor: cursor, Broken: err}, nil) {
					return
				}
			case ms := <-come:
				for _, m := range ms {
					if m.Cursor != "" {
						cursor = m.Cursor
					}
					item, known, err := chat.ItemOf(client.Event{Type: m.Type, Cursor: cursor, Data: m.Data})
					if (known || err != nil) && !yield(item, err) || err != nil {
						return
					}
				}
			}
		}
	}
}
