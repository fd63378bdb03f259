package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/store"
)

// TestAStalledClientHoldsLittle lets clients stop reading while a program prints.
// Guarantee: V43.
func TestAStalledClientHoldsLittle(t *testing.T) {
	x := newProgram(t, false, "while read n; do head -c $n /dev/zero | tr '\\0' x; echo; done")
	reads := x.attach(x.owner, "")
	const stalled, flood = 3, 12 << 20
	var all []*attached
	for range stalled {
		all = append(all, x.attach(x.owner, ""))
	}
	reads.press(fmt.Sprintf("%d\n", flood))
	reads.until(func() bool { return len(reads.out) == flood+1 })
	held := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	with := held()
	back := all[0]
	for _, at := range all[1:] {
		at.c.CloseNow() //nolint:errcheck // cut
	}
	all = nil
	if each := (with - held()) / (stalled - 1); each > 1<<20 {
		t.Errorf("each stalled client holds %d bytes", each)
	}
	// One that reads again misses nothing.
	back.until(func() bool { return len(back.out) == len(reads.out) })
	if !bytes.Equal(back.out, reads.out) || len(back.gaps) > 0 {
		t.Error("who had stalled didn't get what was printed")
	}
	// One that doesn't is cut off, and may come back.
	patience := x.s.pace.stall
	x.s.pace.stall = 50 * time.Millisecond
	never := x.attach(x.owner, "")
	back.c.CloseNow()  //nolint:errcheck // cut
	reads.c.CloseNow() //nolint:errcheck // cut
	x.s.attached.Wait()
	for never.next() {
	}
	x.s.attached.Wait()
	x.s.pace.stall = patience // a busy machine reads late
	again := x.attach(x.owner, fmt.Sprintf("?offset=%d", len(never.out)))
	again.until(func() bool { return len(never.out)+len(again.out) == flood+1 })
}

// TestAProgramOfAnotherProcessIsFollowed attaches through a server that doesn't
// run the program.
// Guarantee: V40.
func TestAProgramOfAnotherProcessIsFollowed(t *testing.T) {
	x := newProgram(t, false, "echo up; while read line; do echo heard $line; done; echo down")
	other := &programRig{rig: x.world.serve(t, once), process: x.process}
	at := other.attach(x.owner, "")
	if at.hello.Live || at.hello.Input != "open" {
		t.Errorf("the greeting is %+v", at.hello)
	}
	at.press("me\n")
	at.see("up\nheard me\n")
	at.ask(`{"resize":{"cols":80,"rows":24}}`)
	at.refusal(belay.CodeBadState)
	at.ask(`{"eof":true}`)
	at.over(websocket.StatusNormalClosure)
	if e := at.exit; e == nil || e.Code != 0 || string(at.out) != "up\nheard me\ndown\n" {
		t.Errorf("it printed %q and ended with %+v", at.out, e)
	}
	x.stop()
}

// hiding is a store that let a content go.
type hiding struct {
	store.Store
	gone belay.Digest
}

func (h hiding) Open(ctx context.Context, d belay.Digest) (io.ReadCloser, error) {
	if d == h.gone {
		return nil, store.ErrNotFound
	}
	return h.Store.Open(ctx, d)
}

// TestWhatIsntKeptIsSaid attaches to a program that has ended and of whose output
// a part is gone.
// Guarantee: V40.
func TestWhatIsntKeptIsSaid(t *testing.T) {
	x := newProgram(t, false, "read x; head -c 2500000 /dev/zero | tr '\\0' x; echo last")
	first := x.attach(x.owner, "")
	first.press("go\n")
	first.over(websocket.StatusNormalClosure)
	var gone event.ProcessOutput
	for _, rec := range x.facts() {
		if p, ok := rec.Event.Data.(event.ProcessOutput); ok && p.Ref != nil && gone.Ref == nil {
			gone = p
		}
	}
	x.stop()
	r := x.world.serve(t, once, func(c *Config) {
		open := c.Open
		c.Open = func(ctx context.Context, tenant string) (TenantConfig, error) {
			h, err := open(ctx, tenant)
			if err == nil {
				h.Store = hiding{h.Store, gone.Ref.Digest}
			}
			return h, err
		}
	})
	late := (&programRig{rig: r, process: x.process}).attach(x.owner, "?offset=10")
	late.over(websocket.StatusNormalClosure)
	if len(late.gaps) == 0 || late.gaps[0] != (client.Gap{From: 10, Offset: gone.Ref.Size}) || !strings.HasSuffix(string(late.out), "xlast\n") {
		t.Errorf("%d bytes, ending in %q, gaps %v", len(late.out), late.out[max(0, len(late.out)-10):], late.gaps)
	}
	skipped := 10
	for _, g := range late.gaps {
		skipped += int(g.Offset - g.From)
	}
	if len(late.out)+skipped != len(first.out) {
		t.Errorf("%d bytes came and %d were said to be gone, of %d", len(late.out), skipped-10, len(first.out)-10)
	}
}

// TestAttachmentsThatMayTypeAreRecorded looks for the facts of attachments.
// Guarantee: V41.
func TestAttachmentsThatMayTypeAreRecorded(t *testing.T) {
	x := newProgram(t, false, "cat")
	viewer, owner := x.attach(x.token(auth.Viewer, auth.DefaultTenant), ""), x.attach(x.owner, "")
	owner.press("hello\n")
	owner.see("hello")
	viewer.c.Close(websocket.StatusNormalClosure, "") //nolint:errcheck // the server says goodbye
	owner.c.Close(websocket.StatusNormalClosure, "")  //nolint:errcheck // as above
	x.dial("/v1/sessions/s1/processes/proc_none/attach", bearerOf(x.owner), client.AttachProtocol)
	x.s.attached.Wait()
	var said []string
	for rec, err := range x.opened[auth.DefaultTenant].Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := rec.Event.Data.(event.ChannelMessage); ok && m.Kind == "audit" && m.Command != "submit_turn" && m.Command != "respond_action" {
			said = append(said, m.Command+" "+m.Code+" "+m.Message)
		}
	}
	of := string(x.process) + " of s1"
	want := []string{"attach accepted " + of, "detach accepted " + of + ", 6 bytes were typed", "GET /v1/sessions/s1/processes/proc_none/attach not_found "}
	for _, w := range want {
		if !strings.Contains(strings.Join(said, "\n")+"\n", w+"\n") {
			t.Errorf("%q isn't in %q", w, said)
		}
	}
	if len(said) != len(want) {
		t.Errorf("recorded are %q", said)
	}
}
