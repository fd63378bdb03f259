package config

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
)

func owner(id string) store.Owner { return store.Owner{ID: id, Host: "h", PID: 1, Start: id} }

func book(t *testing.T, st store.Store) *TrustBook {
	t.Helper()
	b, err := ReadTrust(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Guarantee: T42.
func TestTrustIsAPathWithItsContent(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := TrustWriter{Store: st, Owner: owner("one"), By: "user:ann"}
	is := func(path, content string, want Standing) {
		t.Helper()
		if got := book(t, st).Check(path, []byte(content)); got != want {
			t.Errorf("%s %q is %s, want %s", path, content, got, want)
		}
	}
	is("/w/a", "x", Unknown)
	f, err := w.Trust(t.Context(), "/w/a", []byte("x"))
	if err != nil || f.By != "user:ann" || f.Content.Digest != belay.DigestOf([]byte("x")) || f.At.IsZero() {
		t.Fatalf("got %+v, %v", f, err)
	}
	is("/w/a", "x", Trusted)
	is("/w/a", "y", Changed)
	is("/w/b", "x", Unknown)
	is("/w/A", "x", Unknown)
	if _, err := w.Trust(t.Context(), "/w/a", []byte("y")); err != nil {
		t.Fatal(err)
	}
	is("/w/a", "y", Trusted)
	is("/w/a", "x", Changed)
	if had, err := w.Revoke(t.Context(), "/w/a"); err != nil || !had {
		t.Errorf("revoked: %v, %v", had, err)
	}
	is("/w/a", "y", Unknown)
	if had, err := w.Revoke(t.Context(), "/w/a"); err != nil || had {
		t.Errorf("revoked again: %v, %v", had, err)
	}
	if kept, err := st.Get(t.Context(), f.Content.Digest); err != nil || string(kept) != "x" {
		t.Errorf("what was trusted is %q, %v", kept, err)
	}
}

func TestNothingIsTrustedWithoutABook(t *testing.T) {
	var b *TrustBook
	if b.Check("/a", nil) != Unknown || new(TrustBook).Check("/a", nil) != Unknown {
		t.Error("it is")
	}
}

func TestSayingItAgainIsNoFact(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := TrustWriter{Store: st, Owner: owner("one"), By: "user:ann"}
	for range 3 {
		if _, err := w.Trust(t.Context(), "/w/a", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	h, err := st.Head(t.Context(), trustStream)
	if err != nil || h.Seq != 1 || h.Session != belay.SystemSession {
		t.Errorf("got %+v, %v", h, err)
	}
	for e, err := range st.Read(t.Context(), trustStream, 0) {
		if err != nil || eventtest.Check(e) != nil {
			t.Errorf("%v, %v", err, eventtest.Check(e))
		}
	}
}

func TestFilesAreListedByPath(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := TrustWriter{Store: st, Owner: owner("one"), By: "user:ann"}
	for _, p := range []string{"/w/c", "/w/a", "/w/b"} {
		if _, err := w.Trust(t.Context(), p, []byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	var got string
	for _, f := range book(t, st).Files() {
		got += f.Path
	}
	if got != "/w/a/w/b/w/c" {
		t.Errorf("got %s", got)
	}
}

// A fold takes what it doesn't know, and what is half there trusts nothing.
// Guarantee: T42.
func TestOddFactsTrustNothing(t *testing.T) {
	b := &TrustBook{}
	ref := belay.Ref{Digest: belay.DigestOf([]byte("x")), Size: 1}
	for i, p := range []event.Payload{
		event.PolicyChanged{Kind: "trust", Op: "granted", Path: "/a"},
		event.PolicyChanged{Kind: "trust", Op: "granted", Digest: &ref},
		event.PolicyChanged{Kind: "grant", Op: "granted", Path: "/a", Digest: &ref},
		event.PolicyChanged{Kind: "trust", Op: "suggested", Path: "/a", Digest: &ref},
		event.RuntimeWarning{Code: "X"}, event.Unknown{Type: "trust.granted"}, nil,
	} {
		b.Apply(event.Envelope{Seq: int64(i + 1), Data: p})
	}
	if len(b.Files()) != 0 || b.Check("/a", []byte("x")) != Unknown || b.Check("", []byte("x")) != Unknown {
		t.Errorf("got %+v", b.Files())
	}
}

// Guarantee: T42.
func TestWritersAtTheSameTimeLoseNothing(t *testing.T) {
	data := memory.New()
	var wg sync.WaitGroup
	const n = 12
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			st := data.Open(memory.Options{})
			defer st.Close()
			w := TrustWriter{Store: st, Owner: owner(fmt.Sprint("o", i)), By: "user:ann"}
			_, errs[i] = w.Trust(context.WithoutCancel(t.Context()), fmt.Sprint("/w/", i), []byte("x"))
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	st := data.Open(memory.Options{})
	defer st.Close()
	if got := len(book(t, st).Files()); got != n {
		t.Errorf("%d of %d", got, n)
	}
}

func TestGovernedFilesAreFound(t *testing.T) {
	ws := fstest.MapFS{".belay/belay.yaml": {}, ".belay/tools/b.yaml": {}, ".belay/tools/a.yml": {}, ".belay/tools/notes.md": {}, ".belay/tools/deep/x.yaml": {}, "tools/y.yaml": {}}
	if got := fmt.Sprint(governedIn(ws)); got != "[.belay/belay.yaml .belay/tools/a.yml .belay/tools/b.yaml]" {
		t.Errorf("got %s", got)
	}
	for rel, want := range map[string]bool{".belay/tools/x.yaml": true, ".belay/belay.yaml": true, "belay.yaml": false, ".belay/tools/x.md": false} {
		if Governs(rel) != want {
			t.Errorf("%s: %v", rel, !want)
		}
	}
}
