package kill

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// mcpServer is an MCP server in the workspace that counts in files what it does: "new"
// asks a person between two requests, "old" while it works on one.
func mcpServer() int {
	done := func(what string) {
		f, err := os.OpenFile(what+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(what + "\n")
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			panic(err)
		}
		if _, err := os.Stat("stop-" + what); err == nil {
			select {} // until it is ended
		}
	}
	if os.Args[1] == "old" {
		return oldServer(done)
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "new", Version: "1"}, nil)
	said := func(text string) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
	}
	sdk.AddTool(s, &sdk.Tool{Name: "note"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		done("noted")
		return said("noted")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		done("waits")
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	sdk.AddTool(s, &sdk.Tool{Name: "ask"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		if a, ok := r.Params.InputResponses["who"].(*sdk.ElicitResult); ok {
			done("answered")
			return said(fmt.Sprint("it is ", a.Content["name"]))
		}
		return &sdk.CallToolResult{RequestState: "asked", InputRequests: sdk.InputRequestMap{"who": &sdk.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: json.RawMessage(whoForm)}}}, nil, nil
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

const whoForm = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`

// oldServer speaks protocol 2025-11-25.
func oldServer(done func(what string)) int {
	in := bufio.NewReader(os.Stdin)
	var call json.RawMessage
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		reply := func(id json.RawMessage, result string) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
		}
		switch m.Method {
		case "initialize":
			reply(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`)
		case "tools/list":
			reply(m.ID, `{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			done("called")
			call = m.ID
			fmt.Println(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":` + whoForm + `}}`)
		case "":
			done("heard")
			text, err := json.Marshal("it is " + string(m.Result))
			if err != nil {
				return 1
			}
			reply(call, `{"content":[{"type":"text","text":`+string(text)+`}]}`)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", m.ID)
		}
	}
}

// mcpMachine is a machine whose agent calls tools of both servers.
type mcpMachine struct{ *machine }

const mcpSteps = `steps:
  - calls: [{tool: mcp__new__note, args: {}}]
  - calls: [{tool: mcp__new__ask, args: {}}]
  - calls: [{tool: mcp__old__ask, args: {}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`

func newMCPMachine(t *testing.T) mcpMachine {
	t.Helper()
	m := newMachine(t)
	m.script = filepath.Join(m.dir, "mcp.yaml")
	config := filepath.Join(m.dir, ".config", "belay")
	err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(m.script, []byte(mcpSteps), 0o600),
		os.WriteFile(filepath.Join(config, "belay.yaml"), fmt.Appendf(nil, "mcp-servers:\n  new: {command: ./mcpserver, args: [new, of:%s]}\n  old: {command: ./mcpserver, args: [old, of:%s]}\n", m.dir, m.dir), 0o600),
		os.WriteFile(filepath.Join(config, "policy.yaml"), []byte("version: 1\nrules:\n  - {id: servers, verdict: allow, when: {tool: [mcp__new__*, mcp__old__*], taint: [none, any]}}\n"), 0o600))
	if err := errors.Join(err, placeServer(m.ws)); err != nil {
		t.Fatal(err)
	}
	return mcpMachine{m}
}

// placeServer puts the program of the servers into a folder, where boundaries show it.
func placeServer(dir string) error {
	to := filepath.Join(dir, "mcpserver")
	if os.Link(os.Args[0], to) == nil {
		return nil
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o755)
}

// life runs a process while a person answers what it asks, with what is wanted of the
// process meanwhile.
func (m mcpMachine) life(begins bool, meanwhile func(*os.Process), env ...string) end {
	args := []string{"sessions", "resume", "--last", "--approvals", "wait"}
	if begins {
		args = []string{"run", "--script", m.script, "--approvals", "wait", "go"}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	return m.runWith(func(p *os.Process) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				m.person()
				if meanwhile != nil {
					meanwhile(p)
				}
			}
		})
	}, env, args...)
}

