// Package trust knows which files of workspaces a person trusts: files that
// could make the runtime run something, or allow something, and that count only
// when a person said so for exactly this content. It promises that what is
// trusted is a path together with a digest, that a changed file is as good as a
// new one, and that saying so, and taking it back, are facts. What such a file
// means is others' business.
//
// The facts are in the stream of the system session, which all processes of a
// store share: each append claims the stream, and gives it back.
package trust

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Stream holds the facts.
const Stream = belay.StreamID(belay.KindSession + "/" + string(belay.SystemSession))

// Standing is how far a file's content is trusted.
type Standing string

const (
	Trusted Standing = "trusted"
	Unknown Standing = "unknown" // the path was never trusted, or it was revoked
	Changed Standing = "changed" // another content of the path is trusted
)

// File is a content of a path that is trusted.
type File struct {
	Path    string    `json:"path"`    // absolute, without links
	Content belay.Ref `json:"content"` // kept, so that it can be seen what was trusted
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

// Book is what is trusted, folded from the facts.
type Book struct {
	files map[string]File
	seq   int64
}

// Apply folds one fact of the stream. It takes any.
func (b *Book) Apply(e event.Envelope) {
	b.seq = max(b.seq, e.Seq)
	p, ok := e.Data.(event.PolicyChanged)
	if !ok || p.Kind != "trust" || p.Path == "" {
		return
	}
	switch {
	case p.Op == "granted" && p.Digest != nil:
		if b.files == nil {
			b.files = map[string]File{}
		}
		b.files[p.Path] = File{Path: p.Path, Content: *p.Digest, By: p.By, At: e.Time}
	case p.Op == "revoked":
		delete(b.files, p.Path)
	}
}

// Check returns how far a content at a path is trusted. A nil book trusts
// nothing.
func (b *Book) Check(path string, content []byte) Standing {
	if b == nil {
		return Unknown
	}
	f, ok := b.files[path]
	switch {
	case !ok:
		return Unknown
	case f.Content.Digest != belay.DigestOf(content):
		return Changed
	}
	return Trusted
}

// Files lists what is trusted, by path.
func (b *Book) Files() []File {
	out := make([]File, 0, len(b.files))
	for _, f := range b.files {
		out = append(out, f)
	}
	slices.SortFunc(out, func(x, y File) int { return strings.Compare(x.Path, y.Path) })
	return out
}

// Get is what is trusted of a path.
func (b *Book) Get(path string) (File, bool) {
	f, ok := b.files[path]
	return f, ok
}

// Log is what reading needs of a store.
type Log interface {
	Read(ctx context.Context, s belay.StreamID, after int64) iter.Seq2[event.Envelope, error]
}

// Read folds what is trusted in a store.
func Read(ctx context.Context, log Log) (*Book, error) {
	b := &Book{}
	for e, err := range log.Read(ctx, Stream, 0) {
		if err != nil {
			return nil, err
		}
		b.Apply(e)
	}
	return b, nil
}

// Writer records trust and its revocation.
type Writer struct {
	Store store.Store
	Owner store.Owner
	By    string // the principal
}

// Trust records that a content of a path is trusted. Trusting it again records nothing.
func (w Writer) Trust(ctx context.Context, path string, content []byte) (File, error) {
	ref, err := w.Store.Put(ctx, content, "text/plain; charset=utf-8")
	if err != nil {
		return File{}, err
	}
	b, err := w.write(ctx, func(b *Book) *event.PolicyChanged {
		if b.Check(path, content) == Trusted {
			return nil
		}
		return &event.PolicyChanged{Kind: "trust", Op: "granted", Path: path, Digest: &ref, Tier: "user", By: w.By}
	})
	if err != nil {
		return File{}, err
	}
	f, _ := b.Get(path)
	return f, nil
}

// Revoke takes trust back; false when the path had none.
func (w Writer) Revoke(ctx context.Context, path string) (had bool, err error) {
	_, err = w.write(ctx, func(b *Book) *event.PolicyChanged {
		f, ok := b.Get(path)
		if had = ok; !ok {
			return nil
		}
		return &event.PolicyChanged{Kind: "trust", Op: "revoked", Path: path, Digest: &f.Content, Tier: "user", By: w.By}
	})
	return had, err
}

// How long a writer waits for another, and how long it may take itself.
const (
	lease = 15 * time.Second
	pause = 20 * time.Millisecond
	tries = 100
)

// write decides on what is there and appends the fact. Another writer between
// the two makes it decide again.
func (w Writer) write(ctx context.Context, decide func(*Book) *event.PolicyChanged) (*Book, error) {
	epoch, err := w.claim(ctx)
	if err != nil {
		return nil, err
	}
	defer w.Store.Release(context.WithoutCancel(ctx), belay.SessionID(Stream), epoch) //nolint:errcheck // the lease ends by itself
	for range tries {
		b, err := Read(ctx, w.Store)
		if err != nil {
			return nil, err
		}
		p := decide(b)
		if p == nil {
			return b, nil
		}
		e := event.Envelope{Stream: Stream, Seq: b.seq + 1, IDs: belay.IDs{Session: belay.SystemSession}, Data: *p}
		_, err = w.Store.Append(ctx, store.Batch{Session: belay.SystemSession, Stream: Stream, After: b.seq, Epoch: epoch, Events: []event.Envelope{e}})
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return Read(ctx, w.Store)
	}
	return nil, store.ErrConflict
}

// claim waits a moment for another process that is writing.
func (w Writer) claim(ctx context.Context) (int64, error) {
	for try := 0; ; try++ {
		epoch, err := w.Store.Claim(ctx, belay.SessionID(Stream), w.Owner, lease)
		if _, owned := errors.AsType[*store.OwnedError](err); !owned || try == tries {
			return epoch, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
