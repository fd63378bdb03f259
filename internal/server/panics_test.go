package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// locked is a text that several goroutines write.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestAHandlerThatPanicsAnswersAndIsSeen: the client has a problem or, in the middle of a
// document, an end that isn't one; operators have a line of the log and a figure, and the
// command is recorded like each that was refused.
// Guarantee: V9, V54.
func TestAHandlerThatPanicsAnswersAndIsSeen(t *testing.T) {
	var log locked
	w := newWorld(t)
	r := w.serve(t, once, func(c *Config) {
		c.Log = slog.New(slog.NewJSONHandler(&log, nil))
		c.Commands = append(c.Commands, app.Define("explode", auth.Work, true, "Explode.", func(context.Context, *app.Call, *struct{}) (*app.Result, error) {
			panic("it exploded")
		}))
		c.Reads = append(c.Reads, app.DefineRead(app.Read{Name: "burst", Path: "/v1/burst", Doc: "Burst."}, func(context.Context, *app.Call, app.Fresh, app.Query) (*app.Result, error) {
			panic("it burst")
		}), app.DefineDocument(app.Read{Name: "tear", Path: "/v1/tear", Doc: "Tear."}, func(context.Context, *app.Call, app.Fresh, app.Query) (*app.Document, error) {
			return &app.Document{Media: "text/plain", Write: func(_ context.Context, w io.Writer) error {
				io.WriteString(w, strings.Repeat("x", 100_000)) //nolint:errcheck // it panics next
				panic("it tore")
			}}, nil
		}))
	})
	owner := r.token(auth.Owner, auth.DefaultTenant)
	for _, a := range []answer{r.command("explode", owner, "{}"), r.do("GET", "/v1/burst", owner, "")} {
		if a.status != http.StatusInternalServerError || a.Code != belay.CodeInternal || strings.Contains(string(a.body), "burst") && a.Instance != "/v1/burst" {
			t.Errorf("%d %s", a.status, a.body)
		}
		if a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("headers %v", a.header)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/v1/tear", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+owner)
	if resp, err := r.client.Do(req); err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil {
			t.Error("a document that was torn looks whole")
		}
	}
	if a := r.do("GET", "/metrics", owner, ""); !strings.Contains(string(a.body), "\nbelay_panics_total 3\n") {
		t.Errorf("the figures don't have them: %s", a.body)
	}
	r.stop()
	lines := 0
	for line := range strings.Lines(log.String()) {
		var of struct{ Level, Msg, Path, Error, Stack string }
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			t.Fatal(err)
		}
		if of.Msg == "panic" && of.Level == "ERROR" && of.Path != "" && of.Error != "" && strings.Contains(of.Stack, "panics_test.go") {
			lines++
		}
	}
	if lines != 3 {
		t.Errorf("%d lines of the log: %s", lines, log.String())
	}
	if facts, _ := refusalsIn(t, w.stores[auth.DefaultTenant].Open(memory.Options{})); facts["explode internal"] != 1 {
		t.Errorf("recorded: %v", facts)
	}
}
