package store

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/belay-run/belay/internal/testkit/needs"
)

// otherNamespace has the owner that a test in another PID namespace looks at.
const otherNamespace = "BELAY_TEST_OWNER"

// TestAnotherNamespaceOwnsWhatItOwns: a process in another PID namespace of this host isn't
// seen from here, nor one of here from there, whether /proc is that of the namespace or not.
// Neither takes what the other has.
// Guarantee: S4.
func TestAnotherNamespaceOwnsWhatItOwns(t *testing.T) {
	if raw := os.Getenv(otherNamespace); raw != "" {
		lookFromThere(t, raw)
		return
	}
	needs.Program(t, "sh")
	needs.Program(t, "mount")
	here := ThisProcess()
	raw, err := json.Marshal(here)
	if err != nil {
		t.Fatal(err)
	}
	for _, mounts := range []bool{false, true} {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		if mounts {
			cmd = exec.Command("/bin/sh", "-c", `mount -t proc proc /proc && exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$")
		}
		cmd.Env = append(os.Environ(), otherNamespace+"="+string(raw))
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
		out, err := cmd.Output()
		var there Owner
		told := json.Unmarshal(out, &there) == nil && there.PID > 0
		if !told && cmd.ProcessState == nil || mounts && !told && len(out) == 0 {
			needs.Facility(t, "userns", false, fmt.Sprint("none can be made, or no /proc in one: ", err))
		}
		if !told || err != nil {
			t.Fatalf("the process there said %q: %v", out, err)
		}
		if !Alive(there) { // whose number is that of nobody here, or of another
			t.Errorf("own /proc %t: %+v counts as dead", mounts, there)
		}
	}
}

// lookFromThere looks at an owner of another namespace, and says who this process is.
func lookFromThere(t *testing.T, raw string) {
	var o Owner
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		t.Fatal(err)
	}
	if !Alive(o) {
		fmt.Printf("%+v counts as dead from there\n", o)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(ThisProcess()); err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}
