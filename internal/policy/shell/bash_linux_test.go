package shell

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/testkit/sample"
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

// shim records the path it was started by and its arguments, and prints and
// answers what may make a shell start more.
func shim() {
	name := execName()
	line, _ := json.Marshal(append([]string{name}, os.Args[1:]...)) // texts
	syscall.Write(recordFd, append(line, '\n'))                     //nolint:errcheck // a record that is lost is missed by the test
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

// started is what a shell did with one source.
type started struct {
	Programs [][]string // path and arguments
	Changed  []string   // files of its folder that aren't as they were
	Late     bool       // it was ended because it took too long
}

// shells are those that sources are played in: bash, and two of those that
// /bin/sh may be. Argv0 is what the shell is started as.
var shells = []struct {
	name, argv0 string
	dialect     Dialect
}{{"bash", "bash", Bash}, {"dash", "sh", Sh}, {"busybox", "sh", Sh}}

// TestShellsStartNothingThatIsntListed holds the classifier against real shells:
// in a root where every program is a shim, the programs that a shell starts, with
// their arguments, are among those that the classifier lists, and what it calls
// read-only changes no file; unless it says that nobody can tell.
// Guarantee: G22.
func TestShellsStartNothingThatIsntListed(t *testing.T) {
	for _, s := range shells {
		t.Run(s.name, func(t *testing.T) {
			file, err := exec.LookPath(s.name)
			needs.Facility(t, s.name, err == nil, "no such shell on the PATH")
			differ(t, player{file: file, argv0: s.argv0, dialect: s.dialect})
		})
	}
}

// differ plays sources in a shell: BELAY_SHELLFUZZ says how many that have a
// judgement, or for how long.
func differ(t *testing.T, p player) {
	p.count, p.until = sample.Of(1000/fewer), time.Now().Add(3*time.Hour)
	if s := os.Getenv("BELAY_SHELLFUZZ"); s != "" {
		if d, err := time.ParseDuration(s); err == nil {
			p.count, p.until = math.MaxInt, time.Now().Add(d)
		} else if p.count, err = strconv.Atoi(s); err != nil {
			t.Fatalf("BELAY_SHELLFUZZ: %v", err)
		}
	}
	seed, err := strconv.ParseUint(os.Getenv("BELAY_SHELLSEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	const pool = 2
	p.count /= pool
	var wg sync.WaitGroup
	sums := make([]tally, pool)
	for i := range pool {
		r, err := newRoot(t, p.file, p.argv0)
		needs.Facility(t, "userns", err == nil, fmt.Sprint(err))
		wg.Go(func() { sums[i] = p.play(t, r, newGenerator(seed+uint64(i))) })
	}
	wg.Wait()
	for _, s := range sums[1:] {
		sums[0].add(s)
	}
	s := sums[0]
	fmt.Printf("shellfuzz %s: seed %d, %d sources, %d judged, %d that nobody can tell; %d programs started by %d of the judged, %d ended late; %d differences in the dangerous direction\n",
		path.Base(p.file), seed, s.sources, s.judged, s.sources-s.judged, s.programs, s.busy, s.late, s.missing)
	if s.judged*8 < s.sources || s.busy*3 < s.judged {
		t.Errorf("too few sources say anything")
	}
	if s.missing > 0 {
		t.Errorf("%d sources did what isn't listed", s.missing)
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

// player plays sources in a shell.
type player struct {
	file, argv0 string
	dialect     Dialect
	count       int
	until       time.Time
}

// play runs sources in the new root and compares. One of which nobody can tell
// what it does isn't run: whatever that is, it was said.
func (p player) play(t *testing.T, r *root, g *generator) tally {
	var s tally
	o := Options{Dir: "/w", Workspace: "/w", Home: "/w/home", Dialect: p.dialect}
	for s.judged < p.count && time.Now().Before(p.until) {
		src := g.source()
		if strings.Contains(src, "\x00") {
			continue
		}
		s.sources++
		rep := Classify(src, o)
		if rep.Unheld() == Unparsable {
			continue
		}
		s.judged++
		got, err := r.run(src)
		if err != nil {
			t.Errorf("%q: %v", src, err)
			return s
		}
		if got.Late {
			s.late++
		}
		if len(got.Programs) > 0 {
			s.busy++
		}
		s.programs += len(got.Programs)
		if why := beyond(rep, got); why != "" {
			s.missing++
			t.Errorf("%q\n %s; listed are %v, %s", src, why, commandNames(rep), rep.Class)
		}
	}
	return s
}

// beyond says what a shell did that a report doesn't say, or nothing.
func beyond(rep Report, got started) string {
	if rep.Class == ReadOnly && len(got.Changed) > 0 {
		return fmt.Sprintf("changed %v", got.Changed)
	}
	for _, p := range got.Programs {
		if !lists(rep, p) {
			return fmt.Sprintf("started %q", p)
		}
	}
	return ""
}

// lists reports whether a report names a program with its arguments, or as a
// wrapper. A file that is sourced isn't read, so what it starts isn't named; that
// it runs is.
func lists(r Report, program []string) bool {
	base := path.Base(program[0])
	for _, c := range r.Commands {
		if (c.Name == "." || c.Name == "source") && c.Class != ReadOnly {
			return true
		}
		if path.Base(c.Name) == base && (fits(c, 0, program[1:]) || c.Class == Destructive && lookup(base) == nil) ||
			slices.ContainsFunc(c.Wrapped, func(w string) bool { return path.Base(w) == base }) {
			return true
		}
	}
	return false
}

// pipeNumber is what stands for a process substitution; its number means nothing.
var pipeNumber = regexp.MustCompile("/dev/fd/[0-9]+")

// fits reports whether arguments are those of a command from one on; one that
// isn't literal stands for any number of them.
func fits(c Command, from int, args []string) bool {
	for i := from; i < len(c.Args); i++ {
		if !c.Literal(i) {
			for skip := 0; skip <= len(args); skip++ {
				if fits(c, i+1, args[skip:]) {
					return true
				}
			}
			return false
		}
		if len(args) == 0 || pipeNumber.ReplaceAllString(args[0], "") != pipeNumber.ReplaceAllString(c.Args[i], "") {
			return false
		}
		args = args[1:]
	}
	return len(args) == 0
}
