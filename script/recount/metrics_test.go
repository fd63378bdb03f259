package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os/exec"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// counted are figures by their names, as /metrics has them.
type counted map[string]float64

func (c counted) add(n float64, name string, labels ...string) {
	for i := 0; i+1 < len(labels); i += 2 {
		name += "," + labels[i] + "=" + strconv.Quote(labels[i+1])
	}
	c[name] += n
}

// told is what the figures of a server need of a fact.
type told struct {
	Type, ToolCallID string
	Payload          struct {
		Outcome, Name, Boundary, Code, For string
		Attempt, Exit                      int
		Final, Failed, Unpriced            bool
		Amount                             amount
		Usage                              struct {
			Input, Output, Cached float64
			Reported              bool
		}
		Problem struct{ Class string }
	}
}

// figuresOf counts facts as a server does, and what of quotas they spent.
func figuresOf(facts io.Reader) (counted, error) {
	c, boundaries := counted{}, map[string]string{}
	lines := bufio.NewReader(facts)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var f told
			_ = json.Unmarshal(line, &f) // payloads of other types have other fields
			c.count(f, boundaries)
		}
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (c counted) count(f told, boundaries map[string]string) {
	p := f.Payload
	used := func() {
		if p.Usage.Reported {
			for kind, n := range map[string]float64{"input": p.Usage.Input, "output": p.Usage.Output, "cached": p.Usage.Cached} {
				c.add(n, "belay_tokens_total", "kind", kind)
			}
		}
	}
	ended := func(result string) {
		c.add(1, "belay_tool_calls_total", "tool", p.Name, "result", result)
		if p.Attempt > 0 && boundaries[f.ToolCallID] != "none" && boundaries[f.ToolCallID] != "" {
			c.add(1, "spent calls")
		}
	}
	switch f.Type {
	case "turn.completed":
		c.add(1, "belay_turns_total", "outcome", "completed")
	case "turn.failed":
		c.add(1, "belay_turns_total", "outcome", p.Outcome)
	case "model.completed":
		c.add(1, "belay_steps_total")
		used()
	case "tool.started":
		boundaries[f.ToolCallID] = p.Boundary
	case "tool.result":
		if result := "ok"; p.Exit == 0 {
			ended(result)
		} else {
			ended(fmt.Sprint("exit ", p.Exit))
		}
	case "tool.failed":
		if p.Final {
			ended(p.Problem.Class)
		}
	case "action.required":
		c.add(1, "belay_approvals_waiting")
	case "action.resolved":
		c.add(-1, "belay_approvals_waiting")
	case "subagent.completed", "subagent.failed":
		if p.Code == "" {
			c.add(1, "belay_subagents_ended_total", "outcome", p.Outcome)
		}
	case "cost.recorded":
		if !p.Unpriced {
			c.add(float64(p.Amount)/1e6, "belay_cost_usd_total")
		}
		if p.Failed || f.ToolCallID != "" || strings.HasPrefix(p.For, "compact/") {
			used()
		}
		c.add(p.Usage.Input+p.Usage.Output, "spent tokens")
	}
}

// sameMetrics FACTS QUOTAS: each figure of work that a server shows at /metrics is what its
// facts add up to, and so is what belay quota --json says.
func sameMetrics(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sameMetrics FACTS QUOTAS")
	}
	want, err := figuresOf(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	sameQuotas(ts, want, ts.ReadFile(args[1]))
	got := counted{}
	for line := range strings.Lines(serverMetrics(ts)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		name = strings.Replace(name, "{", ",", 1)
		if value == "" {
			name, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		bare, _, _ := strings.Cut(name, ",")
		switch bare {
		case "belay_turns_total", "belay_steps_total", "belay_tool_calls_total", "belay_tokens_total", "belay_cost_usd_total", "belay_approvals_waiting", "belay_subagents_ended_total":
			n, err := strconv.ParseFloat(value, 64)
			ts.Check(err)
			got[name] = n
		}
	}
	for _, key := range []string{"spent tokens", "spent calls"} {
		delete(want, key)
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if d := cmp.Diff(want, got, near); d != "" {
		ts.Fatalf("/metrics and the facts differ:\n%s", d)
	}
}

func sameQuotas(ts *testscript.TestScript, want counted, out string) {
	n := 0
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); n++ {
		var q struct {
			Kind                     string
			Limit, Spent, Lent, Left float64
		}
		ts.Check(dec.Decode(&q))
		if q.Spent != want["spent "+q.Kind] || q.Lent != 0 || q.Left != q.Limit-q.Spent {
			ts.Fatalf("of the quota of %s %+v, and the facts say %v", q.Kind, q, want["spent "+q.Kind])
		}
	}
	if n == 0 {
		ts.Fatalf("there is no quota in %s", out)
	}
}

// serverMetrics is what a server on the store shows.
func serverMetrics(ts *testscript.TestScript) string {
	program, err := exec.LookPath("belay")
	ts.Check(err)
	cmd := exec.Command(program, "--json", "serve", "--listen", "127.0.0.1:0")
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "USER", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer func() {
		cmd.Process.Kill() //nolint:errcheck // it has nothing to do
		cmd.Wait()         //nolint:errcheck // as above
	}()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	ts.Check(err)
	var said struct{ URL, Token string }
	ts.Check(json.Unmarshal(line, &said))
	req, err := http.NewRequest(http.MethodGet, said.URL+"/metrics", http.NoBody)
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+said.Token)
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("%s: %s", resp.Status, b)
	}
	return string(b)
}
