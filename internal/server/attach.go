package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/store"
)

// endlessRoutes are the routes whose answer has no end, besides the streams.
var endlessRoutes = []route{
	{pattern: attachRoute, scope: auth.Read, query: []read.Param{{Name: "offset"}, {Name: "readOnly"}}, handle: func(s *Server) http.HandlerFunc { return s.attach }},
	{pattern: "POST /mcp", scope: auth.Read, handle: func(s *Server) http.HandlerFunc { return s.serveMCP }},
	{pattern: "GET /mcp", scope: auth.Read, handle: func(s *Server) http.HandlerFunc { return s.serveMCP }},
	{pattern: "DELETE /mcp", scope: auth.Read, handle: func(s *Server) http.HandlerFunc { return s.serveMCP }},
}

const (
	attachRoute    = "GET /v1/sessions/{id}/processes/{process}/attach"
	bearerProtocol = "bearer." // begins the offer that brings a token
	maxAttached    = 256       // at once, of all tenants
)

// attachTimings is how an attachment spends its time.
type attachTimings struct {
	beat  time.Duration // between two looks whether the client lives and its token is good, also of a stream
	idle  time.Duration // without a byte from or to the program, after which it ends
	stall time.Duration // that a client may take nothing
	close time.Duration // that a client has to say goodbye
	taken time.Duration // that a program has to take an input
}

var usualPace = attachTimings{beat: 15 * time.Second, idle: time.Hour, stall: 30 * time.Second, close: 2 * time.Second, taken: 10 * time.Second}

// upgrades reports whether a request asks for WebSocket.
func upgrades(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// offers are what a request offers to speak, as its headers list it.
func offers(r *http.Request) (all []string) {
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for one := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(one))
		}
	}
	return all
}

// offered is the token that a WebSocket's request brings as an offer to speak
// "bearer.TOKEN": a page can't set the Authorization of such a request. It counts
// on the one route that is of WebSocket, once, and beside no other token.
func offered(r *http.Request) (token string, err error) {
	if !upgrades(r) || !strings.HasPrefix(r.URL.Path, "/v1/sessions/") || !strings.HasSuffix(r.URL.Path, "/attach") {
		return "", nil
	}
	for _, one := range offers(r) {
		text, is := strings.CutPrefix(one, bearerProtocol)
		if !is {
			continue
		}
		if token != "" || text == "" || len(r.Header.Values("Authorization")) > 0 {
			return "", input.At("header Sec-WebSocket-Protocol", belay.Errorf(belay.CodeUnauthorized, "the request must bring one token, in one place").WithHint("in the header Authorization, or as an offer where no header can be set"))
		}
		token = text
	}
	return token, nil
}

// attach answers a request to follow a program and to type on it.
func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	leave, err := s.attaching()
	if err != nil {
		s.forbid(w, r, err)
		return
	}
	defer leave()
	left, err := s.stream(r)
	if err != nil {
		s.forbid(w, r, err)
		return
	}
	defer left()
	a, err := s.attachment(r)
	if err == nil && a.writes {
		err = a.note(r.Context(), "attach", fmt.Sprintf("%s of %s%s", a.id, a.sid, a.tokenName()))
	}
	if err != nil {
		s.forbid(w, r, err)
		return
	}
	// The gate has looked at the origin: pages that were named with --origin are
	// let in, which this library would not.
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{client.AttachProtocol}, InsecureSkipVerify: true})
	if err == nil {
		a.conn = c
		err = a.serve(r.Context())
	}
	s.c.Log.Info("detached", "tenant", a.tenant.name, "principal", a.By.String(), "process", string(a.id), "typed", a.brought, "shown", a.shown, "because", err)
	if a.writes {
		a.note(context.WithoutCancel(r.Context()), "detach", fmt.Sprintf("%s of %s, %d bytes were typed", a.id, a.sid, a.brought)) //nolint:errcheck // it is logged
	}
}

// attaching counts an attachment, unless the server is about to end or has enough.
func (s *Server) attaching() (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.working(); err != nil {
		return nil, err
	}
	if s.attachedNow >= maxAttached {
		return nil, belay.Errorf(belay.CodeTooMany, "%d clients are attached to programs already", s.attachedNow).WithHint("try again when one has left, or read with belay process output")
	}
	s.attachedNow++
	s.attached.Add(1)
	return func() {
		s.mu.Lock()
		s.attachedNow--
		s.mu.Unlock()
		s.attached.Done()
	}, nil
}

