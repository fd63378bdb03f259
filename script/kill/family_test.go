package kill

import (
	"bytes"
	"fmt"
	"maps"
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
	"github.com/belay-run/belay/internal/testkit/needs"
)

// A family: one that is waited for, with a child of its own that runs a command and asks a
// person; one in the background that does so too, and is paused while it asks; one that fails
// while its own child in the background works; one that is closed while it asks; and two in
// worktrees of their own, of which one changes nothing; another session is told of them. It is
// done when a folder is there, a program says so, and a person.
const familyScript = `
steps:
  - when: {contains: PART-1}
    calls: [{tool: spawn_agent, args: {task: PART-2}}]
  - when: {contains: PART-2}
    calls: [{tool: exec, args: {command: echo two >> effects.log}}]
  - when: {contains: PART-3}
    calls: [{tool: exec, args: {command: echo three >> effects.log}}]
  - when: {contains: PART-4}
    calls: [{tool: spawn_agent, args: {task: PART-5, name: slow, background: true}}]
  - when: {contains: PART-5}
    calls: [{tool: exec, args: {command: echo five >> effects.log}}]
  - when: {contains: PART-6}
    calls: [{tool: ask_user, args: {question: Which?}}]
  - when: {contains: PART-7}
    calls: [{tool: exec, args: {command: echo seven >> effects.log}}]
  - when: {contains: PART-8}
    calls: [{tool: complete_task, args: {summary: idle}}]
  - when: {tool: exec}
    calls: [{tool: complete_task, args: {summary: ran}}]
  - when: {tool: spawn_agent, contains: ran}
    calls: [{tool: complete_task, args: {summary: one}}]
  - when: {tool: spawn_agent, contains: '"name":"slow"'}
    text: I give up.
  - when: {note: You stopped}
    text: I give up.
  - calls:
      - {tool: spawn_agent, args: {task: PART-1, name: first}}
      - {tool: spawn_agent, args: {task: PART-4, name: fails}}
      - {tool: spawn_agent, args: {task: PART-3, name: third, background: true}}
      - {tool: spawn_agent, args: {task: PART-6, name: closed, background: true}}
      - {tool: spawn_agent, args: {task: PART-7, name: tree, isolation: worktree, background: true}}
      - {tool: spawn_agent, args: {task: PART-8, name: idle, isolation: worktree}}
  - calls: [{tool: close_agent, args: {agent: closed}}]
  - calls: [{tool: sessions_send, args: {session: PEER, text: the agents work}}]
  - calls: [{tool: wait_agent, args: {agents: [first, fails, third, closed, tree], all: true}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`

// TestKillAFamily kills the process of a family at its points, and the one that resumes it
// too: no agent is started twice, each end reaches its parent once, no command runs twice,
// and all that was reserved is charged or returned.
// Guarantee: F1, F5.
func TestKillAFamily(t *testing.T) {
	needs.Program(t, "git")
	first, step := stride(t, 160)
	points := 0
	for at := accepted + first; familyLife(t, at); at += step {
		points++
	}
	if points < 320/step {
		t.Errorf("only %d points", points)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 4))
	pairs := 1
	if full {
		pairs = 60
	}
	for range pairs {
		familyLife(t, accepted+r.IntN(120), 1+r.IntN(100))
	}
	t.Logf("%d points, %d pairs, seed %d", points, pairs, seed)
}

func familyLife(t *testing.T, kills ...int) (hit bool) {
	t.Helper()
	begun := time.Now()
	m := newMachine(t)
	defer m.discard()
	defer func() { t.Logf("kills %v: %.1f s", kills, time.Since(begun).Seconds()) }()
	m.script = filepath.Join(m.dir, "family.yaml")
	m.pauses = "third"
	commit := exec.Command("sh", "-c", "git init -q . && git add . && git -c user.name=t -c user.email=t@example.org commit -qm first")
	if commit.Dir = m.ws; commit.Run() != nil {
		t.Fatal("git makes no commit")
	}
	other := filepath.Join(m.dir, "peer.yaml")
	if err := os.WriteFile(other, []byte(peerScript), 0o600); err != nil {
		t.Fatal(err)
	}
	m.tell("run", "--script", other, "wait for word")
	peer := m.sessions()[0]
	if err := os.WriteFile(m.script, []byte(strings.ReplaceAll(familyScript, "PEER", string(peer))), 0o600); err != nil {
		t.Fatal(err)
	}
	m.peer = peer
	for i := 0; ; i++ {
		var env []string
		if i < len(kills) {
			env = []string{fmt.Sprintf("%s=%d", killAt, kills[i])}
		}
		e := m.answering(func() end {
			if i > 0 {
				return m.run(env, "sessions", "resume", string(m.sessions()[0]), "--approvals", "wait")
			}
			return m.run(env, "run", "--script", m.script, "--mode", "accept_edits", "--approvals", "wait", "--tools", "coding,group:agents", "--budget", "3mtok,1000calls,4h",
				"--check-files", "notes", "--check", "test -d notes", "--check-person", "Is it good?", "go")
		})
		switch {
		case e.killed:
			hit = i == len(kills)-1
			continue
		case strings.Contains(e.out, "the turn rests"): // all but the paused agent was over before that was resumed
			return familyLife(t, kills...)
		case e.exit != 0:
			t.Errorf("kills %v: exit %d\n%s", kills, e.exit, e.out)
		}
		m.checkFamily(fmt.Sprint("kills ", kills))
		m.checkPeer(fmt.Sprint("kills ", kills), peer)
		return hit
	}
}

