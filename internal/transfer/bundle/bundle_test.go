package bundle_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/testkit/failfs"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/transfer/bundle"
)

const session = belay.SessionID("sess_a")

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// source is a store with a session: two streams in turns, a fact of an unknown
// type, content in a row, in a file and gone, and a command that waits. Beside
// it is another session.
func source(t testing.TB, st store.Store) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(content string) belay.Ref {
		ref, err := st.Put(ctx, []byte(content), "text/plain")
		must(err)
		return ref
	}
	after := map[belay.StreamID]int64{}
	add := func(id belay.SessionID, s belay.StreamID, refs map[string]belay.Ref, data event.Payload) {
		t.Helper()
		owner := store.Owner{ID: "own_x", Host: "here", PID: os.Getpid()}
		e, err := st.Claim(ctx, id, owner, time.Hour)
		must(err)
		ids := belay.IDs{Session: id}
		_, err = st.Append(ctx, store.Batch{Session: id, Stream: s, After: after[s], Epoch: e, Lane: store.Lane{Runnable: s.Kind() == belay.KindThread},
			Events: []event.Envelope{{Time: epoch.Add(time.Duration(after[s]) * time.Second), IDs: ids, Refs: refs, Data: data}}})
		must(err)
		must(st.Release(ctx, id, e))
		after[s]++
	}
	thread, task := belay.ThreadID("thr_a").Stream(), belay.TaskID("task_a").Stream()
	add(session, session.Stream(), nil, event.SessionCreated{Workspace: "/w", Title: "ducks"})
	add("sess_b", "thread/thr_b", nil, event.ModelDelta{Text: "another"})
	add(session, thread, map[string]belay.Ref{"said": put("small content")}, event.ModelDelta{Text: "one"})
	long := put(strings.Repeat("large content ", 2400))
	gone := belay.Ref{Digest: belay.DigestOf([]byte("gone")), Size: 4}
	add(session, task, nil, event.TaskCreated{Objective: belay.Content{Text: "quack", Ref: &long}, Kind: "agent"})
	add(session, thread, nil, event.TurnSubmitted{Text: belay.Content{Ref: &gone}, Rules: put(`{"rules": 1}`)})
	add(session, thread, nil, event.Unknown{Type: "made.up", Raw: []byte("{ \"space\" : \"<kept>\" }")})
	add(session, thread, nil, event.ModelDelta{Text: "\u2028 <&> ✓"})
	must(st.Enqueue(ctx, belay.Order{ID: "cmd_1", Principal: "user:ada", Time: epoch, Session: session, Stream: thread,
		Command: belay.InterruptTurn{Reason: "waits"}}))
}

