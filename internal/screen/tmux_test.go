package screen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/testkit/tmux"
)

// steering is the address at which the program in a terminal is told what to draw.
const steering = "SCREEN_TEST_STEERING"

func TestMain(m *testing.M) {
	if at := os.Getenv(steering); at != "" {
		if err := steered(at); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if how := os.Getenv(dying); how != "" {
		dies(how)
	}
	os.Exit(m.Run())
}

// order is what the program in a terminal is told; it answers with what it knows.
type order struct {
	Print []string
	Draw  *Region
	Flush bool // answer when it is on the terminal
	End   bool
}

type known struct{ Width, Height int } // of the last change of size

// steered draws on its terminal what it is told.
func steered(at string) error {
	terminal, err := Open(os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	defer terminal.Close()
	conn, err := net.Dial("unix", at)
	if err != nil {
		return err
	}
	defer conn.Close()
	var mu sync.Mutex
	var size known
	size.Width, size.Height = terminal.Size()
	go func() {
		for e := range terminal.Events() {
			if r, ok := e.(Resize); ok {
				mu.Lock()
				size = known(r)
				mu.Unlock()
			}
		}
	}()
	orders, answers := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return err
		}
		if o.End {
			terminal.Close()
		}
		terminal.Print(o.Print...)
		if o.Draw != nil {
			terminal.Draw(*o.Draw)
		}
		if o.Flush {
			terminal.flush()
		}
		mu.Lock()
		now := size
		mu.Unlock()
		if err := answers.Encode(now); err != nil || o.End {
			return err
		}
	}
}

// session is a run in a window of tmux: a program that draws what it is told.
type session struct {
	*drawing
	w       *tmux.Window
	t       *testing.T
	name    string
	orders  *json.Encoder
	answers *json.Decoder
	conn    net.Conn
}

// begin starts the program, below others if wrapper names some.
func begin(t *testing.T, m *tmux.Server, name string, seed uint64, width, height int, wrapper ...string) *session {
	t.Helper()
	at := filepath.Join(m.Dir, name)
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	args := append([]string{"env", steering + "=" + at}, wrapper...)
	w := m.Window(name, m.Dir, width, height, append(args, os.Args[0])...)
	l.(*net.UnixListener).SetDeadline(time.Now().Add(tmux.Patience)) //nolint:errcheck // it is a listener
	conn, err := l.Accept()
	if err != nil {
		t.Fatalf("%s: the program didn't start: %v\n%s", name, err, w.Screen())
	}
	return &session{drawing: newDrawing(seed, width, height), w: w, t: t, name: name,
		orders: json.NewEncoder(conn), answers: json.NewDecoder(bufio.NewReader(conn)), conn: conn}
}

func (s *session) tell(o order) (k known) {
	s.t.Helper()
	s.conn.SetDeadline(time.Now().Add(tmux.Patience)) //nolint:errcheck // it is a connection
	if err := s.orders.Encode(o); err != nil {
		s.t.Fatalf("%s: %v", s.name, err)
	}
	if err := s.answers.Decode(&k); err != nil {
		s.t.Fatalf("%s: the program ended: %v\n%s", s.name, err, s.w.Screen())
	}
	return k
}

// resize changes the window's size, while frames may be on their way, and waits until the
// program has drawn for it. At times it doesn't wait in tmux.
func (s *session) resize(width, height int) {
	s.t.Helper()
	s.w.Resize(width, height)
	s.e.width, s.e.height = width, height
	if s.e.reflows && s.random.IntN(2) == 0 {
		return
	}
	end := time.Now().Add(tmux.Patience)
	for s.tell(order{}) != (known{width, height}) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: the program never heard that it has %d × %d", s.name, width, height)
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.tell(order{Flush: true})
}

// last erases the region, prints a last line and returns what the terminal has when
// that has come.
func (s *session) last(captured func() string) string {
	s.t.Helper()
	const line = "the end of the run"
	s.tell(order{Print: []string{line}, Draw: &Region{}, Flush: true})
	for end := time.Now().Add(tmux.Patience); ; time.Sleep(10 * time.Millisecond) {
		if out, _, ok := strings.Cut(captured(), line); ok {
			return out
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: the last line didn't come", s.name)
		}
	}
}

// act prints, draws or resizes, as the seed has it.
func (s *session) act(resizes bool) (resized bool) {
	s.t.Helper()
	var o order
	switch n := s.random.IntN(10); {
	case n < 2:
		s.print(s.random.IntN(6))
		o.Print = s.taken()
	case n == 2:
		s.print(s.e.height + s.random.IntN(100))
		o.Print = s.taken()
	case n == 3 && resizes:
		s.resize(20+s.random.IntN(120), 6+s.random.IntN(50))
		return true
	default:
		s.live()
		o.Draw = &s.region
	}
	o.Flush = s.random.IntN(3) == 0
	s.tell(o)
	return false
}

// taken returns the lines that the model of the screen would print.
func (s *session) taken() []string {
	lines := s.lines
	s.lines = nil
	return lines
}

