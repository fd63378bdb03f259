package server

import (
	"net/http"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/auth"
)

// maxKeyBytes bounds an Idempotency-Key.
const maxKeyBytes = 128

// command answers POST /v1/commands/{name}.
func (s *Server) command(w http.ResponseWriter, r *http.Request) {
	c := app.Find(s.c.Commands, r.PathValue("name"))
	if c == nil {
		s.forbid(w, r, input.At("path name", belay.Errorf(belay.CodeNotFound, "there is no command %q", input.Shown(r.PathValue("name"))).WithHint("GET /v1/openapi.json lists them")))
		return
	}
	s.perform(w, r, c, nil)
}

// perform lets a command through if its caller may, does it, records it and
// answers. change, if it isn't nil, makes the command's body of another one.
func (s *Server) perform(w http.ResponseWriter, r *http.Request, c *app.Command, change func([]byte) ([]byte, error)) {
	if err := auth.Check(r.Context(), c.Scope); err != nil {
		s.forbid(w, r, err)
		return
	}
	begun := s.c.Now()
	call, body, err := s.call(w, r, c, change)
	var out any
	if err == nil {
		out, err = c.Do(r.Context(), call, body)
		err = withHint(c, err)
	}
	s.metrics.command(c.Name, string(codeOf(err)), s.c.Now().Sub(begun))
	if err == nil {
		writeJSON(w, http.StatusOK, out)
		return
	}
	if belay.CodeOf(err) == belay.CodeInternal {
		s.c.Log.Error("command", "command", c.Name, "error", err.Error())
	}
	if call == nil { // it didn't come as far as a tenant
		s.forbid(w, r, err)
		return
	}
	input.WriteProblem(w, r, err)
}

func codeOf(err error) belay.Code {
	if err == nil {
		return app.CodeAccepted
	}
	return input.ProblemOf(err).Code
}

// call makes a call of a request.
func (s *Server) call(w http.ResponseWriter, r *http.Request, c *app.Command, change func([]byte) ([]byte, error)) (*app.Call, []byte, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKeyBytes || len(r.Header.Values("Idempotency-Key")) > 1 {
		return nil, nil, input.At("header Idempotency-Key", belay.Errorf(belay.CodeBadCommand, "the key must be one of at most %d bytes", maxKeyBytes).WithHint("send one header, with a key such as a UUID"))
	}
	body, err := readBody(w, r, c.BodyLimit())
	if err != nil {
		return nil, nil, err
	}
	if change != nil {
		if body, err = change(body); err != nil {
			return nil, nil, err
		}
	}
	if c.Mutates {
		if err := s.working(); err != nil {
			return nil, nil, err
		}
	}
	t, p, err := s.caller(r)
	if err != nil {
		return nil, nil, err
	}
	return &app.Call{Runtime: t.Runtime, By: p, Remote: true, Key: key, Channel: r.Header.Get(app.ChannelHeader)}, body, nil
}

// withHint adds a hint to a refusal that has none: to look at what the command
// takes.
func withHint(c *app.Command, err error) error {
	p := input.ProblemOf(err)
	if p.Hint != "" || p.Status >= http.StatusInternalServerError || p.RetryAfter > 0 {
		return err
	}
	return input.At(p.Field, app.WithHint(err, "GET /v1/openapi.json describes "+c.Name))
}
