package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/needs"
)

// This binary is three things: the test, the helper that is the first process
// of the new root, and the shim that stands at the path of every program there.
const (
	helperName  = "belay-shell-root" // argv[0] of the helper
	shimMark    = "/.shims"          // a file that only the new root has
	recordFd    = 200                // where shims say that they were started
	shellInRoot = "/.bash"
)

func TestMain(m *testing.M) {
	if _, err := os.Stat(shimMark); err == nil && os.Args[0] != helperName {
		shim()
	}
	if os.Args[0] == helperName {
		if err := helper(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// shim records the path it was started by, and prints and answers what may make
// bash start more.
func shim() {
	name := execName()
	syscall.Write(recordFd, []byte(name+"\n")) //nolint:errcheck // a record that is lost is missed by the test
	switch base := path.Base(name); base {
	case "wc", "nproc", "date":
		fmt.Println("3")
	case "cat":
		fmt.Println("alpha beta")
	case "id":
		fmt.Println("a[$(evil)]")
	case "grep", "beta":
		os.Exit(1)
	}
	os.Exit(0)
}

// execName is the path that this process was started by, as the kernel tells it.
func execName() string {
	pairs, _ := unix.Auxv()
	for _, p := range pairs {
		if p[0] == 31 { // AT_EXECFN
			return unix.BytePtrToString(*(**byte)(unsafe.Pointer(&p[1])))
		}
	}
	return "unknown"
}

// started is what bash started of one source.
type started struct {
	Programs []string
	Late     bool // it was ended because it took too long
}

// TestBashStartsNothingThatIsntListed holds the classifier against bash itself:
// in a root where every program is a shim, the programs that bash starts are
// among those that the classifier lists, unless it says that nobody can tell.
func TestBashStartsNothingThatIsntListed(t *testing.T) {
	for name, count := range map[string]int{"bash": 2000, "dash": 500} { // dash is what /bin/sh is on many systems
		t.Run(name, func(t *testing.T) {
			shell, err := exec.LookPath(name)
			needs.Facility(t, name, err == nil, "no such shell on the PATH")
			differ(t, shell, count/fewer)
		})
	}
}

// differ plays sources in a shell; BELAY_SHELLFUZZ says how many.
func differ(t *testing.T, shell string, count int) {
	var err error
	if s := os.Getenv("BELAY_SHELLFUZZ"); s != "" {
		if count, err = strconv.Atoi(s); err != nil {
			t.Fatalf("BELAY_SHELLFUZZ: %v", err)
		}
	}
	seed, err := strconv.ParseUint(os.Getenv("BELAY_SHELLSEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	const pool = 2
	var wg sync.WaitGroup
	sums := make([]tally, pool)
	for i := range pool {
		r, err := newRoot(t, shell)
		needs.Facility(t, "userns", err == nil, fmt.Sprint(err))
		wg.Go(func() { sums[i] = r.play(t, newGenerator(seed+uint64(i)), count/pool) })
	}
	wg.Wait()
	for _, s := range sums[1:] {
		sums[0].add(s)
	}
	s := sums[0]
	t.Logf("seed %d: %d sources, %d with a judgement, %d that nobody can tell; bash started %d programs for %d of the former; %d ended late", seed, s.sources, s.judged, s.sources-s.judged, s.programs, s.busy, s.late)
	if s.judged*4 < s.sources || s.busy*3 < s.judged {
		t.Errorf("too few sources say anything")
	}
	if s.missing > 0 {
		t.Errorf("%d sources started what isn't listed", s.missing)
	}
}

type tally struct{ sources, judged, busy, programs, missing, late int }

func (a *tally) add(b tally) {
	a.sources += b.sources
	a.judged += b.judged
	a.busy += b.busy
	a.programs += b.programs
	a.missing += b.missing
	a.late += b.late
}

// play runs sources in the new root and compares.
func (r *root) play(t *testing.T, g *generator, count int) tally {
	var s tally
	o := Options{Dir: "/w", Workspace: "/w", Home: "/w/home"}
	for s.sources < count {
		src := g.source()
		if strings.Contains(src, "\x00") {
			continue
		}
		s.sources++
		got, err := r.run(src)
		if err != nil {
			t.Errorf("%q: %v", src, err)
			return s
		}
		if got.Late {
			s.late++
		}
		rep := Classify(src, o)
		if rep.Class == Unparsable {
			continue
		}
		if s.judged++; len(got.Programs) > 0 {
			s.busy++
		}
		s.programs += len(got.Programs)
		for _, p := range got.Programs {
			if !lists(rep, p) {
				s.missing++
				t.Errorf("%q\n started %s; listed are %v, %s", src, p, commandNames(rep), rep.Class)
				break
			}
		}
	}
	return s
}

// lists tells whether a report names a program, as a command or as a wrapper. A
// file that is sourced isn't read, so what it starts isn't named; that it runs is.
func lists(r Report, program string) bool {
	base := path.Base(program)
	for _, c := range r.Commands {
		if (c.Name == "." || c.Name == "source") && c.Class != ReadOnly {
			return true
		}
		if path.Base(c.Name) == base || slices.ContainsFunc(c.Wrapped, func(w string) bool { return path.Base(w) == base }) {
			return true
		}
	}
	return false
}
