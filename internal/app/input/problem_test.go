package input

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

func TestAnErrorIsAProblemWithCodeFieldAndStatus(t *testing.T) {
	table := []struct {
		err    error
		code   belay.Code
		status int
		field  string
	}{
		{At("settings.mode", belay.Errorf(belay.CodeUsage, "no such mode")), belay.CodeUsage, 400, "settings.mode"},
		{fmt.Errorf("in a frame: %w", At("id", belay.Errorf(belay.CodeBadID, "too long"))), belay.CodeBadID, 400, "id"},
		{At("settings.model", belay.Errorf(belay.CodeNoKey, "it wants a key, and there is none")), belay.CodeNoKey, 400, "settings.model"},
		{belay.Errorf(belay.CodeUnauthorized, "no token"), belay.CodeUnauthorized, 401, ""},
		{belay.Errorf(belay.CodeForbidden, "a viewer"), belay.CodeForbidden, 403, ""},
		{belay.Errorf(belay.CodeNotCovered, "a tool that its parent lacks"), belay.CodeNotCovered, 403, ""},
		{At("input", belay.Errorf(belay.CodeBadInput, "it doesn't fit")), belay.CodeBadInput, 400, "input"},
		{belay.Errorf(belay.CodeUnknownAgent, "a wizard"), belay.CodeUnknownAgent, 404, ""},
		{belay.Errorf(belay.CodeAgentLimit, "one too many"), belay.CodeAgentLimit, 409, ""},
		{store.ErrNotFound, belay.CodeNotFound, 404, ""},
		{&store.OwnedError{Session: "s1"}, belay.CodeOwned, 409, ""},
		{store.ErrStale, belay.CodeOwned, 409, ""},
		{belay.Errorf(belay.CodeUnavailable, "jobs"), belay.CodeUnavailable, 501, ""},
		{errors.New("dial tcp 10.0.0.7: password=hunter2"), belay.CodeInternal, 500, ""},
		{belay.Errorf("made_up", "x"), "made_up", 500, ""},
	}
	for _, c := range table {
		w := httptest.NewRecorder()
		WriteProblem(w, httptest.NewRequest("GET", "/v1/things/1?token=hidden", nil), c.err)
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatalf("%v: %v in %s", c.err, err, w.Body)
		}
		if p.Code != c.code || p.Status != c.status || w.Code != c.status || p.Field != c.field {
			t.Errorf("%v: got %s %d %q", c.err, p.Code, p.Status, p.Field)
		}
		if p.Type != "urn:belay:problem:"+string(c.code) || p.Title == "" || p.Instance != "/v1/things/1" || w.Header().Get("Content-Type") != ProblemMedia {
			t.Errorf("%v: not a whole problem: %s", c.err, w.Body)
		}
		if strings.Contains(w.Body.String(), "hunter2") || strings.Contains(w.Body.String(), "hidden") {
			t.Errorf("it tells what it must not: %s", w.Body)
		}
	}
}

func TestAProblemSaysWhenToComeBack(t *testing.T) {
	w := httptest.NewRecorder()
	WriteProblem(w, httptest.NewRequest("GET", "/v1/runs", nil), After(1500*time.Millisecond, belay.Errorf(belay.CodeTooMany, "slow down")))
	if w.Code != 429 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
}
