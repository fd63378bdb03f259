package bundle

import (
	"bytes"
	"context"
	"io"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
)

// Bundle is a file that Open found to be whole.
type Bundle struct {
	Manifest Manifest

	file    io.ReaderAt
	heads   []store.Head
	facts   int64         // where the facts begin
	orders  []belay.Order // the waiting commands
	content map[belay.Digest]place
	names   names // content that facts and commands name
}

// place is where a piece of content is in the file.
type place struct{ at, size int64 }

// Is reports whether a file begins as a bundle does.
func Is(start []byte) bool {
	return len(start) >= 263 && bytes.HasPrefix(start, []byte(manifestName+"\x00")) && string(start[257:262]) == "ustar"
}

// Open reads a bundle to its end and holds everything in it against everything
// else: each fact against the one before, each stream against its head, each
// piece of content against its digest, and all of it against the manifest. What
// secrets knows must not be in it. A file that differs in anything is an error.
func Open(ctx context.Context, file io.ReaderAt, size int64, secrets *secret.Scrubber) (*Bundle, error) {
	if secrets == nil {
		secrets = &secret.Scrubber{}
	}
	b := &Bundle{file: file, content: map[belay.Digest]place{}, names: newNames()}
	r := &reader{ctx: ctx, b: b, secrets: secrets, size: size}
	for _, step := range []func() error{r.manifest, r.facts, r.inbox, r.contents, r.end} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Facts yields the facts in the order of the log, and holds them against the
// bundle's description.
func (b *Bundle) Facts(ctx context.Context) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		in := io.NewSectionReader(b.file, b.facts, b.Manifest.Facts.Size)
		for raw, err := range eachLine(ctx, in, factsName, b.Manifest.Facts, maxLine) {
			var l factLine
			if err == nil {
				err = strict(raw, &l, factsName, "a fact")
			}
			if !yield(l.stored(), err) || err != nil {
				return
			}
		}
	}
}

// Get reads a piece of content; store.ErrNotFound when it isn't in the bundle.
func (b *Bundle) Get(d belay.Digest) ([]byte, error) {
	at, ok := b.content[d]
	if !ok {
		return nil, store.ErrNotFound
	}
	raw, err := io.ReadAll(io.NewSectionReader(b.file, at.at, at.size))
	if err == nil && belay.DigestOf(raw) != d {
		return nil, bad(string(d), "the file changed while it was read")
	}
	return raw, err
}
