package scripted

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/model"
)

// The file as it is written, besides its steps.
type (
	scriptFile struct {
		Name   string `yaml:"name"`
		Images bool   `yaml:"images"`
		Files  bool   `yaml:"files"`
		Steps  []step `yaml:"steps"`
	}
	callFile struct {
		Tool string         `yaml:"tool"`
		Args map[string]any `yaml:"args"` // any JSON object
		Raw  *string        `yaml:"raw"`
	}
	usageFile struct {
		Input  int64 `yaml:"input"`
		Output int64 `yaml:"output"`
		Cached int64 `yaml:"cached"`
	}
)

// Labels that every script has.
const (
	labelNext = "next"
	labelEnd  = "end"
)

const (
	maxRepeat = 1_000_000
	maxDelay  = 24 * time.Hour
)

var stops = []string{"stop", "tool_calls", "length", "refused"}

// compiler turns a file into a script; the first mistake stops it.
type compiler struct {
	strictyaml.Reader
	script Script
	labels map[string]int // label → place on the main line
}

func compile(t strictyaml.Text, root ast.Node) (*Script, error) {
	var f scriptFile
	if err := t.Decode(root, &f); err != nil {
		return nil, err
	}
	c := compiler{Reader: strictyaml.Reader{Text: t, Root: root}, script: Script{name: f.Name, images: f.Images, files: f.Files}, labels: map[string]int{}}
	if f.Name == "" {
		c.script.name = strings.TrimSuffix(filepath.Base(t.Name), filepath.Ext(t.Name))
	}
	if len(f.Steps) == 0 {
		c.Fail([]any{"steps"}, "the script has no steps").WithHint("give it steps; %s", reference)
	}
	for i := range f.Steps {
		c.step(i, &f.Steps[i])
		c.add(&f.Steps[i])
	}
	for i := range f.Steps {
		c.jump(&f.Steps[i])
	}
	if c.Err != nil {
		return nil, c.Err
	}
	return &c.script, nil
}

// step checks one step and makes it playable. Its jump is set later, when all
// labels are known.
func (c *compiler) step(i int, st *step) {
	path := func(field ...any) []any { return append([]any{"steps", i}, field...) }
	st.index, st.jump = i, jumpNone
	st.delay, st.chunkDelay = c.duration(path("delay"), st.Delay), c.duration(path("chunkDelay"), st.ChunkDelay)
	c.count(path("times"), st.Times)
	c.count(path("repeat"), st.Repeat)
	c.count(path("chunks"), st.Chunks)
	if st.Text == "" && st.Reasoning == "" && st.Stop == "" && len(st.Calls) == 0 && st.Fault == nil {
		c.Fail(path(), "step %d says nothing", i+1).
			WithHint("give it text, calls or a fault; for an empty answer write stop: stop")
	}
	for k, call := range st.Calls {
		st.calls = append(st.calls, c.call(path("calls", k), call))
	}
	switch {
	case st.Stop == "" && len(st.Calls) > 0:
		st.Stop = "tool_calls"
	case st.Stop == "":
		st.Stop = "stop"
	case !slices.Contains(stops, st.Stop):
		c.Fail(path("stop"), "unknown stop %q", st.Stop).WithHint("use %s", strings.Join(stops, ", "))
	}
	if u := st.Usage; u != nil {
		st.usage = &belay.Usage{Input: u.Input, Output: u.Output, Cached: u.Cached, Reported: true}
		if u.Input < 0 || u.Output < 0 || u.Cached < 0 {
			c.Fail(path("usage"), "a usage is 0 or more")
		}
	}
	if st.When != nil {
		c.when(path("when"), st.When)
	}
	if st.Fault != nil {
		c.fault(path("fault"), st.Fault)
	}
}

func (c *compiler) call(path []any, f callFile) model.Call {
	if f.Tool == "" {
		c.Fail(path, "a call without a tool").WithHint("write tool: NAME")
	}
	if f.Raw != nil {
		if f.Args != nil {
			c.Fail(strictyaml.Under(path, "raw"), "a call has either args or raw").WithHint("use raw only for arguments that aren't valid JSON")
		}
		return model.Call{Name: f.Tool, Args: *f.Raw}
	}
	if f.Args == nil {
		return model.Call{Name: f.Tool, Args: "{}"}
	}
	args, err := plain(f.Args)
	if err != nil {
		c.Fail(strictyaml.Under(path, "args"), "the arguments have no form in JSON").Wrap(err).WithHint("JSON has no .inf and no .nan")
	}
	return model.Call{Name: f.Tool, Args: args}
}

func (c *compiler) when(path []any, w *when) {
	w.matches, w.note = c.Pattern(strictyaml.Under(path, "matches"), w.Matches), c.Pattern(strictyaml.Under(path, "note"), w.Note)
	c.count(strictyaml.Under(path, "attempt"), w.Attempt)
	if !w.aboutInput() && !w.unrecorded() {
		c.Fail(path, "a when without a condition always holds").
			WithHint("use contains, matches, tool, error, note, attempt or forced, or remove when")
	}
}

func (c *compiler) fault(path []any, f *fault) {
	if _, ok := faultKinds[f.Kind]; !ok {
		c.Fail(strictyaml.Under(path, "kind"), "unknown fault %q", f.Kind).
			WithHint("use %s", strings.Join(slices.Sorted(maps.Keys(faultKinds)), ", "))
	}
	c.count(strictyaml.Under(path, "afterChars"), f.AfterChars)
	c.count(strictyaml.Under(path, "attempts"), f.Attempts)
	f.retryAfter = c.duration(strictyaml.Under(path, "retryAfter"), f.RetryAfter)
}

// add puts a step on the main line or beside it.
func (c *compiler) add(st *step) {
	field := func(name string) []any { return []any{"steps", st.index, name} }
	s := &c.script
	if st.When != nil {
		if st.Label != "" || st.Repeat != 0 {
			c.Fail(field("when"), "a step with when is no place on the main line: it has no label and no repeat").
				WithHint("put the label on a step without when; a branch is taken as often as it holds, times bounds that")
		}
		s.branch = append(s.branch, st)
		return
	}
	if st.Times != 0 {
		c.Fail(field("times"), "times bounds a step with when").WithHint("use repeat to say something several times")
	}
	if st.Label != "" {
		if _, twice := c.labels[st.Label]; twice || st.Label == labelEnd || st.Label == labelNext {
			c.Fail(field("label"), "the label %q is taken", st.Label).WithHint("choose another; %s and %s are everywhere", labelEnd, labelNext)
		}
		c.labels[st.Label] = s.length
	}
	s.main = append(s.main, st)
	s.start = append(s.start, s.length)
	s.length += max(st.Repeat, 1)
}

// jump sets where a step leads.
func (c *compiler) jump(st *step) {
	if st.Goto == "" || c.Err != nil {
		return
	}
	place, ok := c.labels[st.Goto]
	switch {
	case ok:
	case st.Goto == labelNext:
		place = jumpNext
	case st.Goto == labelEnd:
		place = c.script.length
	default:
		c.Fail([]any{"steps", st.index, "goto"}, "no step has the label %q", st.Goto).
			WithHint("labels here: %s", strings.Join(append(slices.Sorted(maps.Keys(c.labels)), labelNext, labelEnd), ", "))
		return
	}
	st.jump = place
}

func (c *compiler) duration(path []any, text string) time.Duration {
	return c.Duration(path, text, 0, maxDelay)
}

func (c *compiler) count(path []any, n int) {
	if n < 0 || n > maxRepeat {
		c.Fail(path, "%d is not between 0 and %d", n, maxRepeat)
	}
}