// person answers the questions that nobody has answered.
func (m mcpMachine) person() {
	if m.db == nil {
		if _, err := os.Stat(filepath.Join(m.store, "tenants/default/belay.db")); err != nil {
			return
		}
		db, err := sqlite.Open(context.Background(), m.store, sqlite.Options{ReadOnly: true})
		if err != nil {
			return // it is just being made
		}
		m.db = db
	}
	s := m.thread()
	if s == nil {
		return
	}
	for _, o := range s.Opens() {
		if _, err := os.Stat(filepath.Join(m.ws, "stop-"+question(o))); err == nil || m.answered[o.Action] {
			continue
		}
		m.answered[o.Action] = true
		if e := m.run(nil, "answer", string(o.Action), `{"name":"Ada"}`); e.exit != 0 && !strings.Contains(e.out, "already_answered") {
			m.t.Errorf("answer: exit %d\n%s", e.exit, e.out)
		}
	}
}

// question is the stage at which a question is open.
func question(o thread.Open) string {
	if o.Call == nil {
		return "asked"
	}
	return "asked-" + o.Call.Name
}

// servers are the processes of the machine's servers.
func (m *machine) servers() (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		b, err := os.ReadFile(name)
		if err == nil && bytes.Contains(b, []byte("\x00of:"+m.dir+"\x00")) {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids
}

// noServers waits until none is left.
func (m mcpMachine) noServers(what string) {
	m.t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		left := m.servers()
		if len(left) == 0 {
			return
		}
		if time.Since(begun) > patience {
			m.t.Fatalf("%s: servers are left: %v", what, left)
		}
	}
}

// outcome is what facts say of a call.
type outcome struct {
	attempts, asked, answered, cancelled int
	taken                                bool // an attempt went on with an answer
	end                                  string
	ends                                 int
}

