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

// TestFinishedLinesAreNeverLost draws blocks, regions and sizes in any order on a
// terminal that wraps anew what it has, as most do: each line is there once, in order,
// and nothing of a region is left but what a resize had moved to the scrollback.
func TestFinishedLinesAreNeverLost(t *testing.T) {
	for seed := range uint64(60) {
		d := newDrawing(seed, 60, 20)
		pushed := 0
		for range 60 {
			switch d.random.IntN(6) {
			case 0:
				d.print(d.random.IntN(6))
			case 1:
				d.print(d.e.height + d.random.IntN(30))
			case 2:
				d.e.resize(20+d.random.IntN(100), 6+d.random.IntN(40))
				d.Redraw()
				if len(d.drawn.Lines) > 0 && d.drawn.above(d.e.width) > d.e.y {
					pushed++
				}
			default:
				d.live()
			}
			d.draw()
		}
		d.ended = true
		d.draw()
		d.whole(t, seed)
		if d.e.problem != "" {
			t.Fatalf("seed %d: it wrote %s", seed, d.e.problem)
		}
		if stale := d.stale(); len(stale) > pushed {
			t.Fatalf("seed %d: %d regions stayed, at most %d may: those that had left the screen", seed, len(stale), pushed)
		}
	}
}

// regionRows is how many rows the region takes on the terminal as it is.
func regionRows(d *drawing) int {
	n := 0
	for _, l := range d.drawn.Lines {
		n += Rows(l, d.e.width)
	}
	return n
}

// TestALateSizeCostsNoLine draws for a size that the terminal has no more: what it
// left of a region may stay, a finished line isn't taken away.
func TestALateSizeCostsNoLine(t *testing.T) {
	for seed := range uint64(60) {
		d := newDrawing(seed, 60, 20)
		known := [2]int{60, 20}
		d.size = func() (int, int) { return known[0], known[1] }
		for range 60 {
			switch d.random.IntN(5) {
			case 0:
				d.print(d.random.IntN(30))
			case 1:
				d.e.resize(20+d.random.IntN(100), 6+d.random.IntN(40))
			case 2:
				known = [2]int{d.e.width, d.e.height}
				d.Redraw()
			default:
				d.live()
			}
			d.draw()
		}
		d.whole(t, seed)
	}
}

// TestATerminalWithoutReflow cuts its lines instead of wrapping them. Without another
// size nothing is lost; with one, at most the rows that the region would have had.
func TestATerminalWithoutReflow(t *testing.T) {
	for seed := range uint64(100) {
		d := newDrawing(seed, 60, 20)
		d.e.reflows = false
		may := 0
		for range 60 {
			switch n := d.random.IntN(5); {
			case n == 0:
				d.print(d.random.IntN(30))
			case n == 1 && seed%2 == 0:
				d.e.resize(20+d.random.IntN(100), 6+d.random.IntN(40))
				may += regionRows(d)
				d.Redraw()
			default:
				d.live()
			}
			d.draw()
		}
		d.ended = true
		d.draw()
		there := map[string]int{}
		for _, l := range d.e.text() {
			number, _, _ := strings.Cut(l, ">")
			there[number]++
		}
		lost := 0
		for i := range d.printed {
			switch there[fmt.Sprintf("<%d", i)] {
			case 0:
				lost++
			case 1:
			default:
				t.Fatalf("seed %d: line %d is there twice", seed, i)
			}
		}
		if lost > may {
			t.Fatalf("seed %d: %d lines were lost, at most %d may be", seed, lost, may)
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
