package aimock

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/coretest"
)

// TestAFamilyUnderOneCap: 200 agents at once spend from one budget, and the process is
// killed in the middle. What the far end counts is within the budget, whether it is enough
// for all of them or not; all that was reserved is charged or returned.
// Guarantee: E17, F1, F2.
func TestAFamilyUnderOneCap(t *testing.T) {
	agents, seed := 60, rand.IntN(2)
	full := os.Getenv("BELAY_FAMILY") == "full"
	if full {
		agents = 200
	}
	t.Logf("seed %d", seed)
	for i, most := range []int64{int64(agents) * 150_000, int64(agents) * 3000} {
		if limit := fmt.Sprintf("%.2fusd", float64(most)/1e6); full || i == seed {
			t.Run(limit, func(t *testing.T) { familyUnder(t, agents, limit, most) })
		}
	}
}

func familyUnder(t *testing.T, agents int, limit string, most int64) {
	stats := filepath.Join(t.TempDir(), "stats.json")
	modules := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(installed(t))))))
	url := listening(t, exec.Command("node", "family.mjs", modules, fmt.Sprint(agents), stats, fmt.Sprint(most > 5_000_000)))
	c := newClient(t)
	dir := filepath.Join(c.dir, ".config/belay")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	catalog := "models:\n  - provider: openai-chat\n    model: some-model\n    context: 200000\n    usd_per_million: {input: 1, output: 2}\n"
	if err := os.WriteFile(filepath.Join(dir, "models.yaml"), []byte(catalog), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Dir = filepath.Join(c.dir, "ws")
		cmd.Env = []string{"AIMOCK_PROGRAM=1", "HOME=" + c.dir, "USER=tester", "PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=sk-tester"}
		return cmd
	}
	begun := time.Now()
	first := run("run", "--provider", "openai-chat", "--base-url", url+"/v1", "--model", "some-model", "--tools", "coding,group:agents", "--budget", limit,
		"--agents-children", "256", "--agents-running", "256", "--agents-total", "256", "start them all")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	enough := most > 5_000_000
	middle := max(1, agents/60)
	if enough {
		middle = agents/40 + agents/2 // all are open, and half of them have their answer
	}
	until(t, func() bool { return far(t, stats).Requests >= middle })
	first.Process.Kill()
	first.Wait()
	killed := far(t, stats).Requests
	out, err := run("sessions", "resume", "--last").CombinedOutput()
	exit := 0
	if ee, ok := err.(*exec.ExitError); ok {
		exit = ee.ExitCode()
	}
	var facts []event.Envelope
	_, lines, _ := c.belay("events", "--json")
	for line := range strings.Lines(lines) {
		var e event.Envelope
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		facts = append(facts, e)
	}
	sums := coretest.Books(t, limit, facts)
	outcomes, atOnce := map[belay.Outcome]int{}, 0
	open := 0
	spawned := map[belay.SubagentID]int{}
	for _, e := range facts {
		switch p := e.Data.(type) {
		case event.SubagentSpawned:
			spawned[e.IDs.Subagent]++
			open++
			atOnce = max(atOnce, open)
		case event.SubagentCompleted:
			outcomes[p.Outcome]++
			open--
		case event.SubagentFailed:
			outcomes[p.Outcome]++
			open--
		}
	}
	all := far(t, stats)
	price := all.Read + 2*all.Written
	t.Logf("%s: %d agents, %d open at once, %v; killed behind %d of %d requests; their price %d of %d; %+v", time.Since(begun), len(spawned), atOnce, outcomes, killed, all.Requests, price, most, sums)
	if price > most {
		t.Errorf("the requests cost %d, the budget is %d", price, most)
	}
	for id, n := range spawned {
		if n != 1 {
			t.Errorf("%s was started %d times", id, n)
		}
	}
	if enough && atOnce != agents {
		t.Errorf("%d of %d agents were open at once", atOnce, agents)
	}
	switch {
	case enough && (exit != 0 || len(spawned) != agents || outcomes[belay.Completed] != agents):
		t.Errorf("exit %d, %d of %d agents, %v\n%s", exit, len(spawned), agents, outcomes, out)
	case !enough && (outcomes[belay.OverBudget] == 0 || exit != 0 && exit != belay.ExitBudget): // what the others leave may do for the first one's last answer
		t.Errorf("exit %d, %v\n%s", exit, outcomes, out)
	}
}

// farSums are what a far end has answered.
type farSums struct {
	Requests      int
	Read, Written int64
}

func far(t *testing.T, path string) (f farSums) {
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return f
}

func until(t *testing.T, met func() bool) {
	t.Helper()
	for begun := time.Now(); !met(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("a minute is over")
		}
	}
}