// exported is the bundle of the source's session.
func exported(t testing.TB, st store.Store) []byte {
	t.Helper()
	p, err := bundle.Take(t.Context(), st, session)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.Write(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func memorySource(t testing.TB) (*memory.Store, []byte) {
	st := memory.Open(memory.Options{})
	t.Cleanup(func() { st.Close() })
	source(t, st)
	return st, exported(t, st)
}

func open(t testing.TB, raw []byte) (*bundle.Bundle, error) {
	t.Helper()
	return bundle.Open(t.Context(), bytes.NewReader(raw), int64(len(raw)), nil)
}

// restore brings a bundle into a store.
func restore(ctx context.Context, raw []byte, st store.Store) error {
	b, err := bundle.Open(ctx, bytes.NewReader(raw), int64(len(raw)), nil)
	if err != nil {
		return err
	}
	return b.Restore(ctx, st, map[belay.StreamID]store.Lane{"thread/thr_a": {Runnable: true}})
}

// TestASessionSurvivesTheWay: from each kind of store into each kind, and back,
// the session is the same, to the byte.
// Guarantee: S40, S43.
func TestASessionSurvivesTheWay(t *testing.T) {
	kinds := map[string]func(testing.TB) store.Store{
		"memory": func(t testing.TB) store.Store { return memory.Open(memory.Options{}) },
		"sqlite": func(t testing.TB) store.Store {
			st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return st
		},
	}
	for from, openFrom := range kinds {
		for to, openTo := range kinds {
			t.Run(from+" to "+to, func(t *testing.T) {
				a, b := openFrom(t), openTo(t)
				defer a.Close()
				defer b.Close()
				source(t, a)
				raw := exported(t, a)
				if !bytes.Equal(raw, exported(t, a)) {
					t.Error("the same session makes other bytes the second time")
				}
				if err := restore(t.Context(), raw, b); err != nil {
					t.Fatal(err)
				}
				again := exported(t, b)
				if got, want := withoutRuntime(t, again), withoutRuntime(t, raw); !bytes.Equal(got, want) {
					t.Errorf("exported again it is\n%.3000s\nwas\n%.3000s", got, want)
				}
				sameSession(t, a, b)
			})
		}
	}
}

// withoutRuntime replaces the id of the store, which is all that may differ.
func withoutRuntime(t testing.TB, raw []byte) []byte {
	t.Helper()
	b, err := open(t, raw)
	if err != nil {
		t.Fatal(err)
	}
	return rebuilt(t, raw, func(h *tar.Header, c []byte) (*tar.Header, []byte) {
		if h.Name == "bundle.json" {
			c = bytes.Replace(c, []byte(b.Manifest.Runtime), []byte("rt"), 1)
		}
		return h, c
	})
}

func sameSession(t testing.TB, a, b store.Store) {
	t.Helper()
	ctx := t.Context()
	for _, s := range []belay.StreamID{session.Stream(), "thread/thr_a", "task/task_a"} {
		x, err := a.Head(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		y, err := b.Head(ctx, s)
		if err != nil || x != y {
			t.Errorf("%s ends at %+v, was %+v, %v", s, y, x, err)
		}
	}
	lanes, err := b.Lanes(ctx, session)
	if err != nil || len(lanes) != 1 || !lanes[0].Runnable || lanes[0].Inbox != 1 {
		t.Errorf("lanes: %+v, %v", lanes, err)
	}
	orders, err := b.Inbox(ctx, "thread/thr_a")
	if err != nil || len(orders) != 1 || orders[0].ID != "cmd_1" || orders[0].Principal != "user:ada" || !orders[0].Time.Equal(epoch) {
		t.Errorf("inbox: %+v, %v", orders, err)
	}
	for _, content := range []string{"small content", strings.Repeat("large content ", 2400), `{"rules": 1}`} {
		if got, err := b.Get(ctx, belay.DigestOf([]byte(content))); string(got) != content {
			t.Errorf("content: %.20q, %v", got, err)
		}
	}
	if _, err := b.Head(ctx, "thread/thr_b"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another session came along: %v", err)
	}
}

func TestTheManifestSaysWhatIsInABundle(t *testing.T) {
	st, raw := memorySource(t)
	b, err := open(t, raw)
	if err != nil {
		t.Fatal(err)
	}
	m := b.Manifest
	if m.Session != session || m.Runtime != st.Runtime() || m.Facts.Count != 6 || m.Inbox.Count != 1 || len(m.Streams) != 3 || len(m.Content) != 3 {
		t.Errorf("manifest: %+v", m)
	}
	if len(m.Missing) != 1 || m.Missing[0].Digest != belay.DigestOf([]byte("gone")) {
		t.Errorf("missing: %+v", m.Missing)
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if len(names) != 7 || !slices.Equal(names[:4], []string{"bundle.json", "bundle.sha256", "facts.jsonl", "inbox.jsonl"}) || !slices.IsSorted(names[4:]) {
		t.Errorf("members: %v", names)
	}
}

// TestImportTwice: again is no change, an older file is no change, another
// history is a conflict.
// Guarantee: S42.
func TestImportTwice(t *testing.T) {
	st, raw := memorySource(t)
	to := memory.Open(memory.Options{})
	standing := func(raw []byte) bundle.Standing {
		t.Helper()
		b, err := open(t, raw)
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Compare(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := standing(raw); s != bundle.Absent {
		t.Errorf("in an empty store: %s", s)
	}
	if err := restore(t.Context(), raw, to); err != nil {
		t.Fatal(err)
	}
	if s := standing(raw); s != bundle.Same {
		t.Errorf("after the import: %s", s)
	}
	if err := restore(t.Context(), raw, to); belay.CodeOf(err) != belay.CodeIDConflict {
		t.Errorf("restored twice: %v", err)
	}
	goOn := func(st store.Store, text string) {
		t.Helper()
		e, err := st.Claim(t.Context(), session, store.Owner{ID: "own_y"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		b := store.Batch{Session: session, Stream: "thread/thr_a", After: 4, Epoch: e, Events: []event.Envelope{{IDs: belay.IDs{Session: session}, Data: event.ModelDelta{Text: text}}}}
		if _, err := st.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	goOn(to, "here")
	if s := standing(raw); s != bundle.Further {
		t.Errorf("after the session went on: %s", s)
	}
	goOn(st, "there")
	if s := standing(exported(t, st)); s != bundle.Differs {
		t.Errorf("with another history: %s", s)
	}
}

// TestContentThatGotLostComesBack: the store lacks a piece; the import of the
// same bundle brings it.
// Guarantee: S42.
func TestContentThatGotLostComesBack(t *testing.T) {
	_, raw := memorySource(t)
	b, err := open(t, raw)
	if err != nil {
		t.Fatal(err)
	}
	to := memory.Open(memory.Options{})
	if n, err := b.Repair(t.Context(), to); n != 3 || err != nil {
		t.Errorf("repaired %d, %v", n, err)
	}
	if n, err := b.Repair(t.Context(), to); n != 0 || err != nil {
		t.Errorf("repaired %d again, %v", n, err)
	}
}

// places are the bytes to try: all of them, but of the large content and of long
// padding a few stand for the rest.
func places(raw []byte) (at []int) {
	large := bytes.Index(raw, []byte(strings.Repeat("large content ", 3)))
	for i := 0; i < len(raw); i++ {
		if i > large+100 && i < large+30_000 {
			i += 1997
		}
		if padding := raw[max(0, i-1):min(len(raw), i+2)]; i%32 != 0 && bytes.Equal(padding, []byte{0, 0, 0}) {
			continue
		}
		at = append(at, i)
	}
	return at
}

// TestEveryChangedByteIsNoticed changes each byte of a bundle.
// Guarantee: S41.
func TestEveryChangedByteIsNoticed(t *testing.T) {
	t.Parallel()
	_, raw := memorySource(t)
	spoilt := bytes.Clone(raw)
	for n, i := range places(raw) {
		x := []byte{1, 0x20, 0x80}[n%3]
		spoilt[i] ^= x
		if _, err := open(t, spoilt); belay.CodeOf(err) != belay.CodeBadBundle && belay.CodeOf(err) != belay.CodeRequires {
			t.Fatalf("byte %d with %#x changed: %v: ...%q", i, x, err, spoilt[max(0, i-40):min(len(raw), i+40)])
		}
		spoilt[i] = raw[i]
	}
}

// TestEveryCutIsNoticed cuts a bundle at every length, and appends to it.
// Guarantee: S41.
func TestEveryCutIsNoticed(t *testing.T) {
	t.Parallel()
	_, raw := memorySource(t)
	for _, n := range places(raw) {
		if _, err := open(t, raw[:n]); belay.CodeOf(err) != belay.CodeBadBundle {
			t.Fatalf("cut at %d of %d: %v", n, len(raw), err)
		}
	}
	for _, more := range []int{1, 512, 10_240} {
		if _, err := open(t, append(bytes.Clone(raw), make([]byte, more)...)); belay.CodeOf(err) != belay.CodeBadBundle {
			t.Errorf("with %d bytes more: %v", more, err)
		}
	}
}

// TestMadeUpBundlesAreRefused: archives that are archives, and no bundles.
// Guarantee: S41.
func TestMadeUpBundlesAreRefused(t *testing.T) {
	_, raw := memorySource(t)
	for what, change := range map[string]func(h *tar.Header, content []byte) (*tar.Header, []byte){
		"a name that leads out": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if strings.HasPrefix(h.Name, "content/") {
				h.Name = "content/../../../etc/passwd"
			}
			return h, c
		},
		"an absolute name": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "facts.jsonl" {
				h.Name = "/facts.jsonl"
			}
			return h, c
		},
		"a link": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "inbox.jsonl" {
				h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0
				return h, nil
			}
			return h, c
		},
		"a hard link": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "inbox.jsonl" {
				h.Typeflag, h.Linkname, h.Size = tar.TypeLink, "facts.jsonl", 0
				return h, nil
			}
			return h, c
		},
		"extended headers": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			h.Format, h.PAXRecords = tar.FormatPAX, map[string]string{"VENDOR.x": "y"}
			return h, c
		},
		"a member less": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "inbox.jsonl" {
				return nil, nil
			}
			return h, c
		},
		"a newer version": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			return h, bytes.Replace(c, []byte(`"version":1,"runtime"`), []byte(`"version":9,"runtime"`), 1)
		},
		"another session's name": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "bundle.json" {
				c = bytes.Replace(c, []byte(`"session":"sess_a"`), []byte(`"session":"sess_z"`), 1)
			}
			return h, c
		},
		"the session of the runtime": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "bundle.json" {
				c = bytes.Replace(c, []byte(`"session":"sess_a"`), []byte(`"session":"sess_runtime"`), 1)
			}
			return h, c
		},
		"a field nobody knows": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "bundle.json" {
				c = bytes.Replace(c, []byte(`{"format"`), []byte(`{"more":1,"format"`), 1)
			}
			return h, c
		},
		"another hash": func(h *tar.Header, c []byte) (*tar.Header, []byte) {
			if h.Name == "bundle.json" {
				i := bytes.Index(c, []byte(`"hash":"`)) + len(`"hash":"`)
				c[i] ^= 1
			}
			return h, c
		},
	} {
		spoilt := rebuilt(t, raw, change)
		if _, err := open(t, spoilt); err == nil {
			t.Errorf("%s: opened", what)
		} else if code := belay.CodeOf(err); code != belay.CodeBadBundle && code != belay.CodeRequires {
			t.Errorf("%s: %v", what, err)
		}
	}
	if b, err := open(t, rebuilt(t, raw, func(h *tar.Header, c []byte) (*tar.Header, []byte) { return h, c })); err != nil || b.Manifest.Session != session {
		t.Errorf("unchanged: %v", err) // else the test above shows nothing
	}
}

