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

// step is one answer, or with repeat a run of answers: as it is written, and what
// is played of it. Durations are text in a file, so that a bad one can be told with
// its place.
type step struct {
	Label      string     `yaml:"label"`
	When       *when      `yaml:"when"`
	Times      int        `yaml:"times"`
	Repeat     int        `yaml:"repeat"`
	Goto       string     `yaml:"goto"`
	Text       string     `yaml:"text"`
	Reasoning  string     `yaml:"reasoning"`
	Calls      []callFile `yaml:"calls"`
	Delay      string     `yaml:"delay"`
	Chunks     int        `yaml:"chunks"`
	ChunkDelay string     `yaml:"chunkDelay"`
	Usage      *usageFile `yaml:"usage"`
	Stop       string     `yaml:"stop"`
	Fault      *fault     `yaml:"fault"`

	index      int          // in the file, from 0
	jump       int          // place on the main line to go on at, stay or next
	calls      []model.Call // Args as written; ID is set when the step is played
	delay      time.Duration
	chunkDelay time.Duration
	usage      *belay.Usage
}

// Values of step.jump besides a place.
const (
	jumpNone = -1 // a main step continues with the next one, a branch stays
	jumpNext = -2 // a branch skips what the main line would have said
)

// when is the condition of a branch: everything that is set must hold.
type when struct {
	Contains string `yaml:"contains"`
	Matches  string `yaml:"matches"`
	Tool     string `yaml:"tool"`
	Error    *bool  `yaml:"error"`
	Note     string `yaml:"note"`
	Attempt  int    `yaml:"attempt"`
	Forced   string `yaml:"forced"`

	matches, note *regexp.Regexp // nil where the text is empty
}

// unrecorded reports whether a part of the condition is about the request
// itself: of an answer in the past the conversation doesn't show it.
func (w *when) unrecorded() bool { return w.Note != "" || w.Attempt != 0 || w.Forced != "" }

// aboutInput reports whether a part of the condition is about what was said since the last answer.
func (w *when) aboutInput() bool {
	return w.Contains != "" || w.Matches != "" || w.Tool != "" || w.Error != nil
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
	if st.Repeat == 0 {
		return text
	}
	return strings.ReplaceAll(text, "${n}", strconv.Itoa(n))
}
