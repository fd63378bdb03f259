package scripted

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// Script is a checked script. It comes from Load or Parse and never changes.
type Script struct {
	name   string
	images bool    // the model takes images
	files  bool    // the model takes documents
	main   []*step // steps without when, in order
	start  []int   // start[i] is the place on the main line where main[i] begins
	length int     // places on the main line, repetitions counted
	branch []*step // steps with when, in order
}

// Name is what the script calls itself, or the file it was read from.
func (s *Script) Name() string { return s.name }

// Len is the number of answers on the main line, repetitions counted.
func (s *Script) Len() int { return s.length }

// step is one answer, or with repeat a run of answers.
type step struct {
	index      int // in the file, from 0
	when       *when
	times      int
	repeat     int
	jump       int // place on the main line to go on at, stay or next
	text       string
	reasoning  string
	calls      []model.Call // Args as written; ID is set when the step is played
	delay      time.Duration
	chunks     int
	chunkDelay time.Duration
	usage      *belay.Usage
	stop       string
	fault      *fault
}

// Values of step.jump besides a place.
const (
	jumpNone = -1 // a main step continues with the next one, a branch stays
	jumpNext = -2 // a branch skips what the main line would have said
)

// when is the condition of a branch: everything that is set must hold.
type when struct {
	contains string
	matches  *regexp.Regexp
	tool     string
	err      *bool
	note     *regexp.Regexp
	attempt  int
	forced   string
}

// unrecorded reports whether a part of the condition is about the request
// itself: of an answer in the past the conversation doesn't show it.
func (w *when) unrecorded() bool { return w.note != nil || w.attempt != 0 || w.forced != "" }

// aboutInput reports whether a part of the condition is about what was said since the last answer.
func (w *when) aboutInput() bool {
	return w.contains != "" || w.matches != nil || w.tool != "" || w.err != nil
}

// at is the step at a place of the main line, and which repetition
// the place is, from 1; nil when the line has no such place.
func (s *Script) at(place int) (*step, int) {
	if place < 0 || place >= s.length {
		return nil, 0
	}
	i := sort.SearchInts(s.start, place+1) - 1
	return s.main[i], place - s.start[i] + 1
}

// number writes the repetition into a text of a repeated step. Other steps
// keep ${n} as it is, because it means something to a shell.
func (st *step) number(text string, n int) string {
	if st.repeat == 0 {
		return text
	}
	return strings.ReplaceAll(text, "${n}", strconv.Itoa(n))
}