// rebuilt writes the archive again with members changed; sizes follow.
func rebuilt(t testing.TB, raw []byte, change func(*tar.Header, []byte) (*tar.Header, []byte)) []byte {
	t.Helper()
	var out bytes.Buffer
	var manifest []byte
	w := tar.NewWriter(&out)
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "bundle.sha256" {
			content = fmt.Appendf(nil, "%x  bundle.json\n", sha256.Sum256(manifest))
		}
		if h, content = change(h, content); h == nil {
			continue
		}
		if h.Name == "bundle.json" {
			manifest = content
		}
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestNoSecretComesIn: a registered value anywhere in a bundle refuses it.
// Guarantee: X21.
func TestNoSecretComesIn(t *testing.T) {
	_, raw := memorySource(t)
	for _, value := range []string{"another way", "small content", "large content large", "sess_a", "waits until", `"rules"`, "quack quack"} {
		var s secret.Scrubber
		s.Add("KEY", value)
		_, err := bundle.Open(t.Context(), bytes.NewReader(raw), int64(len(raw)), &s)
		if in := bytes.Contains(raw, []byte(value)); in != (err != nil) {
			t.Errorf("%q, in it %v: %v", value, in, err)
		}
		if err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("the error tells it: %v", err)
		}
	}
}

// TestExportIsThereWholeOrNotAtAll fails each operation of writing a bundle.
// Guarantee: S43.
func TestExportIsThereWholeOrNotAtAll(t *testing.T) {
	st, raw := memorySource(t)
	p, err := bundle.Take(t.Context(), st, session)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range []error{syscall.ENOSPC, syscall.EIO} {
		for at := 1; ; at++ {
			what := fmt.Sprintf("%v at %d", problem, at)
			path := filepath.Join(t.TempDir(), "session.belay")
			sys := &failfs.Failing{At: at, Err: problem}
			err := files.WriteWhole(sys, path, func(w io.Writer) error { return p.Write(t.Context(), w) })
			got, rerr := os.ReadFile(path)
			if !sys.Hit {
				if err != nil || !bytes.Equal(got, raw) {
					t.Errorf("%s: %d bytes, %v", what, len(got), err)
				}
				break
			}
			if !errors.Is(err, problem) {
				t.Errorf("%s: told %v", what, err)
			}
			if rerr == nil && !(sys.Renamed && bytes.Equal(got, raw)) {
				t.Errorf("%s: %d bytes have the name", what, len(got))
			}
		}
	}
}

