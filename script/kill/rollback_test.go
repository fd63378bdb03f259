package kill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// changes is a session of three turns that change, make and remove files.
const changes = `steps:
  - calls: [{tool: read, args: {path: a.txt}}, {tool: read, args: {path: b.txt}}]
  - calls: [{tool: write, args: {path: a.txt, content: one}}]
  - calls: [{tool: complete_task, args: {summary: one}}]
  - calls: [{tool: write, args: {path: new/c.txt, content: two}}, {tool: edit, args: {path: a.txt, old: one, new: two}}]
  - calls: [{tool: complete_task, args: {summary: two}}]
  - calls: [{tool: write, args: {path: a.txt, content: three}}]
  - calls: [{tool: patch, args: {patch: "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch\n"}}]
  - calls: [{tool: complete_task, args: {summary: three}}]
`

// begun is a machine on which the three turns have ended.
func begun(t *testing.T) *machine {
	t.Helper()
	m := newMachine(t)
	m.script = filepath.Join(m.dir, "changes.yaml")
	m.ws = filepath.Join(m.dir, "files")
	for name, content := range map[string]string{m.script: changes, filepath.Join(m.ws, "a.txt"): "zero", filepath.Join(m.ws, "b.txt"): "stays"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, more := range [][]string{{"one"}, {"--continue", "two"}, {"--continue", "three"}} {
		args := append([]string{"run", "--script", m.script, "--mode", "accept_edits"}, more...)
		if e := m.run(nil, args...); e.exit != 0 {
			t.Fatalf("turn %d: exit %d\n%s", i+1, e.exit, e.out)
		}
	}
	return m
}

// copied is a machine like another one: its store and its files.
func (m *machine) copied() *machine {
	m.t.Helper()
	n := newMachine(m.t)
	os.RemoveAll(n.dir)
	if err := os.CopyFS(n.dir, os.DirFS(m.dir)); err != nil {
		m.t.Fatal(err)
	}
	os.Chmod(n.store, 0o700)
	n.script, n.ws = m.script, m.ws // the settings and the workspace are what they were
	return n
}

// standing is what a machine has after all: files, the folded state of each
// thread but for times and ids of its own, its conversation, and whether its
// store is whole.
func (m *machine) standing(what string) string {
	m.t.Helper()
	if e := m.run(nil, "verify"); e.exit != 0 {
		m.t.Errorf("%s: verify exits %d:\n%s", what, e.exit, e.out)
	}
	var out strings.Builder
	err := fs.WalkDir(os.DirFS(m.ws), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(m.ws, path))
		fmt.Fprintf(&out, "%s %q\n", path, b)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.db, err = sqlite.Open(m.t.Context(), m.store, sqlite.Options{ReadOnly: true})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, s := range m.streams() {
		m.checkStream(what, s)
		if s.Kind() == belay.KindThread {
			out.WriteString(m.folded(s))
		}
	}
	if rows, err := m.db.Lanes(m.t.Context(), ""); err != nil || len(rows) != 0 {
		m.t.Errorf("%s: lanes at rest: %+v %v", what, rows, err)
	}
	m.checkViews(what)
	return out.String()
}

// folded is a thread's state and conversation without times.
func (m *machine) folded(s belay.StreamID) string {
	m.t.Helper()
	d, _, _, err := engine.Load(m.t.Context(), m.db, s)
	if err != nil {
		m.t.Fatal(err)
	}
	raw, _ := d.Save()
	var st thread.State
	if err := json.Unmarshal(raw, &st); err != nil {
		m.t.Fatal(err)
	}
	msgs, err := history.Messages(m.t.Context(), m.db, s, 1, 1<<40)
	if err != nil {
		m.t.Fatal(err)
	}
	turns, restored := []string{}, 0
	for _, k := range st.Known {
		turns = append(turns, fmt.Sprint(k.Outcome, k.Back, k.End))
	}
	for e := range m.db.Read(m.t.Context(), s, 0) {
		if p, ok := e.Data.(event.ArtifactChanged); ok && p.Note == "restored" {
			restored++
		}
	}
	var said strings.Builder
	for _, msg := range msgs {
		for _, p := range msg.Parts {
			fmt.Fprintf(&said, " %s %s", msg.Role, p.Text)
			if p.Call != nil {
				fmt.Fprintf(&said, "%s%s", p.Call.Name, p.Call.Args)
			}
			if p.Result != nil {
				said.WriteString(p.Result.Text)
			}
		}
	}
	files, _ := json.Marshal(st.Files)
	return fmt.Sprintf("thread at %d, back %v, restoring %v, turns %v, files %s, %d restored\nsaid%s\n", st.Seq, st.Back, st.Restore != nil, turns, files, restored, said.String())
}

// TestKillWhileGoingBack kills fork, rollback and undo at each of their points;
// the same command again, or a resume, leads to what comes without a kill.
// Guarantee: E42.
func TestKillWhileGoingBack(t *testing.T) {
	base := begun(t)
	defer base.discard()
	saved := snapshotOf(t, base.ws)
	for name, cmd := range map[string][]string{
		"rollback": {"rollback", "--turn", "1"},
		"undo":     {"undo", "2"},
		"all":      {"rollback", "--turn", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			points, step := 0, 3
			if full {
				step = 1
			}
			for at := 0; ; at += step {
				restoreTo(t, base.ws, saved)
				m := base.copied()
				m.t = t
				what := fmt.Sprintf("%s killed at %d", name, at)
				e := m.run([]string{fmt.Sprintf("%s=%d", killAt, at)}, cmd...)
				if at > 0 && !e.killed {
					m.discard()
					break
				}
				points = at
				again := cmd
				if at%2 == 1 {
					again = []string{"sessions", "resume", "--last"}
				}
				if at > 0 {
					e = m.run(nil, again...)
				}
				// What was killed before it was accepted has not happened: it is said again.
				if strings.Contains(e.out, "three") && e.exit == 0 {
					e = m.run(nil, cmd...)
				}
				if e.exit != 0 {
					t.Errorf("%s: exit %d\n%s", what, e.exit, e.out)
				}
				got := m.standing(what)
				if at == 0 {
					want = got
				} else if got != want {
					t.Errorf("%s: there is\n%s\nwant\n%s", what, got, want)
				}
				m.discard()
			}
			if points < 6 || strings.Contains(want, "restoring true") {
				t.Errorf("%d points\n%s", points, want)
			}
			t.Logf("%d points", points)
		})
	}
}

