//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// ear is a port of the loopback, and what was said to it.
type ear struct {
	port string
	l    net.Listener
	wg   sync.WaitGroup
	mu   sync.Mutex
	said bytes.Buffer
}

// listen opens an ear that answers every connection as an empty page.
func listen(t *testing.T) *ear {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &ear{l: l, port: strconv.Itoa(l.Addr().(*net.TCPAddr).Port)}
	e.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.wg.Go(func() { e.hear(c) })
		}
	})
	t.Cleanup(func() { e.end() })
	return e
}

func (e *ear) hear(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second)) //nolint:errcheck // a socket has deadlines
	e.add("connected ")
	b := make([]byte, 1<<10)
	n, _ := c.Read(b)
	e.add(string(b[:n]))
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\npage\n")
}

func (e *ear) add(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said.WriteString(text)
}

// end closes the ear and is what it heard; nil heard nothing.
func (e *ear) end() string {
	if e == nil {
		return ""
	}
	e.l.Close()
	e.wg.Wait()
	return e.said.String()
}

// at is the attack with the port in its place.
func (a attack) at(port string) attack {
	put := strings.NewReplacer("PORT", port)
	a.command, a.setup, a.first, a.args = put.Replace(a.command), put.Replace(a.setup), put.Replace(a.first), put.Replace(a.args)
	files := map[string]string{}
	for name, text := range a.files {
		files[name] = put.Replace(text)
	}
	a.files = files
	return a
}

// tree is the workspace's files, with their sizes and times of change.
func (w *workspace) tree() string {
	var b strings.Builder
	filepath.WalkDir(filepath.Join(w.dir, "work"), func(path string, d fs.DirEntry, err error) error { //nolint:errcheck // what can't be read is left out
		if info, ierr := d.Info(); err == nil && ierr == nil {
			fmt.Fprintln(&b, path[len(w.dir):], info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return b.String()
}
