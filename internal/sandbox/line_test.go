//go:build linux

package sandbox

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a helper said at its end is heard also when it was told something that it
// didn't read any more: the system says that first.
func TestTheEndIsHeardWhateverWasSaidMeanwhile(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	near := os.NewFile(uintptr(pair[0]), "near")
	defer near.Close()
	c, err := net.FileConn(near)
	if err != nil {
		t.Fatal(err)
	}
	h := &Hold{conn: c.(*net.UnixConn)}
	defer h.conn.Close()
	if _, err := unix.Write(pair[1], []byte(`{"end":{"code":7}}`)); err != nil {
		t.Fatal(err)
	}
	if err := h.Extend(time.Hour); err != nil {
		t.Fatal(err)
	}
	unix.Close(pair[1])
	if e, said := h.Ended(); !said || e.Code != 7 {
		t.Errorf("heard %v: %+v", said, e)
	}
}
