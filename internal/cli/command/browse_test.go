package command

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// opener puts a program that opens addresses before all others.
func opener(t *testing.T, lines string) (dir string) {
	t.Helper()
	needs.Program(t, "sh")
	dir = t.TempDir()
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ncd "+dir+"\n"+lines), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// TestABrowserIsNotWaitedForNorKilled: what opens an address may become the browser. It
// isn't a member of the terminal's session, which ends with an interrupt or the window.
func TestABrowserIsNotWaitedForNorKilled(t *testing.T) {
	dir := opener(t, `echo "$1 $$" >new && mv new seen && exec sleep 60`)
	b := Browse("http://127.0.0.1:1/#code=x")
	var got []string
	for deadline := time.Now().Add(time.Minute); len(got) < 2; time.Sleep(5 * time.Millisecond) {
		raw, _ := os.ReadFile(filepath.Join(dir, "seen"))
		if got = strings.Fields(string(raw)); time.Now().After(deadline) {
			t.Fatal("nothing was opened")
		}
	}
	if got[0] != "http://127.0.0.1:1/#code=x" {
		t.Errorf("it opened %s", got[0])
	}
	stat, err := os.ReadFile("/proc/" + got[1] + "/stat")
	needs.Facility(t, "procfs", err == nil, "there is no /proc")
	if at := strings.Fields(string(stat)); at[5] != got[1] {
		t.Errorf("it belongs to session %s", at[5])
	}
	select {
	case err := <-b.Ended:
		t.Errorf("it ended: %v", err)
	default:
	}
	pid, err := strconv.Atoi(got[1])
	if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Fatalf("%s can't be ended", got[1])
	}
	if err := b.Failure(<-b.Ended); belay.CodeOf(err) != belay.CodeUnavailable {
		t.Errorf("its failure is %v", err)
	}
}

func TestWhatOpensNothingSaysSo(t *testing.T) {
	opener(t, "exit 3")
	b := Browse("x")
	if err := b.Failure(<-b.Ended); belay.CodeOf(err) != belay.CodeUnavailable {
		t.Errorf("an opener that fails: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	b = Browse("x")
	if err := b.Failure(<-b.Ended); belay.CodeOf(err) != belay.CodeUnavailable {
		t.Errorf("no opener: %v", err)
	}
}
