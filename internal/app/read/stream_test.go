package read_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/feed"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

// bench is a server of reads on loopback, and somebody who writes.
type bench struct {
	*testing.T
	*feedtest.Writer
	st   store.Store
	hub  *feed.Hub
	addr string
	over atomic.Int64 // requests that were answered to their end
}

func newBench(t *testing.T, st store.Store, o feed.Options, stall time.Duration) *bench {
	o.Snapshot = read.Snapshot(st, view.NewFollower(st))
	hub, err := feed.New(t.Context(), st, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	b := &bench{T: t, Writer: feedtest.New(t, st, hub.Show), st: st, hub: hub}
	mux := http.NewServeMux()
	for _, r := range (&read.Reads{Store: st, Hub: hub, Views: view.NewFollower(st), Stall: stall}).Routes() {
		mux.HandleFunc(r.Pattern, func(w http.ResponseWriter, q *http.Request) {
			defer b.over.Add(1)
			r.Handle(w, q)
		})
	}
	srv := httptest.NewServer(mux)
	b.addr = srv.URL
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the hub ended with %v", err)
		}
		srv.Close()
	})
	return b
}

// client connects with connections of its own; dial may be nil.
func (b *bench) client(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *client.Client {
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	b.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(b.addr, client.Options{HTTP: &http.Client{Transport: transport}})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// frail is a connection that breaks after some bytes.
type frail struct {
	net.Conn
	left int
}

func (f *frail) Read(p []byte) (int, error) {
	if f.left <= 0 {
		_ = f.Close()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := f.Conn.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// following is what a client has of a stream, checked as it comes.
type following struct {
	t     testing.TB
	facts []belay.EventID
	texts client.Texts
	shown map[client.Answer]string
	whole map[client.Answer]string
	flew  int // pieces of text that were not in the log
}

func newFollowing(t testing.TB) *following {
	return &following{t: t, shown: map[client.Answer]string{}, whole: map[client.Answer]string{}}
}

// take checks one event and reports whether it was the last.
func (f *following) take(e client.Event) (last bool) {
	of, grew, err := f.texts.Take(e)
	if err != nil {
		f.t.Fatal(err)
	}
	if grew {
		_, f.shown[of] = f.texts.Of(of.Stream)
	}
	if e.Type == client.TypeText {
		f.flew++
		return false
	}
	fact, err := e.Fact()
	if err != nil {
		f.t.Fatalf("%s: %v", e.Type, err)
	}
	f.facts = append(f.facts, fact.ID())
	if p, ok := fact.Data.(event.ModelCompleted); ok {
		of := client.Answer{Stream: fact.Stream, Step: fact.IDs.Step, Attempt: p.Attempt}
		f.whole[of] = p.Text.Text
		if f.shown[of] != p.Text.Text {
			f.t.Errorf("%v: put together it has %d bytes, the answer %d", of, len(f.shown[of]), len(p.Text.Text))
		}
	}
	return e.Type == "turn.completed"
}

// prefixes checks what was put together while it flowed.
func prefixes(t *testing.T, f *following, seen map[client.Answer][]string) {
	t.Helper()
	for of, all := range seen {
		for _, text := range all {
			if !strings.HasPrefix(f.whole[of], text) {
				t.Errorf("%v: %q is no beginning of its answer", of, text)
			}
		}
	}
}

func allFacts(event.Envelope) bool { return true }

// story is two sessions whose models answer in turns; it ends with a turn of the
// first.
func (b *bench) story(seed uint64, answers int, pause time.Duration) {
	random := rand.New(rand.NewPCG(seed, 7))
	b.Pause = func() { time.Sleep(rand.N(pause)) }
	for range answers {
		pieces := make([]string, random.IntN(9))
		for i := range pieces {
			pieces[i] = strings.Repeat("ü%", 1+random.IntN(150))
		}
		b.Answer(feedtest.IDs([]string{"a", "b"}[random.IntN(2)]), pieces...)
	}
	b.Add(feedtest.IDs("a"), event.TurnCompleted{})
}

// TestAThousandDisconnects breaks the connections of 20 clients again and again
// while models answer: of the facts none is missing and none comes twice, and
// text is at each moment a beginning of the answer.
// Guarantee: L1, L2.
func TestAThousandDisconnects(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	b := newBench(t, memory.Open(memory.Options{}), feed.Options{Pace: time.Millisecond}, 0)
	b.Add(feedtest.IDs("a"), feedtest.Note(0))
	const clients = 20
	want := int64(1000)
	if raceEnabled {
		want = 200
	}
	var wg sync.WaitGroup
	var breaks, gone atomic.Int64
	results := make([]*following, clients)
	for i := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		var mu sync.Mutex
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			mu.Lock()
			defer mu.Unlock()
			if breaks.Add(1) > want+clients {
				return conn, err
			}
			return &frail{conn, 500 + random.IntN(12000)}, err
		}
		f := newFollowing(t)
		results[i] = f
		path := []string{"/v1/stream", "/v1/sessions/sess_a/stream", "/v1/threads/thr_a/stream"}[i%3]
		wg.Go(func() {
			defer gone.Add(1)
			seen := map[client.Answer][]string{}
			for e, err := range b.client(dial).Stream(t.Context(), path, client.StreamOptions{Since: "start"}) {
				if err != nil {
					t.Error(err)
					return
				}
				last := f.take(e)
				if at, text := f.texts.Of("thread/thr_a"); text != "" && (len(seen[at]) == 0 || seen[at][len(seen[at])-1] != text) {
					seen[at] = append(seen[at], text)
				}
				if last {
					break
				}
			}
			prefixes(t, f, seen)
		})
	}
	for n := uint64(0); breaks.Load() < want+clients && gone.Load() < clients; n++ {
		random := rand.New(rand.NewPCG(seed, n+100))
		b.Answer(feedtest.IDs([]string{"a", "b"}[random.IntN(2)]), slices.Repeat([]string{strings.Repeat("ü%", 1+random.IntN(60))}, random.IntN(9))...)
		for i := 0; i < 10 && breaks.Load() < int64(10*n); i++ { // what is written waits for who reads
			<-time.After(2 * time.Millisecond)
		}
	}
	b.Add(feedtest.IDs("a"), event.TurnCompleted{})
	wg.Wait()
	all := feedtest.Log(t, b.st, allFacts)
	ofA := feedtest.Log(t, b.st, func(e event.Envelope) bool { return e.IDs.Session == "sess_a" })
	flew := 0
	for i, f := range results {
		log := ofA
		if i%3 == 0 {
			log = all
		}
		if !slices.Equal(f.facts, log) {
			t.Errorf("client %d has %d facts, the log %d", i, len(f.facts), len(log))
		}
		flew += f.flew
	}
	t.Logf("%d connections, %d facts, %d pieces of text that flowed", breaks.Load(), len(all), flew)
	if flew == 0 {
		t.Error("no text flowed")
	}
}

// recorded is a stream's bytes as one client got them, with the whole of the event that
// begins with until.
func (b *bench) recorded(path string, until string) []byte {
	resp, err := http.Get(b.addr + path)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	var all []byte
	buf := make([]byte, 4096)
	for {
		if _, last, begun := strings.Cut(string(all), until); begun && strings.Contains(last, "\n\n") {
			return all
		}
		n, err := resp.Body.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			b.Fatal(err)
		}
	}
}

// replay answers with bytes that end somewhere, and tells when they are read.
type replay struct {
	bytes []byte
	over  func()
}

func (r replay) RoundTrip(*http.Request) (*http.Response, error) {
	end := readerFunc(func([]byte) (int, error) { r.over(); return 0, io.EOF })
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(io.MultiReader(bytes.NewReader(r.bytes), end))}, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestTenThousandCuts cuts a recorded stream at 10,000 places. What a client has
// there, and what the server gives it behind its cursor, are together every fact
// once; the text is a beginning of the answer.
// Guarantee: L1, L2.
func TestTenThousandCuts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	b := newBench(t, memory.Open(memory.Options{}), feed.Options{Pace: time.Millisecond}, 0)
	b.Add(feedtest.IDs("a"), feedtest.Note(0))
	done := make(chan []byte, 1)
	go func() { done <- b.recorded("/v1/sessions/sess_a/stream", "event: turn.completed") }()
	b.story(seed, 60, 2*time.Millisecond)
	stream := <-done
	log := feedtest.Log(t, b.st, func(e event.Envelope) bool { return e.IDs.Session == "sess_a" })
	whole, have := b.whole(stream)
	rest := b.rests(t, have[len(whole)].cursor, len(log))
	cuts := 10000
	if raceEnabled {
		cuts = 1000
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for range cuts {
		n := 0
		for e, err := range cut(t, stream[:random.IntN(len(stream)+1)]) {
			if err != nil {
				break
			}
			if e.Type != whole[n].Type || e.Cursor != whole[n].Cursor || string(e.Data) != string(whole[n].Data) {
				t.Fatalf("event %d is another one in a cut stream", n)
			}
			n++
		}
		at := have[n]
		if got := append(at.facts[:len(at.facts):len(at.facts)], rest(at.cursor)...); !slices.Equal(got, log) {
			t.Fatalf("cut behind %d events: together it is %d facts of %d", n, len(got), len(log))
		}
	}
	t.Logf("%d cuts of %d bytes, %d events, %d facts", cuts, len(stream), len(whole), len(log))
}

// had is what a client has after some events.
type had struct {
	facts  []belay.EventID
	cursor string
}

// whole reads all of a stream and checks the texts that a client puts together:
// each is, after each event, a beginning of its answer.
func (b *bench) whole(stream []byte) (events []client.Event, have []had) {
	f := newFollowing(b.T)
	seen := map[client.Answer][]string{}
	have = append(have, had{})
	cursor := ""
	for e, err := range cut(b.T, stream) {
		if err != nil {
			break
		}
		f.take(e)
		if e.Cursor != "" {
			cursor = e.Cursor
		}
		events, have = append(events, e), append(have, had{f.facts, cursor})
		of, text := f.texts.Of("thread/thr_a")
		seen[of] = append(seen[of], text)
	}
	prefixes(b.T, f, seen)
	if f.flew == 0 {
		b.Error("no text flowed")
	}
	return events, have
}

// cut reads bytes as a client does whose connection ends there.
func cut(t *testing.T, b []byte) iter.Seq2[client.Event, error] {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := client.New("http://server", client.Options{HTTP: &http.Client{Transport: replay{b, cancel}}})
	if err != nil {
		t.Fatal(err)
	}
	return c.Stream(ctx, "/v1/stream", client.StreamOptions{})
}

// rests asks the server once for what is behind each cursor; behind the last
// there is nothing.
func (b *bench) rests(t *testing.T, last string, most int) func(cursor string) []belay.EventID {
	known := map[string][]belay.EventID{last: nil}
	c := b.client(nil)
	return func(cursor string) []belay.EventID {
		if ids, ok := known[cursor]; ok {
			return ids
		}
		since := cursor
		if since == "" {
			since = "start"
		}
		var ids []belay.EventID
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for e, err := range c.Stream(ctx, "/v1/sessions/sess_a/stream", client.StreamOptions{Since: since, Types: "session.*,model.*,runtime.*,turn.*"}) {
			if err != nil {
				t.Fatal(err)
			}
			fact, err := e.Fact()
			if err != nil {
				t.Fatal(err)
			}
			if ids = append(ids, fact.ID()); e.Type == "turn.completed" || len(ids) > most {
				break
			}
		}
		known[cursor] = ids
		return ids
	}
}

func TestRefusalsOfStreamsAreProblems(t *testing.T) {
	b := newBench(t, memory.Open(memory.Options{}), feed.Options{}, 0)
	b.Add(feedtest.IDs("a"), feedtest.Note(0))
	other := feed.Scope{Session: "sess_a"}.Text("rt_other", feed.Cursor{Position: 1})
	for _, c := range []struct {
		path, last string
		code       belay.Code
		field      string
	}{
		{"/v1/sessions/sess_none/stream", "", belay.CodeNotFound, "path id"},
		{"/v1/threads/thr_none/stream", "", belay.CodeNotFound, "path id"},
		{"/v1/runs/run_none/stream", "", belay.CodeNotFound, "path id"},
		{"/v1/sessions/se%20ss/stream", "", belay.CodeBadID, "path id"},
		{"/v1/stream?types=*", "", belay.CodeUsage, "query types"},
		{"/v1/stream?since=99", "", belay.CodeBadCursor, "query since"},
		{"/v1/stream?since=x", "", belay.CodeBadCursor, "query since"},
		{"/v1/stream?since=now", other, belay.CodeBadCursor, "header Last-Event-ID"},
		{"/v1/sessions/sess_a/stream?since=" + other, "", belay.CodeBadCursor, "query since"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.addr+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.last != "" {
			r.Header.Set("Last-Event-ID", c.last)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			Code  belay.Code
			Field string
		}
		err = json.NewDecoder(resp.Body).Decode(&p)
		_ = resp.Body.Close()
		if err != nil || p.Code != c.code || p.Field != c.field || resp.StatusCode < 400 {
			t.Errorf("%s: %d %+v %v", c.path, resp.StatusCode, p, err)
		}
	}
	for _, err := range b.client(nil).Stream(t.Context(), "/v1/sessions/sess_none/stream", client.StreamOptions{}) {
		if belay.CodeOf(err) != belay.CodeNotFound {
			t.Errorf("the client says %v", err)
		}
	}
}

// TestAStalledReaderIsCutOff connects and reads nothing while much happens. The
// server gives it up; it comes back and has every fact once.
// Guarantee: L4.
func TestAStalledReaderIsCutOff(t *testing.T) {
	b := newBench(t, memory.Open(memory.Options{}), feed.Options{Ring: 16 << 20}, 200*time.Millisecond)
	ids := feedtest.IDs("a")
	b.Add(ids, feedtest.Note(0))
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.addr, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /v1/sessions/sess_a/stream HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 12<<10)
	for n := 0; b.over.Load() == 0; n++ { // until the connection's buffers are full
		if n < 1500 {
			b.Add(ids, event.RuntimeWarning{Code: "N", Message: large})
		} else if n > 4000 {
			t.Fatal("the server goes on writing to a reader that doesn't read")
		}
		<-time.After(time.Millisecond)
	}
	b.Add(ids, event.TurnCompleted{})
	got := 0
	for e, err := range b.client(nil).Stream(t.Context(), "/v1/sessions/sess_a/stream", client.StreamOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == client.TypeResync {
			t.Fatal("a reader that comes back was told that it is slow")
		}
		if got++; e.Type == "turn.completed" {
			break
		}
	}
	if want := len(feedtest.Log(t, b.st, allFacts)); got != want {
		t.Errorf("it has %d facts of %d", got, want)
	}
}

// TestASnapshotFitsItsCursor: a snapshot has the facts up to its position, each
// once, while others are written.
// Guarantee: L3.
func TestASnapshotFitsItsCursor(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := feedtest.New(t, st, nil)
	ids := feedtest.IDs("a")
	w.AddTo(ids.Session.Stream(), ids, event.SessionCreated{Workspace: "/ws"})
	take := read.Snapshot(st, view.NewFollower(st))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 20_000 { // not without end: facts are written faster than they are folded
			select {
			case <-stop:
				return
			default:
				w.Add(feedtest.IDs([]string{"a", "b"}[i%2]), feedtest.Note(i))
			}
		}
	})
	type taken struct {
		at     store.Position
		events int
	}
	var all []taken
	for range 50 {
		data, at, err := take(t.Context(), feed.Scope{Session: ids.Session})
		if err != nil {
			t.Fatal(err)
		}
		var row view.Session
		if err := json.Unmarshal(data, &row); err != nil {
			t.Fatal(err)
		}
		all = append(all, taken{at, row.Counts.Events})
	}
	close(stop)
	wg.Wait()
	for _, s := range all {
		n := 0
		for _, err := range st.Window(t.Context(), store.Window{Session: ids.Session, Before: s.at + 1}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != s.events {
			t.Errorf("at %d the snapshot has %d facts, the log %d", s.at, s.events, n)
		}
	}
}

