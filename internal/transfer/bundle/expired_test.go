package bundle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/transfer/bundle"
)

// printing is a session with two outputs, one of which is something else besides,
// and what came after.
func printing(t *testing.T, st store.Store, after func(one, two belay.Ref) []event.Payload) (one, two belay.Ref) {
	t.Helper()
	put := func(text string) belay.Ref {
		ref, err := st.Put(t.Context(), []byte(text), "text/plain")
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	one, two = put(strings.Repeat("one ", 9000)), put("two")
	e, err := st.Claim(t.Context(), session, store.Owner{ID: "own_x", Host: "here"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	facts := append([]event.Payload{event.SessionCreated{}, event.ToolResult{Whole: &one, Digest: one.Digest}, event.ProcessCompleted{Output: &two},
		event.OutputExpired{Digest: one.Digest}, event.OutputExpired{Digest: two.Digest}}, after(one, two)...)
	var all []event.Envelope
	for _, p := range facts {
		all = append(all, event.Envelope{Time: epoch, IDs: belay.IDs{Session: session}, Data: p})
	}
	if _, err := st.Append(t.Context(), store.Batch{Session: session, Stream: session.Stream(), Epoch: e, Events: all}); err != nil {
		t.Fatal(err)
	}
	return one, two
}

// Guarantee: S52.
func TestOutputsThatExpiredStayBehind(t *testing.T) {
	for _, c := range []struct {
		name    string
		after   func(one, two belay.Ref) []event.Payload
		expired int
	}{
		{"both", func(one, two belay.Ref) []event.Payload { return nil }, 2},
		{"printed again", func(one, two belay.Ref) []event.Payload { return []event.Payload{event.OutputSpilled{Ref: &two}} }, 1},
		{"handed over", func(one, two belay.Ref) []event.Payload {
			return []event.Payload{event.ArtifactChanged{Kind: "artifact", Name: "a", After: &one}}
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := memory.Open(memory.Options{})
			defer from.Close()
			one, two := printing(t, from, c.after)
			raw := exported(t, from)
			b, err := open(t, raw)
			if err != nil {
				t.Fatal(err)
			}
			m := b.Manifest
			if len(m.Expired) != c.expired || len(m.Content) != 2-c.expired || len(m.Missing) != 0 || m.Version != bundle.Version {
				t.Errorf("%+v", m)
			}
			for _, x := range m.Expired {
				if _, err := b.Get(x.Digest); !errors.Is(err, store.ErrNotFound) || x.Digest != one.Digest && x.Digest != two.Digest {
					t.Errorf("%s: %v", x.Digest, err)
				}
			}
			dir := t.TempDir()
			to, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Restore(t.Context(), to, nil); err != nil {
				t.Fatal(err)
			}
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err := verify.Run(t.Context(), dir, verify.Options{}); err != nil || !r.OK() || r.Expired != c.expired {
				t.Errorf("%d expired, %v, %v", r.Expired, r.Problems, err)
			}
		})
	}
}

// Guarantee: S52.
func TestABundleDoesntCallMissingContentExpired(t *testing.T) {
	from := memory.Open(memory.Options{})
	defer from.Close()
	source(t, from)
	raw := string(exported(t, from))
	was, is := `"version":1,`, `"version":2,`
	if _, err := open(t, []byte(resummed(t, raw))); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, []byte(resummed(t, strings.Replace(raw, was, is, 1)))); belay.CodeOf(err) != belay.CodeBadBundle || !strings.Contains(err.Error(), "what expired") {
		t.Errorf("a version without its reason: %v", err)
	}
}

// resummed is a bundle whose manifest was changed, with the digest that fits.
func resummed(t *testing.T, raw string) string {
	t.Helper()
	const block = 512
	manifest, _, ok := strings.Cut(raw[block:], "\x00")
	if !ok || !strings.HasSuffix(manifest, "\n") {
		t.Fatal("no manifest")
	}
	at := block + (len(manifest)+block-1)/block*block + block
	sum := strings.TrimPrefix(string(belay.DigestOf([]byte(manifest))), "sha256:")
	return raw[:at] + sum + raw[at+len(sum):]
}
