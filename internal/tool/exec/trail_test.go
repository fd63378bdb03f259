//go:build unix

package exec

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

// A program that its call waits for leaves a trail: what a killed runtime can't
// have kept whole is there in part, and where nothing is the reader is told.
// Guarantee: T100.
func TestATrailHasTheLastOfAnOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &tooltest.Sink{}
		p := &singleOutput{sink: sink, most: 1 << 10, trail: newTrail(sink, "proc_1")}
		put := func(b []byte, after time.Duration) {
			if err := p.take(b); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			if err := p.due(); err != nil {
				t.Fatal(err)
			}
		}
		put([]byte("begun\n"), firstGap-time.Millisecond)
		if n := len(sink.Facts()); n != 0 {
			t.Fatalf("%d facts before the first gap", n)
		}
		put([]byte("on\n"), time.Millisecond)
		flood := bytes.Repeat([]byte("0123456789abcdef"), trailRoom/4)
		for i := 0; i < len(flood); i += 1 << 12 {
			put(flood[i:i+1<<12], 0)
		}
		if cap(p.trail.wait) > 4*trailRoom {
			t.Errorf("%d bytes are held", cap(p.trail.wait))
		}
		put([]byte("last\n"), 2*firstGap)
		facts := sink.Facts()
		if len(facts) != 2 {
			t.Fatalf("got %d facts: %+v", len(facts), facts)
		}
		k := KeptOf(recordedAs(facts...))
		total := int64(len("begun\non\n") + len(flood) + len("last\n"))
		b, at, err := k.Window(sink.Part, 0, 1<<20)
		if err != nil || at != 0 || string(b) != "begun\non\n" || k.Total != total || k.Ended {
			t.Errorf("got %q at %d of %d, %v", b, at, k.Total, err)
		}
		b, at, err = k.Window(sink.Part, at+int64(len(b)), 1<<20)
		if err != nil || at != total-trailRoom || len(b) != trailRoom || !bytes.HasSuffix(b, []byte("last\n")) {
			t.Errorf("got %d bytes at %d of %d, %v", len(b), at, total, err)
		}
		ref, _, err := p.finish("text/plain", false)
		if err != nil || ref.Size != total {
			t.Fatalf("got %+v, %v", ref, err)
		}
		k = KeptOf(recordedAs(append(facts, event.ProcessCompleted{Output: ref})...))
		if b, at, err := k.Window(sink.Part, 9, 16); err != nil || at != 9 || !bytes.Equal(b, flood[:16]) {
			t.Errorf("the whole reads as %q at %d, %v", b, at, err)
		}
	})
}

// recordedAs are facts as a log has them, a second apart.
func recordedAs(facts ...event.Payload) (all []event.Envelope) {
	for i, p := range facts {
		all = append(all, event.Envelope{Time: time.Date(2026, 5, 1, 12, 0, i, 0, time.UTC), Data: p})
	}
	return all
}

// Guarantee: S52.
func TestAnOutputThatExpiredSaysSoAndWhatIsPrintedAgainIsThere(t *testing.T) {
	sink := &tooltest.Sink{}
	ref, err := sink.Keep([]byte("0123456789"), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	let := event.OutputExpired{Digest: ref.Digest, Bytes: ref.Size, Reason: event.ExpiredAsked, Why: "no longer needed", By: "user:mia"}
	for _, c := range []struct {
		facts []event.Payload
		want  string // of the failure; empty: it is read
	}{
		{[]event.Payload{event.ProcessCompleted{Output: &ref}, let}, "bytes 0 to 10 of the output expired on 2026-05-01 12:00 UTC: no longer needed, by user:mia"},
		{[]event.Payload{event.ProcessOutput{Ref: &ref}, let, event.ProcessCompleted{Exit: 1}}, "bytes 0 to 10 of the output expired"},
		{[]event.Payload{event.ProcessOutput{Ref: &ref}, let, event.ProcessCompleted{Output: &ref}}, ""},
		{[]event.Payload{event.ProcessCompleted{Output: &ref}, event.OutputExpired{Digest: "sha256:other"}}, ""},
	} {
		b, _, err := KeptOf(recordedAs(c.facts...)).Window(sink.Part, 0, 100)
		e := tooltest.Failure(err)
		switch {
		case c.want == "" && (err != nil || string(b) != "0123456789"):
			t.Errorf("%v: read %q, %v", c.facts, b, err)
		case c.want != "" && (e == nil || e.Code != CodeExpired || e.Class != tool.NotFound || !strings.HasPrefix(e.Message, c.want)):
			t.Errorf("%v: %v", c.facts, err)
		}
	}
}
