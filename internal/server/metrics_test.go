package server

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestPromtoolFindsNothing gives the figures of a server that has worked, waited
// and refused to promtool check metrics.
func TestPromtoolFindsNothing(t *testing.T) {
	needs.Program(t, "promtool")
	r := newRig(t, asks)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	told, q := question(t, r, owner)
	r.command("respond_action", owner, `{"actionId":"`+string(q.ID)+`","decision":"answer","message":"red"}`).told(t)
	r.until(owner, told.Run, "ended")
	r.command("create_job", owner, "{}")
	r.command("get_session", owner, `{"sessionId":"\"quoted\""}`)
	r.do("GET", "/v1/actions", "belay_wrong", "")
	a := r.do("GET", "/metrics", owner, "")
	for _, name := range []string{"belay_turns_total", "belay_commands_total", "belay_requests_refused_total", "belay_command_duration_seconds_bucket"} {
		if !strings.Contains(string(a.body), "\n"+name) {
			t.Errorf("there is no %s in\n%s", name, a.body)
		}
	}
	cmd := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	cmd.Stdin = bytes.NewReader(a.body)
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool: %v\n%s\n%s", err, out, a.body)
	}
}
