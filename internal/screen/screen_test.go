package screen

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// drawing is a run of a screen on an emulator: frames are drawn when the test says so.
type drawing struct {
	*Screen
	e       *emulator
	seed    uint64
	random  *rand.Rand
	printed []string
	regions int
	wide    int // columns of a text that may have wide characters
}

func newDrawing(seed uint64, width, height int) *drawing {
	d := &drawing{e: newEmulator(width, height), seed: seed, wide: 1000, random: rand.New(rand.NewPCG(seed, 1))}
	d.Screen = &Screen{wake: make(chan struct{}, 1)}
	d.size = func() (int, int) { return d.e.width, d.e.height }
	return d
}

func (d *drawing) draw() {
	f, _ := d.frame()
	io.WriteString(d.e, f) //nolint:errcheck // an emulator takes everything
}

// text returns so many columns of text, some of them wide.
func (d *drawing) text(width int) string {
	var b strings.Builder
	for n := 0; n < width; n++ {
		if d.random.IntN(20) == 0 && n < d.wide {
			b.WriteString("界")
			n++
		} else {
			b.WriteByte("abcdefghij"[n%10])
		}
	}
	return b.String()
}

func (d *drawing) print(n int) {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("<%d>%s.", len(d.printed)+i, d.text(d.random.IntN(2*d.e.width)))
	}
	d.printed = append(d.printed, lines...)
	d.Print(lines...)
}

// live draws a region; each of its lines begins with "live" and the region's number.
func (d *drawing) live() {
	d.regions++
	r := Region{Lines: make([]string, 1+d.random.IntN(8)), Cursor: d.random.IntN(4) > 0}
	for i := range r.Lines {
		r.Lines[i] = fmt.Sprintf("live%d.%d \x1b[1m%s", d.regions, i, d.text(d.random.IntN(2*d.e.width)))
	}
	r.Row, r.Col = d.random.IntN(len(r.Lines)), d.random.IntN(d.e.width)
	d.Draw(r)
}

// whole checks that each printed line is there once, in order. Behind a row of a region
// that was wrapped, one may begin in the middle.
func (d *drawing) whole(t *testing.T, seed uint64) {
	t.Helper()
	text := strings.Join(d.e.text(), "\n")
	rest := text
	for i, l := range d.printed {
		_, after, ok := strings.Cut(rest, l)
		if !ok {
			t.Fatalf("seed %d: line %d of %d is lost:\n%s", seed, i, len(d.printed), text)
		}
		rest = after
	}
	if n := strings.Count(text, "<"); n != len(d.printed) {
		t.Fatalf("seed %d: %d lines were printed, %d are there", seed, len(d.printed), n)
	}
}

// stale returns the numbers of the regions that are on the terminal.
func (d *drawing) stale() map[string]bool {
	seen := map[string]bool{}
	for _, l := range d.e.text() {
		if _, l, ok := strings.Cut(l, "live"); ok {
			number, _, _ := strings.Cut(l, ".")
			seen[number] = true
		}
	}
	return seen
}

// TestResizesAtAnyMoment draws blocks and regions in any order, while frames are on their
// way to a terminal that gets other sizes between any two of their characters. The screen
// learns a size late, or that one came which the terminal has no more. Each finished line
// is there once, in order, and of each resize at most one region stays.
func TestResizesAtAnyMoment(t *testing.T) {
	for seed := range uint64(300) {
		d := newDrawing(seed, 60, 20)
		sizes, known := [][2]int{{60, 20}}, 0
		d.size = func() (int, int) { return sizes[known][0], sizes[known][1] }
		wire := ""
		for range 100 {
			switch d.random.IntN(8) {
			case 0:
				d.print(d.random.IntN(6))
			case 1:
				d.print(d.random.IntN(50))
			case 2:
				w, h := 20+d.random.IntN(100), 6+d.random.IntN(40)
				sizes = append(sizes, [2]int{w, h})
				d.e.resize(w, h)
			case 3:
				known += d.random.IntN(len(sizes) - known)
				d.Redraw()
			case 4: // some of it comes
				for range d.random.IntN(2000) {
					_, _, n, _ := ansi.DecodeSequence(wire, 0, nil)
					io.WriteString(d.e, wire[:n]) //nolint:errcheck // an emulator takes everything
					wire = wire[n:]
				}
			default:
				d.live()
			}
			f, _ := d.frame()
			wire += f
		}
		d.ended = true
		f, _ := d.frame()
		io.WriteString(d.e, wire+f) //nolint:errcheck // an emulator takes everything
		d.whole(t, seed)
		if d.e.problem != "" {
			t.Fatalf("seed %d: it wrote %s", seed, d.e.problem)
		}
		if stale, most := d.stale(), len(sizes)-1; len(stale) > most {
			t.Fatalf("seed %d: %d regions stayed after %d resizes: %v\n%s", seed, len(stale), most, stale, strings.Join(d.e.text(), "\n"))
		}
	}
}

// TestAResizeLeavesNothing: nothing of a region stays, but of one that has no room in the
// new size, or whose first row has the cursor and is wrapped before it.
func TestAResizeLeavesNothing(t *testing.T) {
	for seed := range uint64(60) {
		d := newDrawing(seed, 60, 20)
		may := 0
		for range 60 {
			switch d.random.IntN(6) {
			case 0:
				d.print(d.random.IntN(d.e.height + 30))
			case 1:
				before := d.e.pushed
				d.e.resize(20+d.random.IntN(100), 6+d.random.IntN(40))
				if d.e.pushed > before || d.drawn.Row == 0 && d.drawn.Col >= d.e.width {
					may++
				}
				d.Redraw()
			default:
				d.live()
			}
			d.draw()
		}
		d.ended = true
		d.draw()
		d.whole(t, seed)
		if stale := d.stale(); len(stale) > may {
			t.Fatalf("seed %d: %d regions stayed, at most %d may", seed, len(stale), may)
		}
	}
}

