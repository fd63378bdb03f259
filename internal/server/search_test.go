package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
)

// TestWordsAreFollowed: what a turn says is folded for searches before anybody
// searches, and found.
// Guarantee: L18.
func TestWordsAreFollowed(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	told := r.command("submit_turn", owner, `{"text":"feed the zebra","sessionId":"s1","turnId":"t1"}`).told(t)
	ended := r.until(owner, told.Run, "ended")
	tn, err := r.s.tenant(t.Context(), auth.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for lag := int64(1); lag > 0; <-again.C {
		if lag, err = tn.Reads.Words.Lag(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []string{"zebra", "done"} { // of the person, of the agent's end
		var found read.Found
		a := r.do("GET", fmt.Sprintf("/v1/search?q=%s&after=%d", q, ended.Position), owner, "")
		if err := json.Unmarshal(a.body, &found); err != nil || a.status != http.StatusOK {
			t.Fatalf("%d %s %v", a.status, a.body, err)
		}
		if len(found.Hits) != 1 || found.Hits[0].Session != "s1" || found.Stale || found.Position < ended.Position {
			t.Errorf("%s: %s", q, a.body)
		}
	}
	var theirs read.Found
	a := r.do("GET", "/v1/search?q=zebra", r.token(auth.Viewer, "other"), "")
	if err := json.Unmarshal(a.body, &theirs); err != nil || a.status != http.StatusOK || len(theirs.Hits) != 0 {
		t.Errorf("another tenant finds %d %s", a.status, a.body)
	}
}
