package turns

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
)

// Bounds of what a person says about a conversation's context, in bytes.
const (
	maxFocus  = 1 << 10
	maxPinned = 8 << 10
)

// CompactThread is what compact_thread takes.
type CompactThread struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Focus   string          `json:"focus,omitempty" jsonschema:"what the summary is to keep above all"`
}

// Compact asks a thread to shorten what its model is shown of the conversation. Its
// end is a fact: context.compaction.completed or context.compaction.failed.
func Compact(ctx context.Context, r *app.Call, in *CompactThread) (*app.Result, error) {
	if err := input.Text("focus", in.Focus, maxFocus); err != nil {
		return nil, err
	}
	th, err := steered(ctx, r, in.Session, in.Thread, "", "")
	if err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	c := belay.CompactThread{Focus: r.Clean(in.Focus)}
	if c.Rules, err = wishedUnder(ctx, r, th.Thread); err != nil {
		return nil, err
	}
	if c.Rules.Digest == "" {
		if c.Rules, err = r.Workspaces.Rules(ctx, r.By.String(), s.Workspace, s.Settings); err != nil {
			return nil, err
		}
	}
	told, err := r.Send(ctx, in.Session, th.Thread.Stream(), c)
	return app.With(told, r.Hinted(err, "GET /v1/threads/{id}/context shows what there is"), th.Thread, "")
}

// wishedUnder are the rules that a command brought which was accepted under its key
// before; empty if none was.
func wishedUnder(ctx context.Context, r *app.Call, th belay.ThreadID) (belay.Ref, error) {
	if r.Key == "" {
		return belay.Ref{}, nil
	}
	id := belay.CommandID(r.Keyed(belay.PrefixCommand))
	for ev, err := range r.Store.Read(ctx, th.Stream(), 0) {
		if err != nil {
			return belay.Ref{}, err
		}
		if p, ok := ev.Data.(event.ThreadUpdated); ok && ev.IDs.Request == id && p.Compact != nil {
			return p.Compact.Rules, nil
		}
	}
	return belay.Ref{}, nil
}

// PinContext is what pin_context takes.
type PinContext struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Pin     string          `json:"pinId,omitempty" jsonschema:"the caller's id of the pin; one that follows from the text when it is left out"`
	Text    string          `json:"text" jsonschema:"what stays in the conversation, word for word"`
}

// Pinned is the answer to pin_context and unpin_context.
type Pinned struct {
	app.Result
	Pin string `json:"pinId"`
}

// Pin keeps a text in a thread's conversation, whatever becomes of the rest. The same
// text is one pin.
func Pin(ctx context.Context, r *app.Call, in *PinContext) (*Pinned, error) {
	if err := cmp.Or(input.ID("pinId", in.Pin), input.Text("text", in.Text, maxPinned)); err != nil {
		return nil, r.Hinted(err, "put it into a file, and pin the file's name")
	}
	c := belay.PinContext{Pin: in.Pin, Text: r.Clean(in.Text)}
	if c.Pin == "" {
		sum := sha256.Sum256([]byte(c.Text))
		c.Pin = "p" + hex.EncodeToString(sum[:3])
	}
	told, err := toThread(ctx, r, in.Session, in.Thread, "", "", c)
	if err != nil {
		return nil, r.Hinted(err, "GET /v1/threads/{id}/context lists the pins, unpin_context takes one out")
	}
	return &Pinned{*told, c.Pin}, nil
}

// UnpinContext is what unpin_context takes.
type UnpinContext struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	Pin     string          `json:"pinId" jsonschema:"as pin_context answered"`
}

// Unpin takes a pinned text out of a thread's conversation.
func Unpin(ctx context.Context, r *app.Call, in *UnpinContext) (*Pinned, error) {
	if err := input.Named("pinId", in.Pin); err != nil {
		return nil, err
	}
	told, err := toThread(ctx, r, in.Session, in.Thread, "", "", belay.UnpinContext{Pin: in.Pin})
	if err != nil {
		return nil, r.Hinted(err, "GET /v1/threads/{id}/context lists the pins")
	}
	return &Pinned{*told, in.Pin}, nil
}