// sample returns how many of 300 runs to make: a tenth, unless all are asked for.
func sample(t *testing.T) (runs int, seed uint64) {
	if os.Getenv("BELAY_SCREEN") == "full" {
		return 300, 0
	}
	seed = rand.Uint64N(1 << 32)
	if was := os.Getenv("BELAY_SCREEN_SEED"); was != "" {
		n, err := strconv.ParseUint(was, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("seed %d; BELAY_SCREEN_SEED=%d runs the same again", seed, seed)
	return 30, seed
}

var mark = regexp.MustCompile(`<(\d+)>`)

// marks returns how many finished lines are missing, and checks that the others are
// there once and in order. Of the lines before the first one it says nothing.
func (s *session) marks(text string) (missing int) {
	s.t.Helper()
	first, last := -1, -1
	for _, m := range mark.FindAllStringSubmatch(text, -1) {
		i, _ := strconv.Atoi(m[1])
		switch {
		case first < 0:
			first = i
		case i <= last:
			s.t.Fatalf("%s, seed %d: line %d comes behind line %d:\n%s", s.name, s.seed, i, last, excerpt(text, i))
		default:
			missing += i - last - 1
		}
		last = i
	}
	return missing + len(s.printed) - 1 - last
}

// complete checks that the finished lines are there as they were printed, in order. The
// breaks between rows don't count: tmux forgets some where a wide character was wrapped.
func (s *session) complete(out string) {
	s.t.Helper()
	out = strings.Join(strings.Fields(out), "")
	rest := out
	for i, l := range s.printed {
		_, after, ok := strings.Cut(rest, l)
		if !ok {
			s.t.Fatalf("%s, seed %d: line %d of %d is lost, or in another place:\n%s\nhere:\n%s", s.name, s.seed, i, len(s.printed), l, excerpt(out, i))
		}
		rest = after
	}
}

// excerpt returns what is around the place where a line should be.
func excerpt(out string, line int) string {
	at := strings.Index(out, fmt.Sprintf("<%d>", line-1))
	return out[max(0, at-1000):min(len(out), max(0, at)+3000)]
}

// TestTmuxKeepsEveryLine draws blocks, regions and sizes in tmux: each finished line is
// in its scrollback once, in order, and of each resize at most one region stays.
func TestTmuxKeepsEveryLine(t *testing.T) {
	m := tmux.New(t)
	runs, seed := sample(t)
	for i := range runs {
		name := fmt.Sprintf("run-%d", i)
		s := begin(t, m, name, seed+uint64(i), 80, 24)
		s.wide = 8 // tmux 3.3 loses count of its rows, and the cursor's place, when it wraps a wide character anew
		resizes := 0
		for range 40 {
			if s.act(true) {
				resizes++
			}
		}
		out := s.last(s.w.All)
		s.complete(out)
		s.marks(out)
		stale := map[string]bool{}
		for _, found := range regexp.MustCompile(`live(\d+)\.`).FindAllStringSubmatch(out, -1) {
			stale[found[1]] = true
		}
		if len(stale) > resizes {
			t.Fatalf("%s, seed %d: %d regions stayed after %d resizes:\n%s", name, s.seed, len(stale), resizes, out)
		}
		s.tell(order{End: true})
		s.w.Close()
	}
}

// TestScreenKeepsEveryLine does the same in GNU screen: without another size all is
// there, and a resize costs at most as many lines as the region has. It takes lines from
// the beginning of the scrollback, whatever a program does; they don't count.
func TestScreenKeepsEveryLine(t *testing.T) {
	needs.Program(t, "screen")
	dir, err := os.MkdirTemp("", "screen") // its sockets are there, and it wants it for itself
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("SCREENDIR", dir)
	m := tmux.New(t)
	runs, seed := sample(t)
	for i := range (runs + 2) / 3 {
		name := fmt.Sprintf("run-%d", i)
		s := begin(t, m, name, seed+uint64(i), 80, 24, "screen", "-c", os.DevNull, "-U", "-h", "100000", "-S", name)
		s.wide = 0 // its copy doesn't have them
		s.e.reflows = false
		may := 0
		for range 40 {
			before := s.region.cut(s.e.width, s.e.height)
			if s.act(i%2 == 1) {
				may += len(before.Lines)
			}
		}
		out := s.last(s.hardcopy)
		if i%2 == 0 {
			s.complete(out)
		}
		if lost := s.marks(strings.Join(strings.Fields(out), "")); lost > may {
			t.Fatalf("%s, seed %d: %d of %d lines were lost, at most %d may be:\n%s", name, s.seed, lost, len(s.printed), may, out)
		}
		s.tell(order{End: true})
		s.w.Close()
	}
}

// hardcopy returns all that GNU screen has of its window.
func (s *session) hardcopy() string {
	to := filepath.Join(s.w.Dir, s.name+".txt")
	if out, err := exec.Command("screen", "-S", s.name, "-X", "hardcopy", "-h", to).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	text, _ := os.ReadFile(to) // it is written beside; the next one may be there
	return string(text)
}
