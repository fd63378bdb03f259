package sandbox

import (
	"slices"
	"testing"
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
