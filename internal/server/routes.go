package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/problem"
	"github.com/belay-run/belay/internal/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
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

// What the queries of these routes may say.
var (
	afterQuery   = []read.Param{read.After}
	actionsQuery = []read.Param{{Name: "sessionId", Doc: "Only those of this session."}, read.After}
)

// plainRoutes are the routes besides the commands and the mounted handlers.
var plainRoutes = []route{
	{pattern: "GET /healthz", scope: auth.Read, open: true, any: true, handle: func(s *Server) http.HandlerFunc { return s.healthz }},
	{pattern: "GET /readyz", scope: auth.Read, open: true, any: true, handle: func(s *Server) http.HandlerFunc { return s.readyz }},
	{pattern: "POST /v1/runs", scope: auth.Work, handle: func(s *Server) http.HandlerFunc { return s.createRun }},
	{pattern: "GET /v1/runs/{id}", scope: auth.Read, query: afterQuery, handle: func(s *Server) http.HandlerFunc { return s.getRun }},
	{pattern: "GET /v1/actions", scope: auth.Read, query: actionsQuery, handle: func(s *Server) http.HandlerFunc { return s.getActions }},
	{pattern: "GET /v1/channels", scope: auth.Read, query: afterQuery, handle: func(s *Server) http.HandlerFunc { return s.getChannels }},
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
	for _, m := range Models {
		mux.HandleFunc("GET "+m.Path(), s.scoped(auth.Read, only(afterQuery, within(answerWithin, s.model(m)))))
	}
	for i, r := range (&read.Reads{}).Routes() {
		h := only(r.Query, s.reads(i))
		if !r.Stream {
			h = within(answerWithin, h)
		}
		mux.HandleFunc(r.Pattern, s.scoped(auth.Read, h))
	}
	return s.admit(methods(mux))
}

// only lets a request through whose query says nothing but what a route knows.
func only(params []read.Param, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := read.Only(r, params); err != nil {
			problem.Write(w, r, err)
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
			problem.Write(w, r, nowhere)
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
			problem.Write(w, r, belay.Errorf(belay.CodeMethod, "the route takes %s", allow).WithHint("GET /v1/openapi.json lists what each route takes"))
			return
		}
		problem.Write(w, r, nowhere)
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
		p, _ := auth.From(r.Context())
		t, err := s.tenant(r.Context(), p.Tenant)
		if err != nil {
			problem.Write(w, r, err)
			return
		}
		route := t.Reads.Routes()[n]
		if id := r.Header.Get(channelHeader); id != "" && route.Stream {
			t.follows(w, r, id, route.Handle)
			return
		}
		route.Handle(w, r)
	}
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("server: " + err.Error()) // answers are plain data
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	w.Write(append(body, '\n')) //nolint:errcheck // the client is gone; there is nobody to tell
}

// CreateRun is what POST /v1/runs takes: a message for a session that is named by
// a key of the caller's.
type CreateRun struct {
	Agent    string `json:"agentId" jsonschema:"who does it: default"`
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
	s.perform(w, r, find("submit_turn"), func(body []byte) ([]byte, error) {
		var in CreateRun
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		if err := named("sessionKey", in.Key); err != nil {
			return nil, err
		}
		if in.Agent != "default" {
			return nil, problem.At("agentId", belay.Errorf(belay.CodeNotFound, "there is no agent %q", problem.Shown(in.Agent)).WithHint("the agent is called default"))
		}
		if strings.TrimSpace(in.Message) == "" {
			return nil, problem.At("message", belay.Errorf(belay.CodeBadCommand, "there is nothing to do: the message is empty").WithHint("say what to do"))
		}
		return json.Marshal(SubmitTurn{Session: sessionOf(in.Key), Text: in.Message, Priority: in.Priority})
	})
}

// RunShown is a run: an attempt of a task.
type RunShown struct {
	Fresh
	Run     belay.RunID     `json:"runId"`
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId"`
	Task    belay.TaskID    `json:"taskId"`
	Turn    belay.TurnID    `json:"turnId"`
	Status  string          `json:"status"`            // queued, running, waiting, ended
	Outcome belay.Outcome   `json:"outcome,omitempty"` // once it has ended
	Reason  string          `json:"reason,omitempty"`
	Summary string          `json:"summary,omitempty"`
}