// TestKillWhileForking: a fork that is killed is either not there or whole.
// Guarantee: E40.
func TestKillWhileForking(t *testing.T) {
	base := begun(t)
	defer base.discard()
	for at := 1; ; at++ {
		m := base.copied()
		e := m.run([]string{fmt.Sprintf("%s=%d", killAt, at)}, "fork", "--turn", "2", "--title", "the fork")
		list := m.run(nil, "--json", "sessions", "list")
		id := ""
		for l := range strings.Lines(list.out) {
			if strings.Contains(l, "the fork") {
				id = l[len(`{"id":"`):][:len("sess_")+36]
			}
		}
		if id == "" {
			t.Fatalf("killed at %d: no fork in\n%s", at, list.out)
		}
		if e := m.run(nil, "sessions", "resume", id); e.exit != 1 || !strings.Contains(e.out, "it has no turn to go on with") {
			t.Errorf("killed at %d: resume exits %d\n%s", at, e.exit, e.out)
		}
		if e := m.run(nil, "run", "--session", id, "--script", m.script, "--mode", "accept_edits", "more"); e.killed || !strings.Contains(e.out, "three") {
			t.Errorf("killed at %d: the fork goes on with exit %d\n%s", at, e.exit, e.out)
		}
		if e := m.run(nil, "verify"); e.exit != 0 {
			t.Errorf("killed at %d: verify exits %d:\n%s", at, e.exit, e.out)
		}
		m.discard()
		if !e.killed {
			t.Logf("%d points", at-1)
			break
		}
	}
}

// snapshotOf and restoreTo keep a folder's files and bring them back.
func snapshotOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func restoreTo(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for path := range snapshotOf(t, dir) {
		if _, ok := files[path]; !ok {
			os.Remove(filepath.Join(dir, path))
		}
	}
	for path, content := range files {
		if b, err := os.ReadFile(filepath.Join(dir, path)); err == nil && bytes.Equal(b, content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKillWhileKeeping kills a turn that keeps its workspace by hidden commits:
// after a resume what its command did can be taken back.
// Guarantee: E46.
func TestKillWhileKeeping(t *testing.T) {
	needs.Program(t, "git")
	first, step := stride(t, 5)
	for at := accepted + first; ; at += step {
		m := newMachine(t)
		m.script = filepath.Join(m.dir, "make.yaml")
		script := "steps:\n  - calls: [{tool: exec, args: {command: 'echo built >made; echo built >>notes/a.txt; rm notes/b.txt'}}]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n"
		if err := os.WriteFile(m.script, []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("git", "init", "-q", m.ws).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		before := snapshotOf(t, filepath.Join(m.ws, "notes"))
		e := m.run([]string{fmt.Sprintf("%s=%d", killAt, at)}, "run", "--snapshot", "git", "--allow", "exec", "--script", m.script, "go")
		killed := e.killed
		for e.killed {
			e = m.run(nil, "sessions", "resume", "--last")
		}
		if e.exit != 0 {
			t.Errorf("killed at %d: exit %d\n%s", at, e.exit, e.out)
		}
		if e := m.run(nil, "undo"); e.exit != 0 {
			t.Errorf("killed at %d: undo exits %d\n%s", at, e.exit, e.out)
		}
		after := snapshotOf(t, filepath.Join(m.ws, "notes"))
		if _, err := os.Stat(filepath.Join(m.ws, "made")); err == nil || fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("killed at %d: there is %q", at, after)
		}
		if e := m.run(nil, "verify"); e.exit != 0 {
			t.Errorf("killed at %d: verify exits %d:\n%s", at, e.exit, e.out)
		}
		m.discard()
		if !killed {
			t.Logf("%d points", at-1)
			break
		}
	}
}