// note records that a client that may type came or left.
func (a *attachment) note(ctx context.Context, command, message string) error {
	a.server.c.Log.Info("command", "tenant", a.tenant.name, "principal", a.By.String(), "command", command, "session", string(a.sid), "process", string(a.id))
	err := a.tenant.audit.record(ctx, entry{principal: a.By.String(), command: command, code: app.CodeAccepted, message: message, at: a.server.c.Now()})
	if err != nil {
		a.tenant.log.Warn("audit", "error", err.Error())
	}
	return err
}

// tokenName is what a person calls the client's token: one that the terminal makes
// for itself is gone afterwards, and its name tells whose it was.
func (a *attachment) tokenName() string {
	all, err := a.server.c.Tokens.List()
	i := slices.IndexFunc(all, func(t auth.Token) bool { return t.ID == a.By.TokenID })
	if err != nil || i < 0 || all[i].Name == "" {
		return ""
	}
	return ", " + all[i].Name
}

// attachment finds what a request wants to be attached to.
func (s *Server) attachment(r *http.Request) (*attachment, error) {
	if !upgrades(r) {
		return nil, input.At("header Upgrade", belay.Errorf(belay.CodeUsage, "this route speaks WebSocket").WithHint("belay attach PROCESS"))
	}
	if !slices.Contains(offers(r), client.AttachProtocol) {
		return nil, input.At("header Sec-WebSocket-Protocol", belay.Errorf(belay.CodeUsage, "the request doesn't offer to speak %s", client.AttachProtocol).WithHint("Sec-WebSocket-Protocol: %s", client.AttachProtocol))
	}
	offset, readOnly, err := attachQuery(r)
	if err != nil {
		return nil, err
	}
	t, p, err := s.caller(r)
	if err != nil {
		return nil, err
	}
	a := &attachment{Call: app.Call{Runtime: t.Runtime, By: p, Remote: true, Command: "write_process_stdin"}, tenant: t, server: s, pace: s.pace, sid: belay.SessionID(r.PathValue("id")),
		id: belay.ProcessID(r.PathValue("process")), offset: offset, writes: p.Role.May(auth.Work) && !readOnly, typed: newTyped()}
	if a.token, err = bearer(r); err != nil {
		return nil, err
	}
	if err := input.Named("path process", string(a.id)); err != nil {
		return nil, err
	}
	return a, a.find(r.Context())
}

// attachQuery is where a request begins, and whether it only reads. A negative
// offset counts from what is there.
func attachQuery(r *http.Request) (offset int64, readOnly bool, err error) {
	q := r.URL.Query()
	if text := q.Get("offset"); text != "" {
		if offset, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, false, input.At("query offset", belay.Errorf(belay.CodeUsage, "%q is no whole number of bytes", input.Shown(text)).WithHint("offset=0 is the beginning, offset=-4096 the last 4 KB"))
		}
	}
	if text := q.Get("readOnly"); text != "" {
		if readOnly, err = strconv.ParseBool(text); err != nil {
			return 0, false, input.At("query readOnly", belay.Errorf(belay.CodeUsage, "%q is neither true nor false", input.Shown(text)).WithHint("readOnly=true"))
		}
	}
	return offset, readOnly, nil
}

// find looks the program up in the session's threads.
func (a *attachment) find(ctx context.Context) error {
	s, err := a.Known(ctx, a.sid)
	if err != nil {
		return input.At("path id", err)
	}
	th, err := a.ThreadOfProcess(ctx, s, a.id)
	if err != nil {
		return err
	}
	if a.stream = th.Stream(); th != "" {
		if begun, err := a.begun(ctx); begun || err != nil {
			return err
		}
	}
	return input.At("path process", belay.Errorf(belay.CodeNotFound, "no process %s is or was in the session", a.id).At(string(a.sid)).WithHint("get_thread_read lists what runs in a thread"))
}

// begun looks for the fact of the program's beginning in the stream.
func (a *attachment) begun(ctx context.Context) (bool, error) {
	for rec, err := range a.Store.Window(ctx, store.Window{Stream: a.stream}) {
		if err != nil {
			return false, err
		}
		if p, ok := rec.Event.Data.(event.ProcessStarted); ok && rec.Event.IDs.Process == a.id {
			a.started, a.at = p, rec.Position
			return true, nil
		}
	}
	return false, nil
}

// checked reports whether the client's token is still good for what it does.
func (a *attachment) checked() error {
	p, err := a.server.c.Tokens.Principal(a.token)
	if err == nil && p != a.By {
		err = belay.Errorf(belay.CodeUnauthorized, "the token isn't what it was")
	}
	return err
}

// Why an attachment ends, besides the errors that its client gets.
var (
	errOver   = errors.New("the program has ended")
	errGone   = errors.New("the client has gone")
	errSilent = errors.New("the client doesn't answer")
	errIdle   = errors.New("nothing came for too long")
)
