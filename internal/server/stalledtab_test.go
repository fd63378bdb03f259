package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestAStalledTabCostsLittle: tabs open the streams of the store and of a session and take
// nothing while an agent speaks. What each costs is in the process and in the kernel: with
// them less without them.
// Guarantee: L4.
func TestAStalledTabCostsLittle(t *testing.T) {
	_, err := os.Stat("/proc/net/tcp")
	needs.Facility(t, "procfs", err == nil, "there is no /proc/net/tcp")
	const tabs, turns, says = 20, 10, 1 << 20
	script := fmt.Sprintf("steps:\n  - text: %q\n    chunks: 64\n    repeat: %d\n    calls:\n      - {tool: complete_task, args: {summary: Done.}}\n", strings.Repeat("x", says), turns+1)
	w, open := newWorld(t), &sync.WaitGroup{}
	w.listen = func(l net.Listener) net.Listener { return counting{l, open} }
	r := w.serve(t, script, func(c *Config) {
		open := c.Open
		c.Open = func(ctx context.Context, tenant string) (TenantConfig, error) {
			tc, err := open(ctx, tenant)
			if err == nil {
				tc.Runtime.Reads.Stall = time.Hour // nobody is cut off before all is measured
			}
			return tc, err
		}
	})
	owner := r.token(auth.Owner, auth.DefaultTenant)
	speak := func() {
		t.Helper()
		if run := r.until(owner, r.command("submit_turn", owner, `{"text":"go","sessionId":"s1"}`).told(t).Run, "ended"); run.Outcome != belay.Completed {
			t.Fatalf("%+v", run)
		}
	}
	speak()
	addr := strings.TrimPrefix(r.url, "http://")
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	var all []net.Conn
	for i := range tabs {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_, err = io.WriteString(c, "GET "+[]string{"/v1/stream", "/v1/sessions/s1/stream"}[i%2]+"?since=now HTTP/1.1\r\nHost: "+addr+"\r\nAuthorization: Bearer "+owner+"\r\n\r\n")
		}
		if err == nil {
			_, err = bufio.NewReaderSize(c, 16).ReadString('\n')
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	for range turns {
		speak()
	}
	following := r.s.all()[0].Reads.Hub.Readers
	if n := following(); n != tabs {
		t.Fatalf("%d of %d tabs follow yet", n, tabs)
	}
	with, queued := heap(), unsent(t, port)
	for _, c := range all {
		c.Close()
	}
	r.client.CloseIdleConnections()
	open.Wait()
	if n := following(); n > 0 {
		t.Fatalf("%d tabs follow that were closed", n)
	}
	without := heap()
	t.Logf("each of %d tabs holds %d KiB of the process and %d KiB of the kernel", tabs, (with-without)/tabs>>10, queued/tabs>>10)
	if each := (with - without + queued) / tabs; each > 1<<20 {
		t.Errorf("each stalled tab costs %d bytes", each)
	}
	if queued == 0 {
		t.Error("nothing waits to be sent; do they stall?")
	}
}

// counting counts the connections of a listener that the server has open.
type counting struct {
	net.Listener
	open *sync.WaitGroup
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return countedConn{c.(*net.TCPConn), sync.OnceFunc(l.open.Done)}, nil
}

// countedConn is closed when its request has been served.
type countedConn struct {
	*net.TCPConn
	closed func()
}

func (c countedConn) Close() error {
	defer c.closed()
	return c.TCPConn.Close()
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what was in pools, too
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// unsent is how many bytes the kernel holds for the clients of a port.
func unsent(t *testing.T, port string) (n int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	local, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", local)) {
			continue
		}
		queue, _, _ := strings.Cut(f[4], ":")
		of, err := strconv.ParseInt(queue, 16, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		n += of
	}
	return n
}
