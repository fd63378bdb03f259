package memory

import (
	"bytes"
	"context"
	"io"
	"io/fs"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

const smallBlobMax = 32 << 10 // larger content is durable when Put returns

// Put keeps content.
func (s *blobs) Put(ctx context.Context, content []byte, media string) (belay.Ref, error) {
	ref := belay.Ref{Digest: belay.DigestOf(content), Size: int64(len(content)), Media: media}
	if err := s.lock(ctx); err != nil {
		return belay.Ref{}, err
	}
	defer s.d.mu.Unlock()
	if _, ok := s.d.blobs[ref.Digest]; ok {
		return ref, nil
	}
	if len(content) > smallBlobMax {
		s.d.blobs[ref.Digest] = bytes.Clone(content)
	} else {
		s.small[ref.Digest] = append([]byte{}, content...)
	}
	return ref, nil
}

// Writer keeps content that comes in pieces.
func (s *blobs) Writer(ctx context.Context, media string) (store.BlobWriter, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	s.d.mu.Unlock()
	return &writer{put: func(b []byte) (belay.Ref, error) { return s.Put(context.WithoutCancel(ctx), b, media) }}, nil
}

type writer struct {
	put  func([]byte) (belay.Ref, error)
	buf  bytes.Buffer
	done bool
}

func (w *writer) Write(p []byte) (int, error) {
	if w.done {
		return 0, fs.ErrClosed
	}
	return w.buf.Write(p)
}

func (w *writer) Commit() (belay.Ref, error) {
	if w.done {
		return belay.Ref{}, fs.ErrClosed
	}
	w.done = true
	return w.put(w.buf.Bytes())
}

func (w *writer) Close() error {
	w.done = true
	return nil
}

// Get returns the whole content.
func (s *blobs) Get(ctx context.Context, d belay.Digest) ([]byte, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	b, ok := s.small[d]
	if !ok {
		b, ok = s.d.blobs[d]
	}
	if !ok {
		return nil, store.ErrNotFound
	}
	if belay.DigestOf(b) != d {
		return nil, store.Damaged(string(d), "the content isn't what its digest names")
	}
	return append([]byte{}, b...), nil
}

// Open streams the content.
func (s *blobs) Open(ctx context.Context, d belay.Digest) (io.ReadCloser, error) {
	b, err := s.Get(ctx, d)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}
