package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	need "github.com/belay-run/belay/internal/testkit/needs"
	"golang.org/x/sys/unix"
)

// TestGroupsAreJoinedWithoutStoppingTheMachine: in version 1 by a thread, in
// version 2, where one group has all controllers, by the process.
func TestGroupsAreJoinedWithoutStoppingTheMachine(t *testing.T) {
	one := &cgroup{version: 1, dirs: map[string]string{"pids": "/cg/pids/belay/1", "memory": "/cg/memory/belay/1"}}
	if got, want := one.joins(), []string{"/cg/memory/belay/1/tasks", "/cg/pids/belay/1/tasks"}; !slices.Equal(got, want) {
		t.Errorf("version 1 is joined by %q", got)
	}
	if got := cgroupNames(one.joins()); got != "v1 memory pids" {
		t.Errorf("its groups are called %q", got)
	}
	two := &cgroup{version: 2, dirs: map[string]string{"pids": "/cg/belay/1", "memory": "/cg/belay/1"}}
	if got, want := two.joins(), []string{"/cg/belay/1/cgroup.procs"}; !slices.Equal(got, want) {
		t.Errorf("version 2 is joined by %q", got)
	}
	if got := cgroupNames(two.joins()); got != "v2" {
		t.Errorf("its groups are called %q", got)
	}
}

// TestAShareOfTheMemoryIsOfWhatThereIs makes groups of the default limits and
// reads what they hold: each a share, and all together less than there is.
// Guarantee: T70.
func TestAShareOfTheMemoryIsOfWhatThereIs(t *testing.T) {
	group, err := newCgroup(belay.DefaultProcessLimits)
	need.Facility(t, "cgroup", err == nil, "no groups can be made here")
	defer group.remove()
	hs, err := findCgroups()
	if err != nil {
		t.Fatal(err)
	}
	all, err := hs.memory()
	var info unix.Sysinfo_t
	if err := errors.Join(err, unix.Sysinfo(&info)); err != nil || all < 1<<20 || all > int64(info.Totalram)*int64(info.Unit) {
		t.Fatalf("there are %d bytes of memory, %v", all, err)
	}
	dir := group.dirs["memory"]
	limit := func(dir string) int64 { return max(first(dir, "memory.limit_in_bytes"), first(dir, "memory.max")) }
	share := int64(belay.DefaultProcessLimits.MemoryShare)
	if got := limit(dir); got > all/100*share || got < all/100*(share-1) {
		t.Errorf("the group has %d bytes of %d", got, all)
	}
	if got := limit(dir + "/.."); got > all/100*allPrograms || got < all/100*(allPrograms-1) {
		t.Errorf("all groups have %d bytes of %d", got, all)
	}
	if n := first(group.dirs["pids"], "pids.max"); n < int64(belay.DefaultProcessLimits.Processes) || n > int64(belay.DefaultProcessLimits.Processes)+helperThreads {
		t.Errorf("the group has %d processes", n)
	}
	smaller, err := newCgroup(belay.ProcessLimits{Memory: 1 << 20, MemoryShare: 75})
	if err != nil {
		t.Fatal(err)
	}
	defer smaller.remove()
	if got := limit(smaller.dirs["memory"]); got != 1<<20 {
		t.Errorf("the smaller of two limits is %d", got)
	}
}

// TestDefaultLimitsHoldWhereTheyCan: where a group can't be made a program whose
// limits nobody set runs without, and its layer says so; one whose limits
// somebody set doesn't run.
// Guarantee: T70.
func TestDefaultLimitsHoldWhereTheyCan(t *testing.T) {
	home := t.TempDir()
	found.mu.Lock()
	m, known, from := found.m, found.known, found.from
	found.m, found.known, found.from = strong(), true, ""
	found.mu.Unlock()
	defer func() {
		found.mu.Lock()
		defer found.mu.Unlock()
		found.m, found.known, found.from = m, known, from
	}()
	for _, c := range []struct {
		limits belay.ProcessLimits
		runs   bool
	}{
		{belay.DefaultProcessLimits, true},
		{belay.ProcessLimits{Processes: belay.DefaultProcessLimits.Processes, FileSize: 1 << 20}, true},
		{belay.ProcessLimits{Processes: 64}, false},
		{belay.ProcessLimits{Memory: 1 << 30}, false},
		{belay.ProcessLimits{MemoryShare: 10}, false},
		{belay.ProcessLimits{CPUQuota: 50}, false},
	} {
		b, err := New(belay.Boundary{Name: belay.BoundaryWorkspace, Limits: c.limits}, Options{Workspace: home})
		if err != nil {
			t.Fatal(err)
		}
		b.group = func(belay.ProcessLimits) (*cgroup, error) { return nil, unix.EBUSY }
		h, err := b.Prepare(exec.Command("/bin/true"))
		if !c.runs {
			if belay.CodeOf(err) != belay.CodeNotConfined || !errors.Is(err, unix.EBUSY) {
				t.Errorf("%+v: %v", c.limits, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.limits, err)
			continue
		}
		if got := h.(*Hold).intends[0].String(); got != "unavailable(EBUSY)" {
			t.Errorf("%+v: the layer is %s", c.limits, got)
		}
		h.Close()
	}
}

func TestTasksOfAUserAreCounted(t *testing.T) {
	if n := tasksOf(os.Geteuid()); n < 2 {
		t.Errorf("%d, and this program alone has several threads", n)
	}
	for release, want := range map[string]bool{"5.14.0-70.el9": true, "5.13.9": false, "6.1.0-rc3": true, "4.19.0": false, "5.14": true, "5.4-rc1": false, "": false, "new": false} {
		if got := atLeast(release, 5, 14); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}
