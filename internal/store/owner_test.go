package store

import (
	"os/exec"
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
