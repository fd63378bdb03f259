// Package remote is the runtime of a conversation that a server drives. It promises
// that a command is done once, and that a stream goes on behind the last fact it
// brought when its connection breaks.
package remote

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/chat"
)

// Runtime is a server.
type Runtime struct {
	url    string
	client *client.Client
	reads  []app.Read
	done   func() error
}

var _ chat.Runtime = (*Runtime)(nil)

// New makes the runtime of the server at an address. reads is the table of reads; done
// is called when the runtime is closed.
func New(address string, c *client.Client, reads []app.Read, done func() error) *Runtime {
	return &Runtime{address, c, reads, done}
}

// Do implements chat.Runtime.
func (r *Runtime) Do(ctx context.Context, command string, in, out any) error {
	if in == nil {
		in = struct{}{}
	}
	return r.client.Command(ctx, command, "", in, out)
}

// Read implements chat.Runtime.
func (r *Runtime) Read(ctx context.Context, read string, q chat.Query, out any) error {
	row := app.FindRead(r.reads, read)
	if row == nil {
		return belay.Errorf(belay.CodeNotFound, "there is no read %q", read)
	}
	path := strings.ReplaceAll(row.Route(), "{id}", url.PathEscape(q.ID))
	if w, ok := out.(io.Writer); ok {
		return r.client.Document(ctx, path, q.Values, w)
	}
	return r.client.Get(ctx, path, q.Values, out)
}

// Follow implements chat.Runtime.
func (r *Runtime) Follow(ctx context.Context, id belay.SessionID, cursor string) chat.Stream {
	return func(yield func(chat.Item, error) bool) {
		over, broke := false, false
		give := func(i chat.Item, err error) bool {
			over = over || !yield(i, err)
			return !over
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		beside := func(i chat.Item) {
			if !give(i, nil) {
				cancel()
			}
		}
		o := client.StreamOptions{Since: cursor, Broke: func(err error) {
			broke = true
			beside(chat.Item{Broken: err})
		}, Opened: func() {
			if broke {
				broke = false
				beside(chat.Item{Whole: true})
			}
		}}
		for e, err := range r.client.Stream(ctx, "/v1/sessions/"+url.PathEscape(string(id))+"/stream", o) {
			if over {
				return
			}
			if err != nil {
				give(chat.Item{}, err)
				return
			}
			if item, known, err := chat.ItemOf(e); (known || err != nil) && !give(item, err) || err != nil {
				return
			}
		}
	}
}

// Server implements chat.Runtime.
func (r *Runtime) Server() string { return r.url }

// Close implements chat.Runtime.
func (r *Runtime) Close() error { return r.done() }
