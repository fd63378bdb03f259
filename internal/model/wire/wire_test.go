package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/lib/sse"
	"github.com/belay-run/belay/internal/model"
)

// Every sequence of requests has the bytes that encoding from scratch gives.
func TestPrefixesChangeNothing(t *testing.T) {
	add := func(dst []byte, m *belay.Message) ([]byte, error) {
		return append(dst, ","+m.Parts[0].Text...), nil
	}
	head := func(r model.Request) ([]byte, error) {
		if r.Note != "" || r.Messages != nil {
			return nil, errors.New("more than what a head is of")
		}
		return fmt.Append(nil, r.Model, r.System, r.Tools), nil
	}
	tools := [][]model.ToolDef{nil, {{Name: "a"}}, {{Name: "b"}}, {{Name: "a"}, {Name: "b"}}}
	rapid.Check(t, func(t *rapid.T) {
		c := NewPrefixes(lru.New(rapid.SampledFrom([]int{0, 200, 1 << 20}).Draw(t, "budget")))
		talks := make([][]belay.Message, 3)
		var sent [][]byte // what was handed out must not change afterwards
		var was []string
		for n := range rapid.IntRange(1, 40).Draw(t, "requests") {
			i := rapid.IntRange(0, len(talks)-1).Draw(t, "talk")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // rolled back
				talks[i] = slices.Clip(talks[i][:rapid.IntRange(0, len(talks[i])).Draw(t, "to")])
			case 1: // read anew from the log
				fresh := make([]belay.Message, len(talks[i]))
				for j, m := range talks[i] {
					fresh[j] = belay.Text(m.Role, m.Parts[0].Text)
				}
				talks[i] = fresh
			}
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				talks[i] = append(talks[i], belay.Text(belay.RoleUser, fmt.Sprint(i, "/", n, strings.Repeat("x", rapid.IntRange(0, 90).Draw(t, "length")))))
			}
			pieces, err := c.Encode("d", talks[i], add)
			var want []byte
			for j := range talks[i] {
				want, _ = add(want, &talks[i][j])
			}
			got := bytes.Join(pieces, nil)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%v\n%s\n%s", err, got, want)
			}
			r := model.Request{Model: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"), System: rapid.SampledFrom([]string{"s", "t"}).Draw(t, "system"),
				Tools: rapid.SampledFrom(tools).Draw(t, "tools"), Messages: talks[i], Note: "no part of a head"}
			h, err := c.Head("h", r, head)
			if want := fmt.Sprint(r.Model, r.System, r.Tools); err != nil || string(h) != want {
				t.Fatalf("%v\n%s\n%s", err, h, want)
			}
			for _, p := range append(pieces, h) {
				sent, was = append(sent, p), append(was, string(p))
			}
		}
		for i := range sent {
			if string(sent[i]) != was[i] {
				t.Fatal("bytes that were handed out have changed")
			}
		}
	})
}

func TestOnlyWhatIsNewIsEncoded(t *testing.T) {
	n := 0
	add := func(dst []byte, m *belay.Message) ([]byte, error) { n++; return append(dst, 'x'), nil }
	c := NewPrefixes(lru.New(1 << 20))
	var msgs []belay.Message
	for range 1000 {
		msgs = append(msgs, belay.Text(belay.RoleUser, "hello"))
		if _, err := c.Encode("d", msgs, add); err != nil {
			t.Fatal(err)
		}
	}
	if n != 1000 {
		t.Errorf("%d messages were encoded for 1000", n)
	}
}

// TestPrefixesMakeRoom: a conversation that wasn't asked for longest is encoded again,
// and one that was shortened takes no more than what is left of it.
func TestPrefixesMakeRoom(t *testing.T) {
	n := 0
	add := func(dst []byte, m *belay.Message) ([]byte, error) { n++; return append(dst, m.Parts[0].Text...), nil }
	c := NewPrefixes(lru.New(1000))
	talk := func() []belay.Message {
		return []belay.Message{belay.Text(belay.RoleUser, strings.Repeat("x", 300)), belay.Text(belay.RoleUser, strings.Repeat("y", 300))}
	}
	a, b := talk(), talk()
	for i, step := range []struct {
		msgs []belay.Message
		n    int
	}{{a, 2}, {a, 0}, {b, 2}, {a, 2}, {a[:1], 0}, {b, 2}, {a[:1], 0}} {
		n = 0
		if _, err := c.Encode("d", step.msgs, add); err != nil || n != step.n {
			t.Errorf("step %d: %d messages were encoded, want %d; %v", i, n, step.n, err)
		}
	}
}

