package storetest

import (
	"bytes"
	"context"
	"io"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

func content(size int) []byte {
	b := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
	if size > 0 {
		b[0] = byte(size)
	}
	return b
}

// sizes on both sides of where content moves into a file.
var sizes = []int{0, 1, 4000, 32 << 10, 32<<10 + 1, 300 << 10}

func (l *lab) has(s store.Blobs, want []byte) {
	l.Helper()
	d := belay.DigestOf(want)
	got, err := s.Get(l.Context(), d)
	l.must(err)
	r, err := s.Open(l.Context(), d)
	l.must(err)
	defer r.Close()
	streamed, err := io.ReadAll(r)
	l.must(err)
	if !bytes.Equal(got, want) || !bytes.Equal(streamed, want) {
		l.Fatalf("content of %d bytes comes back as %d and %d", len(want), len(got), len(streamed))
	}
}

var blobLaws = []law{
	{"content is named by its digest and comes back", func(l *lab) {
		for _, size := range sizes {
			ref, err := l.Put(l.Context(), content(size), "text/plain")
			l.must(err)
			if want := (belay.Ref{Digest: belay.DigestOf(content(size)), Size: int64(size), Media: "text/plain"}); ref != want {
				l.Fatalf("got %+v, want %+v", ref, want)
			}
			l.has(l, content(size))
		}
		l.reopen()
		for _, size := range sizes {
			l.has(l, content(size))
		}
	}},
	{"content that is put twice is kept once and stays", func(l *lab) {
		b := l.session("a")
		for range 3 {
			for _, size := range sizes {
				_, err := l.Put(l.Context(), content(size), "")
				l.must(err)
			}
			l.put(b, "named")
		}
		for _, size := range sizes {
			l.has(l.again(), content(size))
		}
	}},
	{"what isn't there is not found", func(l *lab) {
		for _, d := range []belay.Digest{belay.DigestOf([]byte("never put")), "sha256:../../etc/passwd", "", "md5:00"} {
			_, err := l.Get(l.Context(), d)
			l.is(err, store.ErrNotFound)
			_, err = l.Open(l.Context(), d)
			l.is(err, store.ErrNotFound)
		}
	}},
	// Guarantee: S10.
	{"content put before an append is durable with it", func(l *lab) {
		b := l.session("a")
		for _, size := range sizes {
			_, err := l.Put(l.Context(), content(size), "")
			l.must(err)
		}
		l.put(b, "names them")
		other := l.again()
		for _, size := range sizes {
			l.has(other, content(size))
		}
	}},
	// Guarantee: S10.
	{"large content is durable at once", func(l *lab) {
		_, err := l.Put(l.Context(), content(100<<10), "")
		l.must(err)
		l.has(l.again(), content(100<<10))
	}},
	{"the caller may change what it put", func(l *lab) {
		b := content(100)
		_, err := l.Put(l.Context(), b, "")
		l.must(err)
		b[50] = '!'
		l.has(l, content(100))
	}},
	{"content that comes in pieces is kept when it is committed", func(l *lab) {
		for _, size := range sizes {
			w, err := l.Writer(l.Context(), "application/x")
			l.must(err)
			for rest := content(size); len(rest) > 0; {
				n, err := w.Write(rest[:min(7000, len(rest))])
				l.must(err)
				rest = rest[n:]
			}
			ref, err := w.Commit()
			l.must(err)
			l.must(w.Close())
			if ref.Digest != belay.DigestOf(content(size)) || ref.Size != int64(size) || ref.Media != "application/x" {
				l.Fatalf("%d bytes: got %+v", size, ref)
			}
			l.has(l, content(size))
		}
	}},
	{"content that isn't committed is dropped", func(l *lab) {
		for _, size := range sizes {
			w, err := l.Writer(l.Context(), "")
			l.must(err)
			_, err = w.Write(content(size))
			l.must(err)
			l.must(w.Close())
			if _, err := w.Commit(); err == nil {
				l.Fatal("a closed writer commits")
			}
			_, err = l.Get(l.Context(), belay.DigestOf(content(size)))
			l.is(err, store.ErrNotFound)
		}
	}},
	{"nothing is kept for a context that has ended", func(l *lab) {
		ctx, cancel := context.WithCancel(l.Context())
		cancel()
		for _, size := range sizes {
			_, err := l.Put(ctx, content(size), "")
			l.is(err, context.Canceled)
		}
	}},
	{"a part of content is what lies there, and content that is gone is damage", func(l *lab) {
		for _, size := range sizes {
			want := content(size)
			ref, err := l.Put(l.Context(), want, "")
			l.must(err)
			for _, at := range []int{0, size / 2, size, size + 1} {
				got, err := store.Part(l.Context(), l.Store, ref.Digest, int64(at), 100)
				l.must(err)
				if from := min(at, size); !bytes.Equal(got, want[from:min(from+100, size)]) {
					l.Fatalf("%d bytes from %d: got %d", size, at, len(got))
				}
			}
		}
		_, err := store.Part(l.Context(), l.Store, belay.DigestOf([]byte("nobody put this")), 0, 1)
		l.code(err, belay.CodeStoreDamaged)
	}},
}