// TestImportIsThereWholeOrNotAtAll lets the process die before and after the
// transaction of an import; the next one brings the session in.
// Guarantee: S42.
func TestImportIsThereWholeOrNotAtAll(t *testing.T) {
	_, raw := memorySource(t)
	for _, point := range []string{memory.BeforeAppend, memory.AfterAppend} {
		data := memory.New()
		var st *memory.Store
		st = data.Open(memory.Options{Hook: func(at string) error {
			if at == point {
				st.Kill()
				return errors.New("dead")
			}
			return nil
		}})
		if err := restore(t.Context(), raw, st); err == nil {
			t.Fatalf("%s: nobody died", point)
		}
		next := data.Open(memory.Options{})
		b, err := open(t, raw)
		if err != nil {
			t.Fatal(err)
		}
		standing, err := b.Compare(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]bundle.Standing{memory.BeforeAppend: bundle.Absent, memory.AfterAppend: bundle.Same}[point]; standing != want {
			t.Errorf("%s: the session is %s, want %s", point, standing, want)
		}
		if standing == bundle.Absent {
			if err := restore(t.Context(), raw, next); err != nil {
				t.Errorf("%s: the next import: %v", point, err)
			}
		}
		if _, err := b.Repair(t.Context(), next); err != nil {
			t.Error(err)
		}
		again := withoutRuntime(t, exported(t, next))
		if !bytes.Equal(again, withoutRuntime(t, raw)) {
			t.Errorf("%s: the session is another one", point)
		}
	}
}