func TestAHeadIsEncodedOnce(t *testing.T) {
	n := 0
	encode := func(model.Request) ([]byte, error) { n++; return []byte("head"), nil }
	c := NewPrefixes(lru.New(1 << 20))
	r := model.Request{Model: "m", System: "s", Tools: []model.ToolDef{{Name: "a"}}, Messages: []belay.Message{belay.Text(belay.RoleUser, "hello")}}
	for range 100 {
		if h, err := c.Head("d", r, encode); err != nil || string(h) != "head" {
			t.Fatalf("%q %v", h, err)
		}
	}
	if n != 1 {
		t.Errorf("it was encoded %d times", n)
	}
	broken := errors.New("broken")
	r.System = "another"
	if _, err := c.Head("d", r, func(model.Request) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if h, err := c.Head("d", r, encode); err != nil || string(h) != "head" || n != 2 {
		t.Errorf("%q %v, encoded %d times", h, err, n)
	}
}

func TestBodyReadsTheSameTwice(t *testing.T) {
	b := &Body{}
	b.Add([]byte("ab"), nil, []byte("c"), []byte("def"))
	for range 2 {
		got, err := io.ReadAll(iotest.OneByteReader(b.Reader()))
		if err != nil || string(got) != "abcdef" || b.Len() != 6 {
			t.Errorf("%q %v", got, err)
		}
	}
	var w bytes.Buffer
	if n, err := io.Copy(&w, b.Reader()); n != 6 || err != nil || w.String() != "abcdef" {
		t.Errorf("%q %v", w.String(), err)
	}
}

func TestWhatAFailureMeans(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	e := &Endpoint{Name: "far", Key: "sk-secret"}
	for name, c := range map[string]struct {
		status int
		header string
		body   string
		class  string
		after  time.Duration
		says   string
	}{
		"bad request":        {400, "", `{"error":{"message":"no such field"}}`, "bad_request", 0, "far: 400 no such field"},
		"overflow":           {400, "", `{"error":{"message":"too long","code":"context_length_exceeded"}}`, "overflow", 0, "too long"},
		"overflow in words":  {400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 > 1"}}`, "overflow", 0, "too long"},
		"overflow, no words": {400, "", `{"error":{"code":"context_length_exceeded"}}`, "overflow", 0, "context_length_exceeded"},
		"as a type":          {400, "", `{"type":"error","error":{"type":"context_length_exceeded","message":""}}`, "overflow", 0, "context_length_exceeded"},
		"without an object":  {400, "", `{"error":"context_length_exceeded"}`, "overflow", 0, "context_length_exceeded"},
		"beside the error":   {400, "", `{"code":"context_length_exceeded","error":{"message":"Bad Request","type":"invalid_request_error"}}`, "overflow", 0, "Bad Request"},
		"at the top":         {400, "", `{"object":"error","code":"context_length_exceeded","message":null}`, "overflow", 0, "context_length_exceeded"},
		"in a detail":        {400, "", `{"detail":{"code":"context_length_exceeded"}}`, "overflow", 0, "context_length_exceeded"},
		"in a list":          {400, "", `[{"error":{"status":"context_length_exceeded","code":400}}]`, "overflow", 0, "context_length_exceeded"},
		"quota, no words":    {429, "", `{"error":{"code":"insufficient_quota"}}`, "auth", 0, "insufficient_quota"},
		"unauthorised":       {401, "", `{"error":"bad key sk-secret"}`, "auth", 0, "far: 401 bad key [key]"},
		"forbidden":          {403, "", ``, "auth", 0, "far: 403 Forbidden"},
		"not found":          {404, "", `{"detail":"Not Found"}`, "bad_request", 0, "404 Not Found"},
		"timeout":            {408, "", ``, "transient", 0, "408"},
		"conflict":           {409, "", ``, "transient", 0, "409"},
		"too large":          {413, "", ``, "overflow", 0, "413"},
		"rate in seconds":    {429, "Retry-After: 7", `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, "rate_limited", 7 * time.Second, "slow down"},
		"rate as a date":     {429, "Retry-After: Sat, 21 Nov 2026 12:00:30 GMT", ``, "rate_limited", 30 * time.Second, "429"},
		"rate in the past":   {429, "Retry-After: Sat, 21 Nov 2026 11:00:00 GMT", ``, "rate_limited", 0, "429"},
		"milliseconds":       {429, "Retry-After-Ms: 250", ``, "rate_limited", 250 * time.Millisecond, "429"},
		"nonsense to wait":   {429, "Retry-After: soon", ``, "rate_limited", 0, "429"},
		"out of money":       {429, "", `{"error":{"message":"no quota","code":"insufficient_quota"}}`, "auth", 0, "no quota"},
		"server":             {500, "", `<html>oops</html>`, "transient", 0, "<html>oops</html>"},
		"overloaded":         {529, "", `{"error":{"type":"overloaded_error","message":"Overloaded"}}`, "transient", 0, "Overloaded"},
		"filtered":           {400, "", `{"error":{"message":"no","code":"content_filter"}}`, "refused", 0, "no"},
		"sent elsewhere":     {307, "", ``, "bad_request", 0, "the key belongs to this host"},
		"out of credit":      {402, "", `{"type":"error","error":{"type":"billing_error","message":"pay"}}`, "auth", 0, "pay"},
		"filtered in words":  {400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}`, "refused", 0, "blocked"},
		"no key of theirs":   {400, "", `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`, "auth", 0, "API key not valid"},
		"wait in details":    {429, "", `[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"reason":"RATE"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]`, "rate_limited", 34500 * time.Millisecond, "429 quota"},
		"too many tokens":    {400, "", `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, "overflow", 0, "exceeds"},
		"a code is a number": {400, "", `{"error":{"message":"m","code":400,"status":"INVALID_ARGUMENT"}}`, "bad_request", 0, "m"},
	} {
		h := http.Header{}
		if k, v, ok := strings.Cut(c.header, ": "); ok {
			h.Set(k, v)
		}
		f := e.Failure(c.status, h, []byte(c.body), now)
		if f.Class != c.class || f.RetryAfter != c.after || !strings.Contains(f.Message, c.says) || strings.Contains(f.Message, "sk-secret") {
			t.Errorf("%s: %s, %s: %s", name, f.Class, f.RetryAfter, f.Message)
		}
	}
}

func TestAMessageIsBoundedAndWhole(t *testing.T) {
	if got := (&Endpoint{}).Clean(strings.Repeat("ü", 3000)); len(got) > maxMessage+8 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("%d bytes", len(got))
	}
}

// some is a body.
var some = &Body{pieces: [][]byte{[]byte("{}")}}

// at is an endpoint of a test server.
func at(t *testing.T, h http.HandlerFunc) *Endpoint {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Endpoint{Name: "far", Base: u, Client: srv.Client(), Key: "sk-secret"}
}

func TestWhatIsNoStreamIsAnError(t *testing.T) {
	e := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>a login page that repeats sk-secret</html>")
	})
	_, err := e.Post(t.Context(), "/x", http.Header{}, some)
	if f := model.AsError(err); f.Class != "bad_request" || !strings.Contains(f.Message, "no stream") || strings.Contains(f.Message, "sk-secret") {
		t.Error(err)
	}
}

func TestDeadlines(t *testing.T) {
	hang := func(begin bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if begin {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: a\n\n")
				w.(http.Flusher).Flush()
			}
			io.Copy(io.Discard, r.Body) //nolint:errcheck // a server notices that a client leaves once it has read the body
			<-r.Context().Done()
		}
	}
	e := at(t, hang(false))
	e.First = 20 * time.Millisecond
	_, err := e.Post(t.Context(), "/x", http.Header{}, some)
	if f := model.AsError(err); f.Class != "transient" || !strings.Contains(f.Message, "no answer within 20ms") {
		t.Error(err)
	}
	e = at(t, hang(true))
	e.Idle = 20 * time.Millisecond
	a, err := e.Post(t.Context(), "/x", http.Header{}, some)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	got, err := io.ReadAll(a.Body)
	if f := model.AsError(err); f.Class != "transient" || !strings.Contains(f.Message, "nothing came for 20ms") || string(got) != "data: a\n\n" {
		t.Errorf("%q %v", got, err)
	}
	e = at(t, hang(false))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	if _, err := e.Post(ctx, "/x", http.Header{}, some); !errors.Is(err, why) {
		t.Error(err)
	}
}

// TestHalfAKeyIsTakenOutToo: what must not be told goes before a text is cut.
// Guarantee: X13.
func TestHalfAKeyIsTakenOutToo(t *testing.T) {
	const key = "sk-0123456789-0123456789"
	e := Endpoint{Name: "p", Key: key, Scrub: strings.NewReplacer("c2stMDEyMzQ1Njc4OS0", "[hidden]").Replace}
	for _, body := range []string{strings.Repeat("x", maxMessage-len("p: 500 ")-10) + key, strings.Repeat("x", maxMessage-len("p: 500 ")-10) + "c2stMDEyMzQ1Njc4OS0"} {
		if got := e.Failure(500, http.Header{}, []byte(body), time.Time{}).Message; strings.Contains(got, "sk-0") || strings.Contains(got, "c2st") {
			t.Errorf("half a key is left: …%s", got[len(got)-40:])
		}
	}
	if got := e.excerpt(strings.Repeat("y", 195)+key, 200); strings.Contains(got, "sk-") {
		t.Errorf("half a key is left: …%s", got[len(got)-20:])
	}
}

// A session's steps go over one connection, although a reader stops at the
// event that ends the answer and not at the end of the body.
func TestAConnectionServesTheNextRequest(t *testing.T) {
	var made atomic.Int32
	read := make(chan bool) // the end of the body comes after the last event was read
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // a test's request
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: a\n\n")
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "data: [DONE]\n\n")
		w.(http.Flusher).Flush()
		<-read
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	base, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	e := &Endpoint{Name: "far", Base: base, Client: srv.Client()}
	for range 20 {
		a, err := e.Post(t.Context(), "/x", http.Header{}, some)
		if err != nil {
			t.Fatal(err)
		}
		events := sse.NewReader(a.Body, maxEvent)
		for {
			if ev, err := events.Next(); err != nil || string(ev.Data) == "[DONE]" {
				break
			}
		}
		read <- true
		a.Close()
	}
	if n := made.Load(); n > 2 { // a slow machine may miss the moment once
		t.Errorf("20 requests made %d connections", n)
	}
}
