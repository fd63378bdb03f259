package store

import (
	"context"
	"errors"
	"io"

	"github.com/belay-run/belay"
)

// Part is n bytes of a content, from offset on; fewer where it ends before.
// Content that isn't there is CodeStoreDamaged: a fact names it.
func Part(ctx context.Context, in Blobs, d belay.Digest, offset, n int64) ([]byte, error) {
	r, err := in.Open(ctx, d)
	if errors.Is(err, ErrNotFound) {
		return nil, Damaged(string(d), "content that a fact names is missing")
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, n))
}
