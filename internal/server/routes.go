package server

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
)

// route is a path that isn't a command.
type route struct {
	pattern string // a method and a path
	scope   auth.Scope
	open    bool // it needs no token
	handle  func(*Server) http.HandlerFunc
	query   []read.Param // what its query may say
	any     bool         // it may have any parameters: scrapers add their own
}

// plainRoutes are the routes besides the commands and the mounted handlers.
var plainRoutes = []route{
	{pattern: "GET /healthz", scope: auth.Read, open: true, any: true, handle: func(s *Server) http.HandlerFunc { return s.healthz }},
	{pattern: "GET /readyz", scope: auth.Read, open: true, any: true, handle: func(s *Server) http.HandlerFunc { return s.readyz }},
	{pattern: "POST " + loginRoute, open: true, handle: func(s *Server) http.HandlerFunc { return s.login }},
	{pattern: "POST /v1/runs", scope: auth.Work, handle: func(s *Server) http.HandlerFunc { return s.createRun }},
	{pattern: "GET /v1/openapi.json", scope: auth.Read, handle: func(s *Server) http.HandlerFunc { return s.openapi }},
	{pattern: "GET /metrics", scope: auth.Read, any: true, handle: func(s *Server) http.HandlerFunc { return s.showMetrics }},
	{pattern: "GET /debug/pprof/{name...}", scope: auth.Admin, any: true, handle: func(s *Server) http.HandlerFunc { return s.pprof }},
}

// routes is everything that is answered, behind the gate.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range plainRoutes {
		h := within(answerWithin, r.handle(s))
		if !r.any {
			h = only(r.query, h)
		}
		if !r.open {
			h = s.scoped(r.scope, h)
		}
		mux.HandleFunc(r.pattern, h)
	}
	for _, r := range endlessRoutes {
		mux.HandleFunc(r.pattern, s.scoped(r.scope, only(r.query, r.handle(s))))
	}
	mux.HandleFunc("POST /v1/commands/{name}", only(nil, within(answerWithin, s.command)))
	for _, r := range s.c.Reads {
		d := answerWithin
		if r.Out == nil {
			d = documentWithin
		}
		mux.HandleFunc("GET "+r.Route(), s.scoped(auth.Read, only(append(slices.Clone(r.Query), read.After), within(d, s.read(r)))))
	}
	for i, r := range (&read.Reads{}).Routes() {
		h := only(r.Query, s.reads(i))
		if !r.Stream() {
			h = within(answerWithin, h)
		}
		mux.HandleFunc(r.Pattern, s.scoped(auth.Read, h))
	}
	s.console.mount(mux)
	all := s.admit(methods(mux))
	s.mcp = s.newMCP(all)
	return all
}

// only lets a request through whose query says nothing but what a route knows.
func only(params []read.Param, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := read.Only(r, params); err != nil {
			input.WriteProblem(w, r, err)
			return
		}
		h(w, r)
	}
}

// methods makes problems of what the multiplexer says in plain text or, where it
// would send the client to a path without // and dots, as a page.
func methods(mux *http.ServeMux) http.Handler {
	nowhere := belay.Errorf(belay.CodeNotFound, "there is no such route").WithHint("GET /v1/openapi.json lists them")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !plain(r.URL.EscapedPath()) {
			input.WriteProblem(w, r, nowhere)
			return
		}
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		probe := &statusOnly{header: http.Header{}}
		h.ServeHTTP(probe, r)
		if allow := probe.header.Get("Allow"); probe.status == http.StatusMethodNotAllowed && allow != "" {
			w.Header().Set("Allow", allow)
			input.WriteProblem(w, r, belay.Errorf(belay.CodeMethod, "the route takes %s", allow).WithHint("GET /v1/openapi.json lists what each route takes"))
			return
		}
		input.WriteProblem(w, r, nowhere)
	})
}

// plain reports whether a path has no empty parts and no dots for parts.
func plain(p string) bool {
	clean := path.Clean(p)
	return p == clean || p == clean+"/"
}

// statusOnly takes an answer that isn't sent.
type statusOnly struct {
	header http.Header
	status int
}

func (p *statusOnly) Header() http.Header         { return p.header }
func (p *statusOnly) WriteHeader(status int)      { p.status = status }
func (p *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// reads hands a request to the n-th of its tenant's reads.
func (s *Server) reads(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t, _, err := s.caller(r)
		if err != nil {
			input.WriteProblem(w, r, err)
			return
		}
		route := t.Reads.Routes()[n]
		if route.Stream() {
			narrow(r)
			again, end, err := s.endless(r)
			if err != nil {
				s.forbid(w, r, err)
				return
			}
			defer end()
			r = again
		}
		if id := r.Header.Get(app.ChannelHeader); id != "" && route.Stream() {
			t.follows(w, r, id, route.Handle)
			return
		}
		route.Handle(w, r)
	}
}

