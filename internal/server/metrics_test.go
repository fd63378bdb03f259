package server

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/view/story"
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
	promtool(t, a.body)
}

func promtool(t *testing.T, figures []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	cmd.Stdin = bytes.NewReader(figures)
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool: %v\n%s\n%s", err, out, figures)
	}
}

// TestAgentsBeyond200AreOneFigure has 203 agents, of which the first ones have the most runs.
func TestAgentsBeyond200AreOneFigure(t *testing.T) {
	needs.Program(t, "promtool")
	fold := story.NewAgentsFold(time.Time{}, time.Time{})
	for i := range 203 {
		for run := range 1 + max(0, 200-i) {
			of := fmt.Sprintf("a%03d", i)
			fold.Apply(event.Envelope{Data: event.TurnCompleted{Stats: event.TurnStats{Agent: of, Outcome: belay.Completed, ActiveMS: int64(1000 * (run + 1)), Usage: belay.Usage{Input: 100, Output: 7, Reported: i != 1}}}})
		}
	}
	var b bytes.Buffer
	(&exposition{w: &b}).agents(story.Most(fold.Sum(), maxAgents))
	health := make([]agents.AgentFile, 203)
	for i := range health {
		health[i] = agents.AgentFile{Agent: &agentfile.Agent{Name: fmt.Sprintf("a%03d", i), Source: agentfile.Source{Trusted: true}}, Health: agents.AgentHealth{Status: []string{"healthy", "unhealthy"}[i%2]}}
	}
	(&exposition{w: &b}).health(health)
	promtool(t, b.Bytes())
	for _, line := range []string{
		`belay_agent_runs_total{agent="a000",outcome="completed"} 201`, `belay_agent_run_seconds{agent="a000",quantile="0.50"} 101`, `belay_agent_run_seconds_count{agent="a000"} 201`,
		`belay_agent_runs_total{agent="other",outcome="completed"} 3`, `belay_agent_run_seconds_sum{agent="other"} 3`, `belay_agent_context_efficiency{agent="other"} 0.07`,
		`belay_agent_health{agent="a001",status="unhealthy"} 1`, `belay_agent_health{agent="other",status="healthy"} 2`, `belay_agent_health{agent="other",status="unhealthy"} 1`,
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("there is no %s in\n%s", line, b.String())
		}
	}
	if n := strings.Count(b.String(), "belay_agent_runs_total{"); n != 201 || strings.Contains(b.String(), `efficiency{agent="a001"}`) {
		t.Errorf("%d agents are counted, or one has a figure that isn't known", n)
	}
}