// TestTheStreamOfARunEndsWithIt follows a run until its attempt is over.
func TestTheStreamOfARunEndsWithIt(t *testing.T) {
	b := newBench(t, memory.Open(memory.Options{}), feed.Options{}, 0)
	ids := feedtest.IDs("a")
	task := ids.Task.Stream()
	b.AddTo(task, ids, event.TaskAttemptStarted{Number: 1, Thread: ids.Thread, Turn: ids.Turn})
	b.Answer(ids, "hello")
	other := ids
	other.Run, other.Turn = "run_other", "turn_other"
	b.Add(other, event.ModelRequested{Attempt: 1})
	within := ids // as the facts of steps are: they name the turn
	within.Run = ""
	b.Add(within, event.ToolStarted{Name: "x", Attempt: 1})
	b.AddTo(task, ids, event.TaskAttemptCompleted{})
	b.Add(ids, feedtest.Note(2))
	var types []string
	for e, err := range b.client(nil).Stream(t.Context(), "/v1/runs/run_a/stream", client.StreamOptions{Types: "task.*,model.*,tool.*"}) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	cursor := feed.Scope{Session: ids.Session, Run: ids.Run}.Text(b.st.Runtime(), feed.Cursor{Position: store.Position(len(feedtest.Log(t, b.st, allFacts)))})
	for _, o := range []client.StreamOptions{{Types: "turn.*"}, {Since: cursor}} {
		for e, err := range b.client(nil).Stream(t.Context(), "/v1/runs/run_a/stream", o) {
			t.Errorf("%+v: %s %v", o, e.Type, err)
		}
	}
	if got := strings.Join(types, " "); got != "task.attempt.started model.requested model.completed tool.started task.attempt.completed" {
		t.Error(got)
	}
}
