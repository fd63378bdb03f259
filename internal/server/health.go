package server

import (
	"context"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
)

// Health is what /healthz and /readyz answer.
type Health struct {
	Status  string `json:"status"` // ok, draining, failing
	Version string `json:"version,omitempty"`
}

// healthz tells that the process lives.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Health{Status: "ok"})
}

// readyz reports whether the server takes work: it isn't about to end, and its
// store answers.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.draining() {
		writeJSON(w, http.StatusServiceUnavailable, Health{Status: "draining"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	for _, t := range s.all() {
		if _, err := t.Store.End(ctx); err != nil {
			s.c.Log.Error("readyz", "tenant", t.name, "error", err.Error())
			writeJSON(w, http.StatusServiceUnavailable, Health{Status: "failing"})
			return
		}
	}
	writeJSON(w, http.StatusOK, Health{Status: "ok"})
}

// Reloaded records that the configuration was read again, or why it couldn't be.
func (s *Server) Reloaded(ctx context.Context, err error) {
	e := entry{principal: "signal:SIGHUP", command: "reload", code: codeOf(err), at: s.c.Now()}
	if err != nil {
		e.message = err.Error()
		s.c.Log.Error("reload", "code", string(e.code), "error", err.Error())
	} else {
		s.c.Log.Info("reloaded")
	}
	if err := s.audit.record(ctx, e); err != nil {
		s.c.Log.Warn("audit", "error", err.Error())
	}
}

// pprof shows what the process does inside, whichever tenant it does it for: memory
// holds what sessions hold.
func (s *Server) pprof(w http.ResponseWriter, r *http.Request) {
	switch name := strings.TrimSuffix(r.PathValue("name"), "/"); name {
	case "":
		pprof.Index(w, r)
	case "cmdline":
		input.WriteProblem(w, r, belay.Errorf(belay.CodeNotFound, "arguments aren't shown"))
	case "profile":
		http.NewResponseController(w).SetWriteDeadline(time.Time{}) //nolint:errcheck // a connection that can't have one is a test's
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		http.NewResponseController(w).SetWriteDeadline(time.Time{}) //nolint:errcheck // as above
		pprof.Trace(w, r)
	default:
		pprof.Handler(name).ServeHTTP(w, r)
	}
}
