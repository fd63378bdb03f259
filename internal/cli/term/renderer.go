package term

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/view"
)

// renderer shows a running session: the text of answers as it streams, a line for
// each step and call, and on a terminal a line with what runs. It writes to
// standard error; standard output is for the answer.
type renderer struct {
	out     io.Writer
	quiet   bool // JSON goes to standard output instead
	moving  bool // a terminal: lines can be drawn over
	colours bool
	now     func() time.Time

	step     int
	steps    map[belay.StepID]int // the numbers of those that were requested and not answered
	doing    string               // what runs, for the progress line
	since    time.Time
	usage    belay.Usage
	cost     event.CostSum
	limit    belay.Amounts // the session's budget; zero: none, or others spend of it too
	spent    belay.Amounts // of it
	calls    map[belay.CallID]string
	streamed belay.StepID // whose text was shown as it came
	open     bool         // the cursor is behind text
	drawn    bool         // the progress line is on the screen
	thought  string       // the end of the reasoning so far
	asking   string       // the question behind which the cursor stands
}

func newRenderer(e *Env) *renderer {
	moving := e.IsTerminal(e.Err) && !e.JSON
	return &renderer{out: e.Err, quiet: e.JSON, moving: moving, colours: moving && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb", now: e.Now, calls: map[belay.CallID]string{}, steps: map[belay.StepID]int{}}
}

// Progress is how far a turn is that another process began.
type Progress struct {
	Steps int
	Usage belay.Usage
	Step  belay.StepID      // that is open; empty: none is
	Calls []event.ModelCall // of that step
}

// goOn takes up a turn where another process left it.
func (l *renderer) goOn(p Progress) {
	l.step, l.usage = p.Steps, p.Usage
	if p.Step == "" {
		return
	}
	l.steps[p.Step] = l.step
	for _, c := range p.Calls {
		l.calls[c.ID] = preview(c)
	}
}

func (l *renderer) write(s string) {
	if !l.quiet {
		io.WriteString(l.out, s) //nolint:errcheck // nobody is left to tell
	}
}

// println writes a line of its own. The caller has made it safe to show.
func (l *renderer) println(s string) {
	l.fresh()
	l.write(s + "\n")
	if l.asking != "" {
		l.write(l.asking)
	}
}

// fresh brings the cursor to the beginning of an empty line.
func (l *renderer) fresh() {
	switch {
	case l.drawn, l.asking != "" && l.moving:
		l.write("\r\x1b[K")
	case l.open:
		l.write("\n")
	}
	l.drawn, l.open = false, false
}

func (l *renderer) clear() {
	if l.drawn || l.open {
		l.fresh()
	}
}

// ask leaves the cursor behind a question; an empty one takes it away.
func (l *renderer) ask(q string) {
	l.fresh()
	l.asking = q
	l.write(q)
}

// answered is called when the person has pressed enter.
func (l *renderer) answered() { l.asking = "" }

// paint draws what runs and for how long.
func (l *renderer) paint(now time.Time) {
	if !l.moving || l.open || l.asking != "" || l.doing == "" {
		return
	}
	s := fmt.Sprintf("step %d · %s · %s", l.step, Short(l.doing, maxDoing), Ago(now.Sub(l.since)))
	if n := l.usage.Total(); n > 0 {
		s += " · " + Count(n) + " tokens"
	}
	if l.cost.MicroUSD > 0 {
		s += " · " + Money(l.cost)
	}
	if l.limit != (belay.Amounts{}) {
		s += fmt.Sprintf(" · budget %.0f %%", budgetShare(l.spent, l.limit))
	}
	l.write("\r\x1b[K" + Short(s, 78))
	l.drawn = true
}

// maxDoing is how many characters of the progress line say what runs.
const maxDoing = 40

func (l *renderer) start(doing string, at time.Time) { l.doing, l.since = doing, at }

// knows reports whether a step was shown to begin: its text comes after that.
func (l *renderer) knows(s belay.StepID) bool { return l.steps[s] > 0 }

// flow shows text as it streams. What isn't a terminal gets the step's number
// before it, as each of its lines has.
func (l *renderer) flow(f event.Delta) {
	if l.moving && f.Kind == "reasoning" && l.asking == "" {
		l.thinks(f.Text)
	}
	if l.quiet || f.Kind != "text" || f.Text == "" || l.asking != "" {
		return
	}
	if l.drawn {
		l.fresh()
	}
	if l.streamed != f.IDs.Step && !l.moving {
		l.fresh()
		l.write(fmt.Sprintf("step %d: ", l.steps[f.IDs.Step]))
	}
	l.streamed = f.IDs.Step
	l.write(Text(f.Text))
	l.open = !strings.HasSuffix(f.Text, "\n")
}

// thinks shows the end of the reasoning so far in place of what runs.
func (l *renderer) thinks(s string) {
	r := []rune(Line(l.thought + s))
	l.thought = string(r[max(0, len(r)-maxDoing):])
	l.doing = l.thought
}

// fact shows one fact, if it is one that a person follows.
func (l *renderer) fact(ev event.Envelope) {
	l.cost = l.cost.Add(ev.Cost())
	switch p := ev.Data.(type) {
	case event.TurnSubmitted:
		if b := p.Budget; b != nil && b.ID != "" {
			l.limit, l.spent = b.Limit, b.Limit.Sub(b.Amount)
		}
	case event.LimitChanged:
		if p.Op == event.LimitSet && l.limit != (belay.Amounts{}) {
			l.limit = p.Limit
		}
	case event.CostRecorded:
		l.spent = l.spent.Add(belay.Amounts{MicroUSD: p.Amount, Tokens: p.Usage.Total()})
	case event.ModelRequested:
		l.requested(ev, p)
	case event.ModelCompleted:
		l.completed(ev, p)
	case event.ReasoningSummary:
		l.println("  thought: " + Short(strings.TrimSpace(p.Text.Text), 200))
	case event.ModelFailed:
		l.doing, l.streamed = "", "" // another attempt says it from the beginning
		l.println(fmt.Sprintf("step %d: no answer: %s%s", l.step, Short(p.Problem.Message, 200), again(p.RetryAt, ev.Time)))
	case event.ContextCompactionStarted:
		l.start("shortening the conversation", ev.Time)
	case event.ContextCompactionCompleted:
		l.println(Shortened(p))
	case event.ContextCompactionFailed:
		l.println(NotShortened(p))
	case event.RoutingFallbackApplied:
		l.println(fmt.Sprintf("step %d: %s/%s is asked instead of %s/%s", max(1, l.step), p.To.Provider, p.To.Model, p.From.Provider, p.From.Model))
	case event.ToolArgs:
		l.calls[ev.IDs.Call] = preview(event.ModelCall{Name: p.Name, Args: p.Args, ArgsRef: p.ArgsRef, Path: p.Path, Paths: p.Paths})
		l.println("  changed by " + Line(p.By) + ": " + l.calls[ev.IDs.Call])
	case event.ToolStarted:
		l.start(l.name(ev, p.Name), ev.Time)
	case event.ToolResult:
		l.start("thinking", ev.Time)
		l.println(fmt.Sprintf("  %s: %s, %s", l.name(ev, p.Name), p.Outcome(), Millis(p.Millis)))
	case event.ToolFailed:
		l.start("thinking", ev.Time)
		s := fmt.Sprintf("  %s: %s (%s)", l.name(ev, p.Name), Short(p.Problem.Message, 300), p.Problem.Code)
		if p.Problem.Class == "denied" && p.Problem.Hint != "" && p.Final {
			s += "; " + Short(p.Problem.Hint, 200)
		}
		l.println(s + again(p.RetryAt, ev.Time))
	case event.ArtifactChanged:
		if p.Kind == "plan" {
			l.println("  plan: " + planLine(p.Plan))
		}
	case event.ActionResolved:
		l.println("  answered with " + Line(p.Decision) + " by " + Line(p.By))
	case event.RunStatus:
		if p.Phase == "takeover" {
			l.println("taken over; what was in flight is not any more")
		}
		if p.Status == view.WaitingResource {
			l.start("waiting for budget", ev.Time)
		}
	case event.TurnCompleted, event.TurnFailed:
		l.doing = ""
	}
}

func (l *renderer) requested(ev event.Envelope, p event.ModelRequested) {
	if p.Attempt == 1 {
		l.step++
	} else if l.step == 0 {
		l.step = 1
	}
	l.steps[ev.IDs.Step] = l.step
	l.thought = ""
	l.start("thinking", ev.Time)
	if p.Note != "" && p.Attempt == 1 {
		l.println("  told: " + Short(p.Note, 200))
	}
}

func (l *renderer) completed(ev event.Envelope, p event.ModelCompleted) {
	l.usage = l.usage.Add(p.Usage)
	for _, c := range p.Calls {
		l.calls[c.ID] = preview(c)
	}
	delete(l.steps, ev.IDs.Step)
	said := Short(strings.TrimSpace(p.Text.Text), 200)
	if l.streamed == ev.IDs.Step {
		l.clear()
		if said = ""; len(p.Images) == 0 {
			return
		}
	}
	if n := len(p.Images); n > 0 {
		said = strings.TrimSpace(said + " (" + Plural(n, "picture") + ")")
	}
	if said == "" {
		said = Plural(len(p.Calls), "call")
	}
	l.println(fmt.Sprintf("step %d: %s", l.step, said))
}

func (l *renderer) name(ev event.Envelope, tool string) string {
	if s := l.calls[ev.IDs.Call]; s != "" {
		return s
	}
	return Line(tool)
}

// preview is a call as a person recognises it.
func preview(c event.ModelCall) string {
	arg := c.Path
	if len(c.Paths) > 0 {
		arg = strings.Join(c.Paths, " ")
	}
	if arg == "" {
		var in struct {
			Command  string `json:"command"`
			Path     string `json:"path"`
			Question string `json:"question"`
			Pattern  string `json:"pattern"`
		}
		if json.Unmarshal(c.Args, &in) == nil {
			arg = strings.TrimSpace(in.Pattern + " " + in.Command + in.Path + in.Question)
		}
	}
	return strings.TrimSpace(Line(c.Name) + " " + Short(arg, 100))
}

func again(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "; again in " + at.Sub(now).Round(100*time.Millisecond).String()
}
