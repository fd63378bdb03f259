package kill

import (
	"fmt"
	"strings"
	"testing"
)

// TestAnAcceptedSessionIsListed: a process that dies before its session began
// leaves nothing; one that dies right after leaves a session that lists show, and
// that continues.
// Guarantee: E45, S46.
func TestAnAcceptedSessionIsListed(t *testing.T) {
	m := newMachine(t)
	defer m.discard()
	if e := m.start(fmt.Sprintf("%s=%d", killAt, accepted-1)); !e.killed {
		t.Fatalf("exit %d\n%s", e.exit, e.out)
	}
	if e := m.run(nil, "sessions", "list"); e.exit != 0 || strings.Contains(e.out, " queued ") {
		t.Errorf("list before it began, exit %d:\n%s", e.exit, e.out)
	}
	if e := m.start(fmt.Sprintf("%s=%d", killAt, accepted)); !e.killed {
		t.Fatalf("exit %d\n%s", e.exit, e.out)
	}
	e := m.run(nil, "sessions", "list")
	if e.exit != 0 || strings.Count(e.out, " queued ") != 1 {
		t.Errorf("list, exit %d:\n%s", e.exit, e.out)
	}
	e = m.run(nil, "--json", "sessions", "list")
	if e.exit != 0 || strings.Count(e.out, "sess_") != 1 {
		t.Fatalf("list, exit %d:\n%s", e.exit, e.out)
	}
	id := e.out[strings.Index(e.out, "sess_"):][:len("sess_")+36]
	if e := m.run(nil, "sessions", "show", id[:12]); e.exit != 0 || !strings.Contains(e.out, "go") {
		t.Errorf("show, exit %d:\n%s", e.exit, e.out)
	}
	if e := m.run(nil, "sessions", "tag", id, "mine"); e.exit != 0 { // the command is handled after those before it
		t.Errorf("tag, exit %d:\n%s", e.exit, e.out)
	}
	if e := m.resume(); e.exit != 0 {
		t.Errorf("resume, exit %d:\n%s", e.exit, e.out)
	}
	m.check("after it was only accepted")
	if e := m.run(nil, "sessions", "list", "--tag", "mine"); strings.Count(e.out, "completed") != 1 {
		t.Errorf("list after it:\n%s", e.out)
	}
}
