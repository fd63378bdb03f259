//go:build unix

package git

import (
	"crypto/rand"
	"io"
	"testing"
)

// Again is the watch of another process.
func (w *Watch) Again() *Watch { return w.git.NewWatch(w.root, w.aside) }

// Kill is what the end of the process does to it.
func (w *Watch) Kill() { w.pending.Close() }

func TestOutputHasALimit(t *testing.T) {
	var b bounded
	n, err := io.Copy(&b, io.LimitReader(rand.Reader, 1000))
	if n != 1000 || err != nil || b.all.Len() != 1000 {
		t.Errorf("%d bytes are copied: %v", n, err)
	}
	if _, err := b.Write(make([]byte, maxOutput)); err != errTooMuch {
		t.Errorf("more than the limit: %v", err)
	}
	if _, reads := any(&b).(io.ReaderFrom); reads {
		t.Error("what copies into it goes around the limit")
	}
}
