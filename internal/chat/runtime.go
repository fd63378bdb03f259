// Package chat is the conversation with an agent: what a person at a terminal, and a
// program that plays one, does with sessions. It reaches the runtime through one
// interface, Runtime. It promises that a conversation is the same in this process
// (package local) and through a server (package remote).
package chat

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/url"
	"strconv"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
)

// Runtime is where sessions are. Commands and reads have the names of the tables of
// package app, which docs/api.md describes. Errors are *belay.Error. Its methods may be
// called at the same time.
type Runtime interface {
	// Do performs a command and reads its answer into out. in is marshalled as JSON;
	// nil is an empty object. out may be nil.
	Do(ctx context.Context, command string, in, out any) error
	// Read answers a read into out, which is an io.Writer if the answer is a document.
	Read(ctx context.Context, read string, q Query, out any) error
	// Follow brings what happens in a session, behind a cursor; an empty one is before
	// the session's first fact.
	Follow(ctx context.Context, id belay.SessionID, cursor string) Stream
	// Server is the address of the server that drives the sessions; empty: this
	// process does.
	Server() string
	// Close parks what this process drives and gives everything back. Streams end.
	Close() error
}

// Content writes a content that a fact of a session names.
func Content(ctx context.Context, r Runtime, session belay.SessionID, d belay.Digest, w io.Writer) error {
	for offset := int64(0); ; {
		var part struct {
			Text string `json:"text"`
			Data []byte `json:"data"`
			Next int64  `json:"next"`
		}
		q := Query{ID: string(d), Values: url.Values{"session": {string(session)}, "offset": {strconv.FormatInt(offset, 10)}}}
		if err := r.Read(ctx, "getContent", q, &part); err != nil {
			return err
		}
		if len(part.Data) == 0 {
			part.Data = []byte(part.Text)
		}
		if _, err := w.Write(part.Data); err != nil {
			return err
		}
		if offset = part.Next; offset == 0 {
			return nil
		}
	}
}

// Query says what a read is about.
type Query struct {
	ID     string // of the session, thread, run or action that it is about; empty: none
	Values url.Values
}

// Stream is what happens in a session: each fact behind its cursor once and in order,
// and what flows between them. It ends with the context's error or the runtime's; without
// an error behind an item that is Gone, or when the reader breaks off.
type Stream = iter.Seq2[Item, error]

// Followed is Runtime.Follow without holes: who fell behind reads what was missed from
// the facts. An item that says Resync is left only where the store was put back to an
// earlier state.
func Followed(ctx context.Context, r Runtime, id belay.SessionID, cursor string) Stream {
	return func(yield func(Item, error) bool) {
		for behind := true; behind; {
			behind = false
			first := true
			for item, err := range r.Follow(ctx, id, cursor) {
				if behind = item.Resync != nil && !first; behind {
					break
				}
				if item.Cursor != "" {
					first, cursor = false, item.Cursor
				}
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}
}

// Item is one thing that happens. One of its fields besides Cursor is set.
type Item struct {
	Cursor string // a stream that begins here continues behind this item
	Fact   *event.Envelope
	Flow   *event.Delta   // a piece of an answer, of reasoning, or of what a call printed
	Resync *client.Resync // the reader was too slow, or the store was put back: facts before Cursor are in the snapshot
	Gone   bool           // the session was deleted
	Whole  bool           // the server is reached again
	Broken error          // the server can't be reached, or the session can't be driven: it is tried again
}

// ItemOf makes an item of an event of a stream. false: this version doesn't know it.
func ItemOf(e client.Event) (Item, bool, error) {
	item := Item{Cursor: e.Cursor}
	switch e.Type {
	case client.TypeText:
		t, err := e.Text()
		item.Flow = &event.Delta{Stream: t.Stream, Kind: t.Kind, Attempt: t.Attempt, Offset: t.Offset, Text: t.Text,
			IDs: belay.IDs{Session: t.Session, Thread: t.Thread, Turn: t.Turn, Run: t.Run, Step: t.Step}}
		return item, true, err
	case client.TypeOutput:
		o, err := e.Output()
		item.Flow = &event.Delta{Stream: o.Stream, Kind: "progress", Attempt: o.Attempt, Offset: o.Offset, Text: o.Text,
			IDs: belay.IDs{Session: o.Session, Thread: o.Thread, Turn: o.Turn, Run: o.Run, Step: o.Step, Call: o.Call}}
		return item, true, err
	case client.TypeResync:
		r, err := e.Resync()
		item.Resync = &r
		return item, true, err
	case client.TypeDeleted:
		item.Gone = true
		return item, true, nil
	}
	if _, ok := event.Lookup(e.Type); !ok {
		return item, false, nil
	}
	item.Fact = new(event.Envelope)
	return item, true, json.Unmarshal(e.Data, item.Fact)
}
