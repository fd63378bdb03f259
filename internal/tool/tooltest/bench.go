package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// Bench is a workspace with a sink, and a memory of files as a thread has it.
type Bench struct {
	T      testing.TB
	Dir    string
	Root   *os.Root
	Sink   *Sink
	Expect map[string]string
	ID     belay.CallID
	Shell  *belay.Shell
}

// NewBench makes an empty workspace.
func NewBench(t testing.TB) *Bench {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspace")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &Bench{T: t, Dir: dir, Root: root, Sink: &Sink{}, Expect: map[string]string{}, ID: "call_1"}
}

// Put makes a file in the workspace that the thread doesn't know, with the
// folders above it.
func (b *Bench) Put(name, content string) {
	b.T.Helper()
	full := filepath.Join(b.Dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.T.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		b.T.Fatal(err)
	}
}

// Know makes a file that the thread has read.
func (b *Bench) Know(name, content string) {
	b.T.Helper()
	b.Put(name, content)
	ref, err := b.Sink.Keep([]byte(content), "")
	if err != nil {
		b.T.Fatal(err)
	}
	b.Expect[name] = string(ref.Digest)
}

// Get is the content of a file.
func (b *Bench) Get(name string) string {
	b.T.Helper()
	c, err := os.ReadFile(filepath.Join(b.Dir, name))
	if err != nil {
		b.T.Fatal(err)
	}
	return string(c)
}

// Call is a call with these arguments.
func (b *Bench) Call(args any) tool.Call {
	b.T.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.T.Fatal(err)
	}
	return tool.Call{ID: b.ID, Attempt: 1, Args: raw, Dir: b.Dir, Root: b.Root, Expect: b.Expect, Shell: b.Shell, Process: "proc_bench", Sink: b.Sink}
}

// Run runs a tool and remembers what it says of files, as the core does.
func (b *Bench) Run(ctx context.Context, t tool.Tool, args any) (tool.Result, error) {
	b.T.Helper()
	r, err := t.Run(ctx, b.Call(args))
	b.Remember(r.Files)
	if e := Failure(err); e != nil {
		b.Remember(e.Files)
	}
	return r, err
}

// Remember takes over what the thread knows of files.
func (b *Bench) Remember(files []event.FileSeen) {
	for _, f := range files {
		b.Expect[f.Path] = f.Digest
	}
}

// Failure is err as a failure that the model reads, or nil.
func Failure(err error) *tool.Error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	return nil
}

// CodeOf is the code of a failure; "ok" for none, and the text of any other error.
func CodeOf(err error) string {
	if err == nil {
		return "ok"
	}
	if e := Failure(err); e != nil {
		return e.Code
	}
	return err.Error()
}
