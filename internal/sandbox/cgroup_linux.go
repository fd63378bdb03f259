package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
	"golang.org/x/sys/unix"
)

// cgroupParent is the group that all groups of this program lie in.
const cgroupParent = "belay"

// controllers are the parts of a cgroup that limits need.
var controllers = []string{"memory", "pids", "cpu"}

// hierarchies are the folders of the controllers of this machine: in version 2
// one for all of them, in version 1 one for each.
type hierarchies struct {
	version int
	at      map[string]string
}

// findCgroups reads where the controllers are mounted. Version 2 is taken if it
// has all of them.
func findCgroups() (hierarchies, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return hierarchies{}, err
	}
	one := hierarchies{version: 1, at: map[string]string{}}
	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		switch g[0] {
		case "cgroup2":
			have, err := os.ReadFile(filepath.Join(f[4], "cgroup.controllers"))
			list := strings.Fields(string(have))
			if err == nil && !slices.ContainsFunc(controllers, func(c string) bool { return !slices.Contains(list, c) }) {
				return hierarchies{version: 2, at: map[string]string{"memory": f[4], "pids": f[4], "cpu": f[4]}}, nil
			}
		case "cgroup":
			for opt := range strings.SplitSeq(g[2], ",") {
				if slices.Contains(controllers, opt) {
					one.at[opt] = f[4]
				}
			}
		}
	}
	if len(one.at) == 0 {
		return one, unix.ENOENT
	}
	return one, nil
}

// cgroup is the groups of one program.
type cgroup struct {
	version int
	dirs    map[string]string // by controller
}

var cgroupCount atomic.Int64

// sweepOnce removes, once in a process, what runtimes left that are gone.
var sweepOnce sync.Once

// newCgroup makes groups with the limits that l asks for; nil if it asks for
// none that a group holds.
func newCgroup(l belay.ProcessLimits) (*cgroup, error) {
	if !grouped(l) {
		return nil, nil
	}
	hs, err := findCgroups()
	if err != nil {
		return nil, err
	}
	if l.MemoryShare > 0 {
		all, err := hs.memory()
		if err != nil {
			return nil, err
		}
		if n := all / 100 * int64(l.MemoryShare); l.Memory == 0 || n < l.Memory {
			l.Memory = n
		}
	}
	want := cgroupFiles(l)
	sweepOnce.Do(func() { sweep(hs) })
	start, err := process.StartTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%d-%s-%d", os.Getpid(), start, cgroupCount.Add(1))
	c := &cgroup{version: hs.version, dirs: map[string]string{}}
	for _, controller := range controllers {
		if want[controller] == nil {
			continue
		}
		at, ok := hs.at[controller]
		if !ok {
			err = fmt.Errorf("controller %s: %w", controller, unix.ENOENT)
		}
		if err == nil {
			err = hs.enable(at)
		}
		c.dirs[controller] = filepath.Join(at, cgroupParent, name)
		if err == nil {
			err = makeGroup(c.dirs[controller])
		}
		for _, f := range want[controller][hs.version] {
			if err == nil {
				err = os.WriteFile(filepath.Join(c.dirs[controller], f.name), []byte(f.value), 0)
			}
		}
		if err != nil {
			c.remove()
			return nil, err
		}
	}
	if at, ok := c.dirs["memory"]; ok {
		hs.bound(filepath.Dir(at))
	}
	return c, nil
}

// allPrograms is the percentage of the memory that all programs have together,
// whatever each of them has: some of it is the runtime's.
const allPrograms = 90

// bound keeps a parent's groups from using up the memory together. Each has its
// own limit besides, so that where this can't be had nothing is refused.
func (hs hierarchies) bound(parent string) {
	all, err := hs.memory()
	if err != nil {
		return
	}
	name := map[int]string{1: "memory.limit_in_bytes", 2: "memory.max"}[hs.version]
	os.WriteFile(filepath.Join(parent, name), []byte(strconv.FormatInt(all/100*allPrograms, 10)), 0) //nolint:errcheck // see above
}

// enable lets groups below the parent have controllers, in version 2.
func (hs hierarchies) enable(at string) error {
	parent := filepath.Join(at, cgroupParent)
	if err := os.MkdirAll(parent, 0o755); err != nil || hs.version == 1 {
		return err
	}
	for _, dir := range []string{at, parent} {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +pids +cpu"), 0); err != nil {
			return err
		}
	}
	return nil
}