// TestATerminalWithoutReflow cuts its lines instead of wrapping them. Whatever size it
// gets, no line is lost.
func TestATerminalWithoutReflow(t *testing.T) {
	for seed := range uint64(100) {
		d := newDrawing(seed, 60, 20)
		d.e.reflows = false
		for range 60 {
			switch d.random.IntN(5) {
			case 0:
				d.print(d.random.IntN(30))
			case 1:
				d.e.resize(20+d.random.IntN(100), 6+d.random.IntN(40))
				d.Redraw()
			default:
				d.live()
			}
			d.draw()
		}
		d.ended = true
		d.draw()
		if stale := d.stale(); len(stale) > 0 {
			t.Fatalf("seed %d: %d regions stayed", seed, len(stale))
		}
		there := map[string]int{}
		for _, l := range d.e.text() {
			number, _, _ := strings.Cut(l, ">")
			there[number]++
		}
		for i := range d.printed {
			if n := there[fmt.Sprintf("<%d", i)]; n != 1 {
				t.Fatalf("seed %d: line %d is there %d times", seed, i, n)
			}
		}
	}
}

// TestNothingChangedWritesNothing: what is on the terminal isn't written again.
func TestNothingChangedWritesNothing(t *testing.T) {
	d := newDrawing(1, 60, 20)
	d.live()
	d.draw()
	d.Draw(d.region)
	if f, _ := d.frame(); f != "" {
		t.Errorf("the same region was written again: %q", f)
	}
}

// slowWriter notes when something is written, and blocks while its gate is shut.
type slowWriter struct {
	gate  chan struct{}
	times []time.Time
	text  strings.Builder
	err   error
}

func (w *slowWriter) Write(p []byte) (int, error) {
	if w.gate != nil {
		<-w.gate
	}
	w.times = append(w.times, time.Now())
	w.text.Write(p)
	return len(p), w.err
}

// TestFramesAreFew draws as fast as it can for a second.
func TestFramesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{}
		s := New(w, func() (int, int) { return 80, 24 }, "", "")
		for i := range 1000 {
			s.Draw(Region{Lines: []string{fmt.Sprint(i)}})
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := len(w.times); n < 15 || n > 22 {
			t.Errorf("%d frames in a second", n)
		}
		before := w.text.Len()
		time.Sleep(time.Minute)
		if w.text.Len() != before+len(last(w.text.String(), syncOn)) && w.text.Len() != before {
			t.Errorf("%d bytes were written while nothing changed", w.text.Len()-before)
		}
		s.Close()
	})
}

func last(s, sep string) string { return s[strings.LastIndex(s, sep):] }

// TestABlockedTerminalBlocksNobody prints more than is kept for a terminal that takes
// nothing for a while.
func TestABlockedTerminalBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{gate: make(chan struct{})}
		s := New(w, func() (int, int) { return 80, 24 }, "", "")
		s.Print("first")
		synctest.Wait() // it hangs in the write
		long := strings.Repeat("x", 1<<20)
		for i := range 20 {
			s.Print(fmt.Sprint("line ", i, long))
		}
		began := time.Now()
		s.Close()
		if d := time.Since(began); d > closeTime {
			t.Errorf("Close waited for %s", d)
		}
		close(w.gate)
		<-s.over
		got := w.text.String()
		if !strings.Contains(got, "[13 lines aren't shown") || !strings.Contains(got, "line 19") || strings.Contains(got, "line 12x") {
			t.Errorf("it wrote %d bytes: %.200q", len(got), got)
		}
	})
}

// TestATerminalThatIsGone ends the screen, and what is printed then is kept nowhere.
func TestATerminalThatIsGone(t *testing.T) {
	w := &slowWriter{err: errors.New("gone")}
	s := New(w, func() (int, int) { return 80, 24 }, "", "")
	s.Print("a")
	<-s.over
	for range 3 {
		s.Print("b")
	}
	s.Pause()
	s.Close()
	if len(s.lines) != 0 {
		t.Errorf("it keeps %d lines", len(s.lines))
	}
}

// TestPauseGivesTheTerminalAway: the region goes, the modes are off, and nothing is
// written until Resume.
func TestPauseGivesTheTerminalAway(t *testing.T) {
	w := &slowWriter{}
	s := New(w, func() (int, int) { return 80, 24 }, "<on>", "<off>")
	s.Draw(Region{Lines: []string{"live"}, Cursor: true})
	s.flush()
	s.Print("one")
	s.Pause()
	got := w.text.String()
	if !strings.HasPrefix(got, "<on>") || !strings.HasSuffix(got, "<off>") || !strings.Contains(got, showCursor) || strings.Count(got, "one") != 1 {
		t.Errorf("before: %q", got)
	}
	s.Print("two")
	s.Pause()
	if now := w.text.String(); now != got {
		t.Errorf("meanwhile: %q", now[len(got):])
	}
	s.Resume()
	s.flush()
	s.Close()
	if now := w.text.String()[len(got):]; !strings.HasPrefix(now, "<on>") || strings.Count(now, "two") != 1 || !strings.HasSuffix(now, "<off>") {
		t.Errorf("after: %q", now)
	}
}
