package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	"golang.org/x/sys/unix"
)

// Probe tries every layer, once in a process, with a helper that runs nothing.
func Probe() Machine { return found.get("", probe) }

// ProbeCached is Probe, but takes from a file what an earlier process found, and
// leaves there what this one does. A trial takes as long as a start; what it
// finds changes with the machine's start, the kernel, the program, the rights
// of the process and the kernel's settings, and with any of these it counts no
// longer.
//
// Only the best answer is ever kept: level L3. So a file that is wrong promises
// too much, never too little, and a promise isn't believed: each program's
// layers are read back before it begins. Then it doesn't run, and the machine
// is tried anew.
func ProbeCached(file string) Machine { return found.get(file, probe) }

// found is what this process knows of the machine.
var found finding

type finding struct {
	mu    sync.Mutex
	m     Machine
	known bool
	from  string // the file that said so; empty where it was tried
}

func (f *finding) get(file string, try func() Machine) Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known {
		return f.m
	}
	key := ""
	if file != "" {
		key = circumstances()
		if m, ok := recalled(file, key); ok {
			f.m, f.known, f.from = m, true, file
			tidy() // a trial would have
			return m
		}
	}
	f.m, f.known = try(), true
	if key != "" && f.m.Level == belay.L3 {
		keep(file, answer{key, f.m.Layers})
	}
	return f.m
}

// invalidate forgets what a file said, because a boundary didn't come to stand.
func (f *finding) invalidate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.from != "" {
		os.Remove(f.from) //nolint:errcheck // it is not there, or the next one meets the same
		f.m, f.known, f.from = Machine{}, false, ""
	}
}

// answer is the file: what was found, and when it counts.
type answer struct {
	Key    string        `json:"key"`
	Layers []belay.Layer `json:"layers"`
}

// maxAnswer is more than a file has.
const maxAnswer = 16 << 10

// recalled reads a file, if only this user can have written it.
func recalled(file, key string) (Machine, bool) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return Machine{}, false
	}
	f := os.NewFile(uintptr(fd), file)
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o022 != 0 || int(st.Uid) != os.Geteuid() {
		return Machine{}, false
	}
	var k answer
	b, err := io.ReadAll(io.LimitReader(f, maxAnswer))
	if err != nil || json.Unmarshal(b, &k) != nil || k.Key != key {
		return Machine{}, false
	}
	m := Machine{Root: isAdmin(), Layers: k.Layers}
	m.Level, m.Why = levelOf(m.Layers)
	return m, m.Level == belay.L3 && named(m.Layers) && groupsAsBefore(m.Layers)
}

// named reports whether every layer is there, in its place.
func named(all []belay.Layer) bool {
	return slices.EqualFunc(all, Layers, func(l belay.Layer, name string) bool { return l.Name == name })
}

// groupsAsBefore is false if groups can be had by now. No level wants them, so
// that they are the one thing in which an old answer could be too modest.
func groupsAsBefore(all []belay.Layer) bool {
	if all[slices.Index(Layers, boxinit.Cgroup)].State == belay.LayerApplied {
		return true
	}
	group, err := newCgroup(trialLimits)
	group.remove()
	return err != nil
}

// keep writes the file whole. Where that fails the next process tries again.
func keep(file string, k answer) {
	if os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		files.WriteWhole(files.System{}, file, func(w io.Writer) error { return json.NewEncoder(w).Encode(k) }) //nolint:errcheck // see above
	}
}

// facts are files that say what the kernel grants a process like this one. One
// that isn't there says something too.
var facts = []string{
	"/proc/sys/kernel/random/boot_id", "/proc/version", "/proc/self/limits", "/proc/self/attr/current",
	"/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
	"/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_pid_namespaces", "/proc/sys/user/max_net_namespaces",
	"/proc/sys/user/max_mnt_namespaces", "/proc/sys/user/max_ipc_namespaces", "/proc/sys/user/max_uts_namespaces",
	"/sys/kernel/security/lsm",
}

// rights are the lines of a process's status that say what it may do.
var rights = []string{"Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:"}

// circumstances is a digest of all that a trial's answer hangs on: the same
// digest, the same answer.
func circumstances() string {
	h := sha256.New()
	for _, path := range facts {
		b, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d %v\n%s\n", path, len(b), err == nil, b)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(status) {
		if slices.ContainsFunc(rights, func(r string) bool { return strings.HasPrefix(string(line), r) }) {
			h.Write(line)
		}
	}
	places := outside()
	for _, kind := range slices.Sorted(maps.Keys(places)) {
		fmt.Fprintf(h, "%s %d\n", kind, places[kind])
	}
	var st unix.Stat_t
	if unix.Stat("/proc/self/exe", &st) != nil {
		return ""
	}
	fmt.Fprintf(h, "exe %d %d %d %d %d\n", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
	return hex.EncodeToString(h.Sum(nil))
}

// isAdmin reports whether the runtime has the rights that namespaces want.
func isAdmin() bool {
	set, err := boxinit.Capabilities()
	return err == nil && set.Has(unix.CAP_SYS_ADMIN)
}