const peerScript = `
steps:
  - when: {contains: the agents work}
    calls: [{tool: complete_task, args: {summary: heard}}]
  - calls: [{tool: complete_task, args: {summary: here}}]
`

// checkPeer resumes the session that was told something: it has the word once.
func (m *machine) checkPeer(what string, peer belay.SessionID) {
	m.t.Helper()
	m.tell("sessions", "resume", string(peer))
	words, turns := 0, 0
	for _, e := range m.log() {
		switch p := e.Data.(type) {
		case event.TurnSubmitted:
			if e.IDs.Session == peer && len(p.Text.From) > 0 {
				words++
			}
		case event.TurnCompleted:
			if e.IDs.Session == peer {
				turns++
			}
		}
	}
	if words != 1 || turns != 2 {
		m.t.Errorf("%s: the other session was told %d times, and completed %d turns", what, words, turns)
	}
	if rows, err := m.db.Lanes(m.t.Context(), ""); err != nil || len(rows) != 0 {
		m.t.Errorf("%s: lanes at rest: %+v %v", what, rows, err)
	}
}

func (m *machine) checkFamily(what string) {
	m.t.Helper()
	if e := m.run(nil, "verify"); e.exit != 0 {
		m.t.Errorf("%s: verify exits %d:\n%s", what, e.exit, e.out)
	}
	if s := m.thread(); s == nil || s.Turn != nil || s.Prev == nil || s.Prev.Outcome != belay.Completed {
		m.t.Fatalf("%s: the turn is at %+v", what, s)
	}
	for _, stream := range m.streams() {
		m.checkStream(what, stream)
	}
	m.checkViews(what)
	coretest.Books(m.t, what, m.log())
	spans := map[belay.StreamID]bool{}
	for _, e := range m.log() {
		switch p := e.Data.(type) {
		case event.ThreadUpdated:
			if p.Pause != nil {
				spans[e.Stream] = p.Pause.Op == event.Paused
			}
		case event.ModelRequested, event.ToolStarted:
			if spans[e.Stream] {
				m.t.Errorf("%s: a paused agent begins %s", what, e.Type())
			}
		}
	}
	if len(spans) != 1 {
		m.t.Errorf("%s: agents were paused and resumed: %v", what, spans)
	}
	spawned, ended, told := map[belay.SubagentID]int{}, map[belay.SubagentID]int{}, map[belay.SubagentID]int{}
	outcomes, checks := map[belay.Outcome]int{}, map[string]int{}
	for _, e := range m.log() {
		switch p := e.Data.(type) {
		case event.SubagentSpawned:
			spawned[e.IDs.Subagent]++
		case event.SubagentCompleted:
			ended[e.IDs.Subagent]++
			outcomes[p.Outcome]++
		case event.SubagentFailed:
			ended[e.IDs.Subagent]++
			outcomes[p.Outcome]++
		case event.SubagentStatus:
			if p.Status == event.SubagentEnded {
				told[e.IDs.Subagent]++
			}
		case event.TaskProgress:
			if p.Check != nil && p.Check.Status != event.CheckRunning {
				checks[p.Check.ID+" "+p.Check.Status]++
			}
		}
	}
	for id, n := range spawned {
		if n != 1 || ended[id] != 1 || told[id] != 1 {
			m.t.Errorf("%s: %s was spawned %d times, ended %d times, its parent was told %d times", what, id, n, ended[id], told[id])
		}
	}
	if len(spawned) != 8 || outcomes[belay.Completed] != 6 || outcomes[belay.NoCompletion] != 1 || outcomes[belay.Cancelled] != 1 {
		m.t.Errorf("%s: %d agents, %v", what, len(spawned), outcomes)
	}
	if want := map[string]int{"files-2 passed": 1, "command-1 passed": 1, "person-3 passed": 1}; !maps.Equal(checks, want) {
		m.t.Errorf("%s: checks %v", what, checks)
	}
	ran, _ := os.ReadFile(filepath.Join(m.ws, "effects.log"))
	trees, _ := filepath.Glob(filepath.Join(m.dir, "store-worktrees", "*"))
	for _, tree := range trees {
		more, _ := os.ReadFile(filepath.Join(tree, "effects.log"))
		ran = append(ran, more...)
	}
	branches, err := exec.Command("git", "-C", m.ws, "branch", "--list", "belay/*").Output()
	if n := bytes.Count(branches, []byte("belay/")); err != nil || n > 1 || len(trees) != n {
		m.t.Errorf("%s: %d worktrees, branches %s, %v", what, len(trees), branches, err)
	}
	for _, line := range []string{"two", "three", "five", "seven"} {
		if n := bytes.Count(ran, []byte(line)); n > 1 {
			m.t.Errorf("%s: the command of %s ran %d times", what, line, n)
		}
	}
}