// stream counts a request among the answers without an end that its token may have at
// once.
func (s *Server) stream(r *http.Request) (leave func(), err error) {
	p, _ := auth.From(r.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streaming[p.TokenID] >= s.c.Streams {
		return nil, input.After(time.Second, belay.Errorf(belay.CodeTooMany, "the token has %d streams already", s.c.Streams).
			WithHint("end one that isn't needed, or follow all sessions with GET /v1/stream; belay serve --streams N allows more"))
	}
	s.streaming[p.TokenID]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.streaming[p.TokenID]--; s.streaming[p.TokenID] == 0 {
			delete(s.streaming, p.TokenID)
		}
	}, nil
}

// endless is a request for a stream that ends when its token isn't good any more. end has
// to be called.
func (s *Server) endless(r *http.Request) (_ *http.Request, end func(), err error) {
	leave, err := s.stream(r)
	if err != nil {
		return r, nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	if token, err := bearer(r); err == nil { // nothing comes here without one
		go s.whileGood(ctx, token, cancel)
	}
	return r.WithContext(ctx), func() { cancel(); leave() }, nil
}

// whileGood ends a request when its token isn't good any more.
func (s *Server) whileGood(ctx context.Context, token string, end func()) {
	again := time.NewTicker(s.pace.beat)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		if _, err := s.c.Tokens.Principal(token); belay.CodeOf(err) == belay.CodeUnauthorized {
			end()
			return
		}
	}
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // people read commands in it
	if err := enc.Encode(v); err != nil {
		panic("server: " + err.Error()) // answers are plain data
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	w.Write(body.Bytes()) //nolint:errcheck // the client is gone
}

// read answers a row of the table of reads.
func (s *Server) read(row app.Read) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t, p, err := s.caller(r)
		var out any
		if err == nil {
			out, err = row.Do(r.Context(), &app.Call{Runtime: t.Runtime, By: p, Remote: true}, read.QueryOf(r))
		}
		if err != nil {
			input.WriteProblem(w, r, err)
			return
		}
		if d, ok := out.(*app.Document); ok {
			s.writeDocument(w, r, d)
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}

// writeDocument answers with a document. One that fails after its beginning is cut off,
// so that no client takes the part for the whole.
func (s *Server) writeDocument(w http.ResponseWriter, r *http.Request, d *app.Document) {
	out := &documentWriter{w: w, d: d}
	err := d.Write(r.Context(), out)
	switch {
	case err == nil:
	case !out.begun:
		input.WriteProblem(w, r, err)
	default:
		s.c.Log.Error("document", "path", r.URL.Path, "error", err.Error())
		panic(http.ErrAbortHandler)
	}
}

// documentWriter begins an answer with the first bytes of a document.
type documentWriter struct {
	w     http.ResponseWriter
	d     *app.Document
	begun bool
}

func (d *documentWriter) Write(b []byte) (int, error) {
	if !d.begun {
		d.begun = true
		d.w.Header().Set("Content-Type", d.d.Media)
		if d.d.Name != "" {
			d.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": d.d.Name}))
		}
	}
	return d.w.Write(b)
}

// CreateRun is what POST /v1/runs takes: a message for a session that is named by
// a key of the caller's.
type CreateRun struct {
	Agent    string `json:"agentId" jsonschema:"who does it: default, or an agent that is kept as a file"`
	Key      string `json:"sessionKey" jsonschema:"names the session: a new key makes a new one"`
	Message  string `json:"message" jsonschema:"what to do"`
	Priority string `json:"priority,omitempty" jsonschema:"low, normal, high"`
}

// sessionOf is the session that a key names.
func sessionOf(key string) belay.SessionID {
	return belay.SessionID(belay.DeriveID(belay.PrefixSession, belay.StreamID("sessionKey/"+key), 0, 0))
}

// createRun is submit_turn in other words.
func (s *Server) createRun(w http.ResponseWriter, r *http.Request) {
	s.perform(w, r, app.Find(s.c.Commands, "submit_turn"), func(body []byte) ([]byte, error) {
		var in CreateRun
		if err := input.Decode(body, &in); err != nil {
			return nil, err
		}
		if err := input.Named("sessionKey", in.Key); err != nil {
			return nil, err
		}
		if in.Agent == "" {
			return nil, input.At("agentId", belay.Errorf(belay.CodeBadCommand, "it names no agent").WithHint("default, or the name of an agent that is kept as a file"))
		}
		if strings.TrimSpace(in.Message) == "" {
			return nil, input.At("message", belay.Errorf(belay.CodeBadCommand, "there is nothing to do: the message is empty").WithHint("say what to do"))
		}
		turn := map[string]any{"sessionId": sessionOf(in.Key), "text": in.Message, "priority": in.Priority}
		if in.Agent != "default" { // which is the one of the session's settings
			turn["settings"] = map[string]string{"agent": in.Agent}
		}
		return json.Marshal(turn)
	})
}