func (s *Server) getRun(w http.ResponseWriter, r *http.Request) {
	out, err := s.run(r)
	if err != nil {
		problem.Write(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

func (s *Server) run(r *http.Request) (*RunShown, error) {
	id := r.PathValue("id")
	if err := named("path id", id); err != nil {
		return nil, err
	}
	req, f, err := s.reading(r)
	if err != nil {
		return nil, err
	}
	at, err := view.RunByID(r.Context(), req.Store, belay.RunID(id))
	if belay.CodeOf(err) == belay.CodeNotFound {
		err = belay.Errorf(belay.CodeNotFound, "there is no run %s", id).WithHint("the answer of submit_turn and of POST /v1/runs names it; list_tasks lists a session's")
	}
	if err != nil {
		return nil, problem.At("path id", err)
	}
	row, err := view.SessionByID(r.Context(), req.Store, string(at.Session))
	if err != nil {
		return nil, err
	}
	tk, err := req.task(r.Context(), at.Session, at.Task)
	if err != nil {
		return nil, err
	}
	return runShown(f, &row, at, tk), nil
}

// runShown puts together what is known of a run.
func runShown(f Fresh, s *view.Session, at view.RunAt, tk *task.State) *RunShown {
	out := &RunShown{Fresh: f, Run: at.ID, Session: at.Session, Thread: at.Thread, Task: at.Task, Turn: at.Turn, Status: view.Queued}
	if i := slices.IndexFunc(tk.Attempts, func(a task.Attempt) bool { return a.Run == at.ID }); i >= 0 && tk.Attempts[i].Outcome != "" {
		out.Status, out.Outcome = view.Ended, tk.Attempts[i].Outcome
	}
	for _, th := range s.Threads {
		if t := th.Turn; t != nil && t.ID == at.Turn {
			out.Status, out.Outcome, out.Reason, out.Summary = t.Status, cmp.Or(out.Outcome, t.Outcome), t.Reason, t.Summary // the task learns of it a moment later
		}
	}
	return out
}

// position is the query's after.
func position(r *http.Request) (store.Position, error) {
	v := r.URL.Query().Get("after")
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, problem.At("query after", belay.Errorf(belay.CodeBadCursor, "%q is no position", problem.Shown(v)).WithHint("a command's answer has one"))
	}
	return store.Position(n), nil
}

// reading is a request that reads, once its tenant's log has come as far as the
// query's after.
func (s *Server) reading(r *http.Request) (*request, Fresh, error) {
	after, err := position(r)
	if err != nil {
		return nil, Fresh{}, err
	}
	p, _ := auth.From(r.Context())
	t, err := s.tenant(r.Context(), p.Tenant)
	if err != nil {
		return nil, Fresh{}, err
	}
	req := &request{tenant: t, by: p, server: s}
	f, err := req.fresh(r.Context(), after)
	return req, f, err
}

// ActionsShown are open questions.
type ActionsShown struct {
	Fresh
	Actions []Action `json:"actions"` // oldest first
}

func (s *Server) getActions(w http.ResponseWriter, r *http.Request) {
	out, err := s.listActions(r)
	if err != nil {
		problem.Write(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

func (s *Server) listActions(r *http.Request) (*ActionsShown, error) {
	session := r.URL.Query().Get("sessionId")
	if err := id("query sessionId", session); err != nil {
		return nil, err
	}
	req, f, err := s.reading(r)
	if err != nil {
		return nil, err
	}
	if session != "" { // an unknown session must be an error, not an empty list of questions
		s, err := req.session(r.Context(), belay.SessionID(session))
		if err == nil && s.Session == "" {
			err = noSession(belay.SessionID(session))
		}
		if err != nil {
			return nil, problem.At("query sessionId", err)
		}
	}
	all, err := req.actions(r.Context(), belay.SessionID(session))
	return &ActionsShown{f, all}, err
}
