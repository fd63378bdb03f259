package store

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/testkit/needs"
)

func TestOnlyTheVeryProcessIsAlive(t *testing.T) {
	self := ThisProcess()
	if !Alive(self) {
		t.Errorf("this process counts as dead: %+v", self)
	}
	if other := ThisProcess(); other.ID == self.ID {
		t.Error("two owners have one id")
	}
	needs.Facility(t, "procfs", self.Start != "", "the system doesn't tell when a process started")
	reused := self
	reused.Start = "1@" + self.Start
	if Alive(reused) {
		t.Error("another process with the same number counts as the owner")
	}
	far := reused
	far.Host = "another-host"
	if !Alive(far) {
		t.Error("a process that can't be seen counts as dead")
	}
}

// TestAProcessThatCantBeSeenIsAlive: only within one boot and PID namespace does a missing
// process mean that it is dead. What an owner doesn't say isn't taken as equal.
// Guarantee: S4.
func TestAProcessThatCantBeSeenIsAlive(t *testing.T) {
	needs.Facility(t, "procfs", namespace() != "", "the system doesn't tell of its PID namespaces")
	dead := ThisProcess()
	dead.PID = 1 << 30
	if Alive(dead) {
		t.Fatal("a process that is missing counts as alive")
	}
	id, ns, _ := strings.Cut(dead.ID, namespaceMark)
	ticks, boot, _ := strings.Cut(dead.Start, bootMark)
	for name, change := range map[string]func(*Owner){
		"of another namespace":        func(o *Owner) { o.ID += "1" },
		"of an older build":           func(o *Owner) { o.ID = id },
		"of another boot":             func(o *Owner) { o.Start = ticks + bootMark + "0" + boot[1:] + "x" },
		"whose start wasn't told":     func(o *Owner) { o.Start = "" },
		"of another host":             func(o *Owner) { o.Host += "x" },
		"that names a namespace only": func(o *Owner) { o.ID, o.Start = namespaceMark+ns, ticks },
	} {
		o := dead
		if change(&o); !Alive(o) {
			t.Errorf("a process %s counts as dead", name)
		}
	}
}

func TestAProcessThatEndedIsDead(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := ThisProcess()
	o.PID, o.Start = cmd.Process.Pid, processStart(cmd.Process.Pid)
	if !Alive(o) {
		t.Errorf("the running process counts as dead: %+v", o)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if Alive(o) {
		t.Errorf("the ended process counts as alive: %+v", o)
	}
}