// settled holds what is left at the end against what must be.
func (m mcpMachine) settled(what string) (lost int) {
	m.t.Helper()
	m.noServers(what)
	if e := m.run(nil, "verify"); e.exit != 0 {
		m.t.Errorf("%s: verify exits %d:\n%s", what, e.exit, e.out)
	}
	m.person() // opens the store
	calls, of, completed := map[string]*outcome{}, map[belay.CallID]*outcome{}, 0
	for r, err := range m.db.Scan(m.t.Context(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		ids := r.Event.IDs
		switch p := r.Event.Data.(type) {
		case event.ToolStarted:
			if of[ids.Call] == nil {
				of[ids.Call] = &outcome{}
				calls[p.Name] = of[ids.Call]
			}
			of[ids.Call].attempts++
			of[ids.Call].taken = of[ids.Call].taken || p.Answer == "accept"
		case event.ActionRequired:
			if p.Kind == "form" {
				of[ids.Call].asked++
			}
		case event.ActionResolved:
			if c := of[ids.Call]; c != nil && p.Decision == "answer" {
				c.answered++
			} else if c != nil && p.Decision == "cancelled" {
				c.cancelled++
			}
		case event.ToolResult:
			if c := of[ids.Call]; c != nil {
				c.end, c.ends = p.Output.Text, c.ends+1
			}
		case event.ToolFailed:
			if c := of[ids.Call]; c != nil && p.Final {
				c.end, c.ends = p.Problem.Class, c.ends+1
			}
		case event.TurnCompleted:
			completed++
		}
	}
	if completed != 1 {
		m.t.Errorf("%s: %d turns completed", what, completed)
	}
	for name, files := range map[string][]string{"mcp__new__note": {"noted"}, "mcp__new__ask": {"answered"}, "mcp__old__ask": {"called", "heard"}} {
		c := calls[name]
		if c == nil || c.ends != 1 {
			m.t.Errorf("%s: %s came to %+v", what, name, c)
			continue
		}
		gone := c.end == "lost"
		if gone {
			lost++
		}
		for _, f := range files {
			b, _ := os.ReadFile(filepath.Join(m.ws, f+".log"))
			if n := strings.Count(string(b), "\n"); n > 1 || n == 0 && !gone {
				m.t.Errorf("%s: %s did %s %d times: %+v", what, name, f, n, c)
			}
		}
		asks := name != "mcp__new__note"
		good := strings.Contains(c.end, "noted") || asks && strings.Contains(c.end, "it is") && strings.Contains(c.end, "Ada")
		if !gone && !good || c.asked > 1 || asks && !gone && (c.asked != 1 || c.answered != 1 || !c.taken) {
			m.t.Errorf("%s: %s came to %+v", what, name, c)
		}
		if asks && c.asked != c.answered+c.cancelled {
			m.t.Errorf("%s: a question of %s is open: %+v", what, name, c)
		}
		// The answer to a question that is recorded isn't lost with a process: the call
		// goes on with it.
		if name == "mcp__new__ask" && c.answered == 1 && !c.taken {
			m.t.Errorf("%s: the answer was given and not used: %+v", what, c)
		}
	}
	return lost
}

// TestKillInAnMCPCall kills the process at its points while servers work on calls and
// ask a person, and at stages that only a server knows: nothing is done twice, nothing
// hangs or is left, a person is asked once, and an answer goes on with its call where
// the protocol allows it.
// Guarantee: T113.
func TestKillInAnMCPCall(t *testing.T) {
	probe := sandbox.Probe()
	needs.Facility(t, "sandbox", probe.Level.AtLeast(belay.L2), "level "+string(probe.Level)+": "+probe.Why)
	begun := time.Now()
	var mu sync.Mutex
	kills, lost := 0, 0
	play := func(t *testing.T, what string, at int, stage string) {
		m := newMCPMachine(t)
		defer m.discard()
		var env []string
		if at > 0 {
			env = append(env, fmt.Sprintf("%s=%d", killAt, at))
		}
		var meanwhile func(*os.Process)
		if stage != "" {
			stop := filepath.Join(m.ws, "stop-"+stage)
			if err := os.WriteFile(stop, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			meanwhile = func(p *os.Process) {
				_, err := os.Stat(filepath.Join(m.ws, stage+".log"))
				if strings.HasPrefix(stage, "asked") && m.db != nil {
					if s := m.thread(); s != nil && slices.ContainsFunc(s.Opens(), func(o thread.Open) bool { return question(o) == stage }) {
						err = nil
					}
				}
				if err == nil {
					p.Kill() //nolint:errcheck // it ends in any case
					os.Remove(stop)
				}
			}
		}
		e := m.life(true, meanwhile, env...)
		if stage != "" && !e.killed {
			t.Errorf("%s: nothing was killed", what)
		}
		if e.killed {
			m.noServers(what)
			mu.Lock()
			kills++
			mu.Unlock()
			e = m.life(false, nil)
		}
		if e.exit != 0 {
			t.Fatalf("%s: exit %d\n%s", what, e.exit, e.out)
		}
		n := m.settled(what)
		mu.Lock()
		lost += n
		mu.Unlock()
		if survives := stage == "asked-mcp__new__ask"; stage != "" && (n == 0) != survives {
			t.Errorf("%s: %d calls are lost", what, n)
		}
	}
	count := func() int {
		m := newMCPMachine(t)
		defer m.discard()
		file := filepath.Join(m.dir, "points")
		if e := m.life(true, nil, countIn+"="+file); e.exit != 0 {
			t.Fatalf("exit %d\n%s", e.exit, e.out)
		}
		if n := m.settled("without a kill"); n > 0 {
			t.Errorf("%d calls are lost without a kill", n)
		}
		b, _ := os.ReadFile(file)
		n, _ := strconv.Atoi(string(b))
		return n
	}
	points := count()
	type plan struct {
		at    int
		stage string
	}
	var plans []plan
	for _, stage := range []string{"noted", "asked-mcp__new__ask", "answered", "called", "asked-mcp__old__ask", "heard"} {
		plans = append(plans, plan{0, stage})
	}
	first, step := stride(t, 20)
	for at := accepted + first; at <= points; at += step {
		plans = append(plans, plan{at, ""})
	}
	next := make(chan plan)
	var wg sync.WaitGroup
	for range 4 { // they wait most of the time
		wg.Go(func() {
			for p := range next {
				what := fmt.Sprint("killed at ", p.at, p.stage)
				t.Run(what, func(t *testing.T) { play(t, what, p.at, p.stage) })
			}
		})
	}
	for _, p := range slices.Backward(plans) {
		next <- p
	}
	close(next)
	wg.Wait()
	if points < 50 || kills < len(plans)/2 {
		t.Errorf("%d points, %d kills of %d", points, kills, len(plans))
	}
	t.Logf("%d points, %d kills in %.1f s, %d calls lost", points, kills, time.Since(begun).Seconds(), lost)
}
