package server

import (
	"net/http"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/access"
	"github.com/belay-run/belay/internal/app/input"
)

const loginRoute = "/v1/login"

// Login is what POST /v1/login takes: a code that belay console printed.
type Login struct {
	Code string `json:"code" jsonschema:"the code; it counts once, and for five minutes"`
}

// maxLogin bounds the body, in bytes.
const maxLogin = 1 << 10

// login trades a code for a token. Like any request without a token it may not come often.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var in Login
	err := error(nil)
	if !s.strangers.take(addressOf(r), s.c.Now()) {
		err = tooManyStrangers()
	}
	var body []byte
	if err == nil {
		body, err = readBody(w, r, maxLogin)
	}
	if err == nil {
		err = input.Decode(body, &in)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	text, made, err := s.c.Tokens.Trade(in.Code)
	if err != nil {
		s.refuse(w, r, input.At("code", err))
		return
	}
	out := &access.TokenCreated{Text: text, TokenShown: access.Shown(made)}
	if err := s.audit.record(r.Context(), entry{principal: "token:" + made.ID, command: "login", code: app.CodeAccepted, message: out.Subject(), at: s.c.Now()}); err != nil {
		s.c.Log.Warn("audit", "error", err.Error())
	}
	writeJSON(w, http.StatusOK, out)
}

func tooManyStrangers() error {
	return input.After(time.Second, belay.Errorf(belay.CodeTooMany, "too many requests without a good token").WithHint("send a good token, and wait a second"))
}
