package script

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// chatserver plays a script over Chat Completions: chatserver NAME FILE puts the
// base URL into the variable NAME. The key it wants is sk-tester. With a third argument
// it reads so many tokens, reports how many a request has, and refuses what has more.
// While there is a file FILE.hold it answers nothing. FILE.heard has a line for each
// request: its path, and the first line of what it is about.
func chatserver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: chatserver NAME FILE [TOKENS]")
	}
	script, err := scripted.Load(ts.MkAbs(args[1]))
	ts.Check(err)
	s := &server{p: scripted.New(script), hold: ts.MkAbs(args[1]) + ".hold", heard: ts.MkAbs(args[1]) + ".heard"}
	if len(args) > 2 {
		s.context, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	srv := httptest.NewServer(s)
	ts.Defer(srv.Close)
	ts.Setenv(args[0], srv.URL+"/v1")
}

type server struct {
	p       *scripted.Provider
	context int          // tokens that it reads; 0: it doesn't count
	hold    string       // while there is this file, nothing is answered
	heard   string       // a file with a line for each request
	failed  atomic.Int32 // requests in a row that failed
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer sk-tester" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"no such key"}}`)
		return
	}
	var in struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
			CallID  string `json:"tool_call_id"`
			Calls   []struct {
				ID       string `json:"id"`
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.note(r.URL.Path, in.Messages[1].Content)
	for {
		if _, err := os.Stat(s.hold); err != nil {
			break
		}
		if r.Context().Err() != nil { // the client has left
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	size := 11
	if s.context > 0 {
		size = tokens.Rough(string(body))
	}
	if s.context > 0 && size > s.context {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.","code":"context_length_exceeded"}}`, s.context, size)
		return
	}
	req := model.Request{Attempt: int(s.failed.Load()) + 1}
	for _, m := range in.Messages[1:] {
		x := belay.Message{Role: belay.Role(m.Role)}
		switch {
		case m.Role == "tool":
			x.Parts = append(x.Parts, belay.Part{Result: &belay.ToolResult{ID: belay.CallID(m.CallID), Text: m.Content}})
		case m.Content != "":
			x.Parts = append(x.Parts, belay.Part{Text: m.Content})
		}
		for _, c := range m.Calls {
			x.Parts = append(x.Parts, belay.Part{Call: &belay.ToolCall{ID: belay.CallID(c.ID), Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments)}})
		}
		req.Messages = append(req.Messages, x)
	}
	s.play(w, r, req, size)
}

// note adds what a request is about to the file of those that were heard.
func (s *server) note(path, text string) {
	line, _, _ := strings.Cut(text, "\n")
	f, err := os.OpenFile(s.heard, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, path+"\t"+line) //nolint:errcheck // the story misses it
		f.Close()                       //nolint:errcheck // as above
	}
}

func (s *server) play(w http.ResponseWriter, r *http.Request, req model.Request, size int) {
	say := func(v any) {
		b, _ := json.Marshal(v)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", b)
		w.(http.Flusher).Flush()
	}
	type m = map[string]any
	n := 0
	for c, err := range s.p.Stream(r.Context(), req) {
		if err != nil {
			s.failed.Add(1)
			w.WriteHeader(map[string]int{"rate_limited": 429, "bad_request": 400}[model.AsError(err).Class])
			fmt.Fprintf(w, `{"error":{"message":%q}}`, strings.ReplaceAll(err.Error(), `"`, "'"))
			return
		}
		s.failed.Store(0)
		switch {
		case c.Text != "":
			say(m{"choices": []m{{"delta": m{"content": c.Text}}}})
		case c.Call != nil:
			say(m{"choices": []m{{"delta": m{"tool_calls": []m{{"index": n, "id": c.Call.ID, "function": m{"name": c.Call.Name, "arguments": c.Call.Args}}}}}}})
			n++
		case c.Stop != "":
			say(m{"choices": []m{{"delta": m{}, "finish_reason": c.Stop}}, "usage": m{"prompt_tokens": size, "completion_tokens": 3}})
		}
	}
}

// vendors serves every protocol: vendors NAME puts the server's address, without
// a path, into the variable NAME. A model looks at two files at once, then at a
// list, then completes; the one called flaky is refused once for coming too often,
// and its stream breaks off once; the ones called absent and negative report
// such a usage. Those called thinks, forgets and cuts are thinkers. The key it wants is
// sk-tester.
func vendors(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: vendors NAME")
	}
	srv := httptest.NewServer(modelserver.New(worker))
	ts.Defer(srv.Close)
	ts.Setenv(args[0], srv.URL)
}

func worker(a modelserver.Asked) modelserver.Scene {
	if a.Key != "sk-tester" {
		return modelserver.Scene{Scene: modeltest.Scene{Fail: "auth"}}
	}
	if a.Model == "flaky" && a.N == 1 {
		return modelserver.Scene{Scene: modeltest.Scene{Fail: "rate_limited"}}
	}
	s := modeltest.Scene{Usage: &belay.Usage{Input: 100, Output: 10}, Stop: "tool_calls"}
	switch a.Model {
	case "thinks", "forgets", "cuts":
		return thinker(a)
	case "absent":
		s.Usage = nil
	case "negative":
		s.Usage = &belay.Usage{Input: -100, Output: -10}
	}
	switch a.Results {
	case 0:
		s.Reasoning, s.Text, s.Parts = "Two files first.", "I look at both.", 3
		s.Calls = []model.Call{{Name: "read", Args: `{"path":"a.txt"}`}, {Name: "read", Args: `{"path":"b.txt"}`}}
	case 2:
		if s.Text = "And around."; a.Model == "flaky" && a.N == 3 {
			return modelserver.Scene{Scene: modeltest.Scene{Text: "And ar", Cut: true}}
		}
		s.Calls = []model.Call{{Name: "list", Args: `{}`}}
	default:
		s.Calls = []model.Call{{Name: "complete_task", Args: fmt.Sprintf(`{"summary":"%d results of %s."}`, a.Results, a.Protocol)}}
	}
	return modelserver.Scene{Scene: s}
}

// thinker reads ten lines, each in a step of its own, and completes. It thinks much about
// each. What it reports that it read is what it was sent: all of it; by the name forgets all
// but the reasoning that went back; by the name cuts no more than its server is set to.
func thinker(a modelserver.Asked) modelserver.Scene {
	read := len(a.Body)
	done := a.Results
	switch a.Model {
	case "cuts":
		done = a.N - 1 // it doesn't see them all
	case "forgets":
		read = 8_000
		for _, text := range a.Texts {
			read += 60 + len(text)
		}
	}
	s := modeltest.Scene{Reasoning: strings.Repeat("Is it so? ", 2000), Usage: &belay.Usage{Input: int64(read / 4), Output: 5040, Reasoning: 5000}, Stop: "tool_calls"}
	if a.Model == "cuts" {
		s.Text, s.Usage.Input = strings.Repeat("So it is. ", 1200), min(s.Usage.Input, 8192)
	}
	s.Calls = []model.Call{{Name: "read", Args: fmt.Sprintf(`{"path":"a.txt","offset":%d,"limit":1}`, done+1)}}
	if done >= 10 {
		s.Calls = []model.Call{{Name: "complete_task", Args: fmt.Sprintf(`{"summary":"%d lines read."}`, done)}}
	}
	return modelserver.Scene{Scene: s}
}
