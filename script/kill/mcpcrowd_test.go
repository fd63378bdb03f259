package kill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// serversOfSession is how many MCP servers each session uses.
const serversOfSession = 5

// mcpCrowd is a server of many sessions that each use MCP servers.
type mcpCrowd struct {
	*serving
	k        *client.Client
	idle     func() // closes connections that nothing uses
	sessions int
	served   int // sessions so far
}

func newMCPCrowd(t *testing.T, sessions int) *mcpCrowd {
	t.Helper()
	c := &mcpCrowd{serving: &serving{machine: newMCPMachine(t).machine}, sessions: sessions}
	var servers, notes strings.Builder
	servers.WriteString("mcp-servers:\n")
	for n := range serversOfSession {
		fmt.Fprintf(&servers, "  s%d: {command: ./mcpserver, args: [new, of:%s], load: always}\n", n, c.dir)
		fmt.Fprintf(&notes, "{tool: mcp__s%d__note, args: {}}, ", n)
	}
	steps := fmt.Sprintf("steps:\n  - {when: {contains: please end}, calls: [%s]}\n  - {when: {contains: please wait}, calls: [%s {tool: mcp__s0__wait, args: {}}]}\n  - {calls: [{tool: complete_task, args: {summary: done}}]}\n", notes.String(), notes.String())
	config := filepath.Join(c.dir, ".config", "belay")
	if err := errors.Join(os.WriteFile(c.script, []byte(steps), 0o600), os.WriteFile(filepath.Join(config, "belay.yaml"), []byte(servers.String()), 0o600),
		os.WriteFile(filepath.Join(config, "policy.yaml"), []byte("version: 1\nrules:\n  - {id: servers, verdict: allow, when: {tool: [mcp__*], taint: [none, any]}}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return c
}

// begin starts the server; over gets how it ended.
func (c *mcpCrowd) begin() (over chan error) {
	c.t.Helper()
	ready, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- c.keepUp(ready) }()
	select {
	case <-ready:
	case err := <-over:
		c.t.Fatalf("the server doesn't come up: %v\n%s", err, c.stderr.String())
	}
	var err error
	if c.k, c.idle, err = c.serving.client(nil); err != nil {
		c.t.Fatal(err)
	}
	return over
}

// turn is one of a wave.
type turn struct {
	session belay.SessionID
	id      belay.TurnID
	run     belay.RunID
}

// submit gives as many new sessions as a wave has the same to do, at the same time.
func (c *mcpCrowd) submit(ctx context.Context, text string) []turn {
	c.t.Helper()
	turns := make([]turn, c.sessions)
	var wg sync.WaitGroup
	for i := range turns {
		dir := c.workspace(c.served) // its own: two writers don't work in one
		if err := errors.Join(os.Mkdir(dir, 0o700), placeServer(dir)); err != nil {
			c.t.Fatal(err)
		}
		c.served++
		turns[i].session, turns[i].id = belay.SessionID(fmt.Sprint("s", c.served)), belay.TurnID(fmt.Sprint("t", c.served))
		wg.Go(func() {
			var out answered
			if err := c.k.Command(ctx, "submit_turn", string(turns[i].id), submission{Session: turns[i].session, Turn: turns[i].id, Text: text, Workspace: dir}, &out); err != nil {
				c.t.Errorf("submit: %v", err)
			}
			turns[i].run = out.Run
		})
	}
	wg.Wait()
	return turns
}

// wait waits until a condition holds, and returns how long that took.
func (c *mcpCrowd) wait(what string, holds func() bool) time.Duration {
	c.t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if holds() {
			return time.Since(begun)
		}
		if time.Since(begun) > patience {
			c.t.Fatalf("%s: not within %s; %d servers\n%s", what, patience, len(c.servers()), c.stderr.String())
		}
	}
}

// ended waits until the turns have ended.
func (c *mcpCrowd) ended(ctx context.Context, turns []turn) {
	c.t.Helper()
	for _, t := range turns {
		c.wait("the end of "+string(t.id), func() bool {
			var shown struct {
				Status string `json:"status"`
			}
			err := c.k.Get(ctx, "/v1/runs/"+string(t.run), nil, &shown)
			return err == nil && shown.Status == "ended"
		})
	}
}

// gone waits until no server is left. Within two seconds is what was promised; a sample on
// a busy machine may take longer.
func (c *mcpCrowd) gone(what string) {
	c.t.Helper()
	took := c.wait(what, func() bool { return len(c.servers()) == 0 })
	if full && took > 2*time.Second {
		c.t.Errorf("%s: servers were left for %s", what, took)
	}
	c.t.Logf("%s: no server after %s", what, took.Round(10*time.Millisecond))
}

// size is what the process of the server has: files and bytes of memory.
func (c *mcpCrowd) size() (fds, rss int) {
	c.serving.mu.Lock()
	pid := c.proc.Pid
	c.serving.mu.Unlock()
	all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	rss, _ = strconv.Atoi(strings.TrimSpace(strings.Split(rest, "kB")[0]))
	return len(all), rss << 10
}

// written is how often a file was written to, in all workspaces.
func (c *mcpCrowd) written(name string) (lines int) {
	for n := range c.served {
		b, _ := os.ReadFile(filepath.Join(c.workspace(n), name))
		lines += strings.Count(string(b), "\n")
	}
	return lines
}

// TestServersOfManySessions: twenty sessions with five MCP servers each, whose turns end,
// are interrupted, or whose runtime is killed, leave no process; and what the runtime has
// doesn't grow with the sessions that it served.
// Guarantee: T114.
func TestServersOfManySessions(t *testing.T) {
	probe := sandbox.Probe()
	needs.Facility(t, "sandbox", probe.Level.AtLeast(belay.L2), "level "+string(probe.Level)+": "+probe.Why)
	sessions, waves := 2, 2
	if full {
		sessions, waves = 20, 8
	}
	c := newMCPCrowd(t, sessions)
	defer c.serving.discard()
	over := c.begin()
	ctx := t.Context()
	var fds, rss []int
	for n := range waves {
		c.ended(ctx, c.submit(ctx, "please end"))
		c.gone("ended")
		c.idle()
		if n > 0 {
			c.wait("as many open files as after the first wave", func() bool { f, _ := c.size(); return f <= fds[0]+4 })
		}
		f, r := c.size()
		fds, rss = append(fds, f), append(rss, r)
		if got, want := c.written("noted.log"), (n+1)*sessions*serversOfSession; got != want {
			t.Errorf("%d calls were made, not %d", got, want)
		}
	}
	if first, last := rss[1], rss[waves-1]; last > first+first/4 {
		t.Errorf("memory after each wave: %v", rss)
	}
	t.Logf("after each wave of %d sessions: %v files, %v bytes", sessions, fds, rss)

	all := c.submit(ctx, "please wait")
	c.wait("calls that wait", func() bool { return c.written("waits.log") == sessions })
	t.Logf("%d servers at once", len(c.servers()))
	for _, one := range all {
		in := struct {
			Session belay.SessionID `json:"sessionId"`
			Turn    belay.TurnID    `json:"turnId"`
		}{one.session, one.id}
		if err := c.k.Command(ctx, "interrupt_turn", "stop-"+string(one.id), in, nil); err != nil {
			t.Errorf("interrupt: %v", err)
		}
	}
	c.ended(ctx, all)
	c.gone("interrupted")

	c.submit(ctx, "please wait")
	c.wait("calls that wait", func() bool { return c.written("waits.log") == 2*sessions })
	c.serving.mu.Lock()
	c.proc.Signal(syscall.SIGKILL) //nolint:errcheck // it ends in any case
	c.serving.mu.Unlock()
	c.gone("killed")
	c.end()
	if err := <-over; err != nil {
		t.Errorf("the last server ended badly: %v", err)
	}
	c.gone("ended well")
}