// memory is how much there is for the groups: the machine's, or what the group
// has that the runtime is confined in, as in a container.
func (hs hierarchies) memory() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("read the size of the memory: %w", err)
	}
	all := int64(info.Totalram) * int64(info.Unit)
	dir, known := hs.at["memory"]
	for _, name := range []string{"memory.limit_in_bytes", "memory.max"} {
		if n := first(dir, name); known && n > 0 {
			all = min(all, n)
		}
	}
	return all, nil
}

// Memory is how much there is for programs, in bytes; 0: that can't be found out.
func Memory() int64 {
	hs, _ := findCgroups() //nolint:errcheck // without groups it is the machine's
	all, err := hs.memory()
	if err != nil {
		return 0
	}
	return all
}

type cgroupFile struct{ name, value string }

// cgroupFiles are the files to write, by controller and version.
func cgroupFiles(l belay.ProcessLimits) map[string]map[int][]cgroupFile {
	all := map[string]map[int][]cgroupFile{}
	if l.Memory > 0 {
		n := strconv.FormatInt(l.Memory, 10)
		all["memory"] = map[int][]cgroupFile{1: {{"memory.limit_in_bytes", n}}, 2: {{"memory.max", n}, {"memory.swap.max", "0"}}}
	}
	if l.Processes > 0 {
		all["pids"] = map[int][]cgroupFile{1: {{"pids.max", strconv.Itoa(l.Processes + 1)}}, 2: {{"pids.max", strconv.Itoa(l.Processes + helperThreads)}}}
	}
	if grouped(l) { // without a quota too: a thousand processes of a group get no more of the processors than one of outside
		all["cpu"] = map[int][]cgroupFile{}
	}
	if l.CPUQuota > 0 {
		const period = 100_000 // microseconds
		n := strconv.Itoa(l.CPUQuota * period / 100)
		all["cpu"] = map[int][]cgroupFile{1: {{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", n}}, 2: {{"cpu.max", n + " " + strconv.Itoa(period)}}}
	}
	return all
}

// helperThreads is room for the helper, whose threads a group counts too; in
// version 1 only its first one is there.
const helperThreads = 16

// joins are the files that the helper writes itself into. In version 1 that is
// its first thread alone, which starts the program: to move a whole process the
// kernel stops all threads of the machine from being made, and waits for them,
// which takes longer than all else that a boundary does.
func (c *cgroup) joins() []string {
	name := "cgroup.procs"
	if c.version == 1 {
		name = "tasks"
	}
	var all []string
	for _, d := range c.dirs {
		if p := filepath.Join(d, name); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

// cgroupNames says which groups files belong to by which they are joined.
func cgroupNames(procs []string) string {
	version := "v1"
	var names []string
	for _, p := range procs {
		up := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(p))))
		if slices.Contains(controllers, up) || strings.Contains(up, ",") {
			names = append(names, up)
			continue
		}
		version = "v2"
	}
	return strings.TrimSpace(version + " " + strings.Join(names, " "))
}

// makeGroup makes a group and those above it, which another process that has
// just ended its last program may be removing.
func makeGroup(dir string) (err error) {
	for range 20 {
		if err = os.MkdirAll(dir, 0o755); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

// remove gives the groups back. The last process may still be leaving them.
func (c *cgroup) remove() {
	if c == nil {
		return
	}
	for _, d := range c.dirs {
		for range 200 {
			err := os.Remove(d)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		os.Remove(filepath.Dir(d)) //nolint:errcheck // others have theirs in it
	}
}

// tidy sweeps in a process that may make no group of its own.
func tidy() {
	if hs, err := findCgroups(); err == nil {
		sweepOnce.Do(func() { sweep(hs) })
	}
}

// sweep removes the groups of runtimes that are gone. A group that has
// processes stays.
func sweep(hs hierarchies) {
	for _, at := range hs.at {
		entries, _ := os.ReadDir(filepath.Join(at, cgroupParent))
		for _, e := range entries {
			f := strings.Split(e.Name(), "-")
			if len(f) != 3 {
				continue
			}
			pid, err := strconv.Atoi(f[0])
			if err == nil && !process.Alive(pid, f[1]) {
				os.Remove(filepath.Join(at, cgroupParent, e.Name())) //nolint:errcheck // it isn't empty, or another was faster
			}
		}
	}
}
