package input

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// ProblemMedia is the media type of a problem.
const ProblemMedia = "application/problem+json"

// Problem is an error as a client meets it.
type Problem struct {
	Type     string     `json:"type"`               // "urn:belay:problem:" and the code
	Title    string     `json:"title"`              // of the status
	Status   int        `json:"status"`             // the HTTP status
	Detail   string     `json:"detail,omitempty"`   // what happened, for people
	Instance string     `json:"instance,omitempty"` // the request's path
	Code     belay.Code `json:"code"`               // stable; programs branch on it
	Field    string     `json:"field,omitempty"`    // what in the request is at fault: "message", "settings.mode", "header Origin"
	Hint     string     `json:"hint,omitempty"`     // what to do next

	RetryAfter time.Duration `json:"-"` // also the header of this name; zero is none
}

// ProblemOf is the problem (RFC 9457) that an error is. The status follows from the code; an
// error without one is "internal" and its text stays with the server.
func ProblemOf(err error) *Problem {
	p := &Problem{Code: belay.CodeInternal, Detail: "the server failed; its log says why"}
	owned, isOwned := errors.AsType[*store.OwnedError](err)
	e, known := errors.AsType[*belay.Error](err)
	switch {
	case isOwned:
		p.Code, p.Detail = belay.CodeOwned, "another process drives session "+string(owned.Session)
		p.Hint = "repeat the request when that process has ended"
	case errors.Is(err, store.ErrStale):
		p.Code, p.Detail = belay.CodeOwned, "another process has taken the session over"
		p.Hint = "repeat the request"
	case known:
		p.Code, p.Detail, p.Hint = e.Code, e.Error(), e.Hint
	case errors.Is(err, store.ErrNotFound):
		p.Code, p.Detail = belay.CodeNotFound, "there is nothing of this name here"
	}
	if f, ok := errors.AsType[*FieldError](err); ok {
		p.Field = f.Field
	}
	if l, ok := errors.AsType[*LaterError](err); ok {
		p.RetryAfter = l.After
	}
	p.Status = StatusOf(p.Code)
	p.Title = http.StatusText(p.Status)
	p.Type = "urn:belay:problem:" + string(p.Code)
	return p
}

// WriteProblem answers a request with the problem that err is. Nothing may have been
// written before.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := ProblemOf(err)
	p.Instance = r.URL.EscapedPath()
	body, merr := json.Marshal(p)
	if merr != nil {
		panic("input: " + merr.Error()) // it is plain data
	}
	h := w.Header()
	h.Set("Content-Type", ProblemMedia)
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.RetryAfter+time.Second-1)/time.Second)))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="belay"`)
	}
	w.WriteHeader(p.Status)
	w.Write(append(body, '\n')) //nolint:errcheck // the client is gone; there is nobody to tell
}

// StatusOf is the HTTP status of a code. A code that isn't named here is the
// server's fault.
func StatusOf(c belay.Code) int {
	switch c {
	case belay.CodeUsage, belay.CodeBadID, belay.CodeBadCommand, belay.CodeBadArguments, belay.CodeBadInput, belay.CodeBadCursor, belay.CodeWorkspace, belay.CodeBadConfig,
		belay.CodeRefusedMode, belay.CodeBadManifest, belay.CodeBadTemplate, belay.CodeNoProvider, belay.CodeNoKey, belay.CodeNoPrice, belay.CodeAddress, belay.CodeBadPolicy, belay.CodeBadBoundary, belay.CodeBadScript, belay.CodeNotGoverned, belay.CodeLoginState:
		return http.StatusBadRequest
	case belay.CodeUnauthorized:
		return http.StatusUnauthorized
	case belay.CodeForbidden, belay.CodeOrigin, belay.CodeUntrusted, belay.CodeNotCovered:
		return http.StatusForbidden
	case belay.CodeNotFound, belay.CodeUnknownAction, belay.CodeUnknownAgent:
		return http.StatusNotFound
	case belay.CodeMethod:
		return http.StatusMethodNotAllowed
	case belay.CodeIDConflict, belay.CodeBadState, belay.CodeAlreadyAnswered, belay.CodeConflict, belay.CodeOwned, belay.CodeBusy, belay.CodeExists, belay.CodeCycle, belay.CodeNoLogin,
		belay.CodeAgentStopped, belay.CodeAgentClosed, belay.CodeAgentWaits, belay.CodeAgentTeam, belay.CodeAgentLimit, belay.CodeBadAgent, belay.CodeNoWorktree:
		return http.StatusConflict
	case belay.CodeDeleted, belay.CodeExpired:
		return http.StatusGone
	case belay.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case belay.CodeMedia:
		return http.StatusUnsupportedMediaType
	case belay.CodeHost:
		return http.StatusMisdirectedRequest
	case belay.CodeTooMany:
		return http.StatusTooManyRequests
	case belay.CodeLoginRefused, belay.CodeLoginIssuer:
		return http.StatusBadGateway
	case belay.CodeUnavailable:
		return http.StatusNotImplemented
	case belay.CodeDraining, belay.CodeStoreBusy, belay.CodeStoreReadOnly, belay.CodeStoreFailed:
		return http.StatusServiceUnavailable
	case belay.CodeStoreFull, belay.CodeDiskFull:
		return http.StatusInsufficientStorage
	}
	return http.StatusInternalServerError
}