// TestASessionWithoutFactsIsOnlyItsCommands: accepted and not handled yet.
func TestASessionWithoutFactsIsOnlyItsCommands(t *testing.T) {
	st, to := memory.Open(memory.Options{}), memory.Open(memory.Options{})
	order := belay.Order{ID: "cmd_1", Principal: "user:ada", Time: epoch, Session: session, Stream: session.Stream(),
		Command: belay.CreateSession{Workspace: "/w"}}
	if err := st.Enqueue(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	if err := restore(t.Context(), exported(t, st), to); err != nil {
		t.Fatal(err)
	}
	if orders, err := to.Inbox(t.Context(), session.Stream()); len(orders) != 1 || err != nil {
		t.Errorf("inbox: %v, %v", orders, err)
	}
	if _, err := bundle.Take(t.Context(), st, "sess_none"); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("no session: %v", err)
	}
}

// FuzzOpen: whatever a file is, opening it ends, without a panic, and what it
// takes can be restored.
func FuzzOpen(f *testing.F) {
	_, raw := memorySource(f)
	f.Add(raw)
	f.Add(raw[:700])
	f.Add([]byte("bundle.json"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := open(t, raw)
		if err != nil {
			if belay.CodeOf(err) == belay.CodeInternal {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		if err := b.Restore(t.Context(), memory.Open(memory.Options{}), nil); err != nil {
			t.Fatalf("opened and not restored: %v", err)
		}
	})
}
