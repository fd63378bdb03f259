package thread

import (
	"encoding/json"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// A stage looks at one concern of the running turn. It adds facts, effects and
// wake times to rd; done means that the stages after it must not act now.
type stage func(s *State, r *Rules, now time.Time, rd *core.Ready) (done bool)

// The stages in reading order. A new rule of the loop is a file and a line here.
var stages = []stage{taint, govern, cancel, limits, snapshot, choose, steer, request, permit, run, finish}

// A stage of the thread looks at what comes before the running turn continues, or
// without one. done means that nothing after it may act now.
type threadStage func(d *Decider, now time.Time, rd *core.Ready) (done bool)

// Those stages in reading order: files are restored and kept before a turn uses
// them, what was cancelled is undone before the next turn begins.
var threadStages = []threadStage{
	func(d *Decider, _ time.Time, rd *core.Ready) bool { d.s.lostProcs(rd); return false },
	func(d *Decider, _ time.Time, rd *core.Ready) bool { d.s.returnUnused(rd); return false },
	func(d *Decider, _ time.Time, rd *core.Ready) bool { return d.s.changeFiles(rd) },
	(*Decider).startNext,
}

// Next derives what is wanted from the state. Facts first: while there is
// something to decide there are no effects, because the log comes before the world.
func (d *Decider) Next(now time.Time) (rd core.Ready) {
	if !d.betweenTurns(now, &rd) && d.s.Turn != nil {
		d.within(now, &rd)
	}
	if len(rd.Decided) == 0 {
		rd.Effects = append(rd.Effects, d.s.procs()...)
	}
	return rd
}

// betweenTurns runs the stages of the thread and reports whether the turn has to wait.
func (d *Decider) betweenTurns(now time.Time, rd *core.Ready) bool {
	for _, st := range threadStages {
		if st(d, now, rd) || len(rd.Decided) > 0 {
			return true
		}
	}
	return false
}

// returnUnused reports what programs used and releases the holds of calls that
// are over, in one decision: the report comes before what lets others continue.
func (s *State) returnUnused(rd *core.Ready) {
	s.reports(rd)
	s.givesBack(rd)
}

// changeFiles wants the effect on files that is due: restoring them, keeping the
// workspace as the last turn left it, or undoing what was cancelled.
func (s *State) changeFiles(rd *core.Ready) bool {
	switch {
	case s.Restore != nil:
		rd.Effects = append(rd.Effects, s.restore())
	case s.Keep != nil:
		rd.Effects = append(rd.Effects, *s.Keep)
	case s.Undo != "":
		rd.Effects = append(rd.Effects, s.goesBack())
	default:
		return false
	}
	return true
}

// startNext starts the next queued turn when none runs.
func (d *Decider) startNext(now time.Time, rd *core.Ready) bool {
	s := &d.s
	if s.Turn == nil && len(s.Queue) > 0 && !s.waitsForQuiet(now, rd) {
		dg := s.Queue[0].Rules.Digest
		s.start(d.rules[dg], d.gone[dg], rd)
	}
	return s.Turn == nil
}

// within derives what the running turn wants.
func (d *Decider) within(now time.Time, rd *core.Ready) {
	s := &d.s
	r := d.rules[s.Turn.Rules.Digest]
	if r == nil || r.Gate() == nil {
		if d.lacks(r, s.Turn.Rules) && s.settleAll(nil, rd, "cancelled", "RULES_MISSING", "the turn can't be continued") {
			s.fail(rd, belay.Lost, "RULES_MISSING", "the turn's rules are not in the store any more, so it can't be continued")
		}
		onlyFacts(rd)
		return
	}
	for _, st := range stages {
		if st(s, r, now, rd) || len(rd.Decided) > 0 {
			break
		}
	}
	onlyFacts(rd)
}

// lacks reports whether the rules, or the gate's part of them, can't be had.
func (d *Decider) lacks(r *Rules, ref belay.Ref) bool {
	return r == nil && d.gone[ref.Digest] || r != nil && r.Policy != nil && d.gone[r.Policy.Digest]
}

// onlyFacts holds back effects while there are facts: the log comes first.
func onlyFacts(rd *core.Ready) {
	if len(rd.Decided) > 0 {
		rd.Effects, rd.Wake = nil, time.Time{}
	}
}

// Decider is the thread's decider. Rules and long arguments are handed in by
// Supply; a content that can't be had is reported by Gone.
type Decider struct {
	s       State
	rules   map[belay.Digest]*Rules
	content map[belay.Digest][]byte
	gone    map[belay.Digest]bool
}

var _ core.Decider = (*Decider)(nil)

// New is the decider of an empty stream.
func New(stream belay.StreamID) *Decider {
	return &Decider{s: State{Stream: stream}, rules: map[belay.Digest]*Rules{}, content: map[belay.Digest][]byte{}, gone: map[belay.Digest]bool{}}
}

// Version names what folding and deciding depend on besides the facts. It
// changes when the shape or meaning of State changes.
const Version = "thread/18"

// State is a look at the state; the caller must not change it.
func (d *Decider) State() *State { return &d.s }

// Missing names the rules and the long arguments that Next needs.
func (d *Decider) Missing() []belay.Ref {
	var out []belay.Ref
	need := func(r belay.Ref) {
		if r.Digest != "" && d.rules[r.Digest] == nil && d.content[r.Digest] == nil && !d.gone[r.Digest] {
			out = append(out, r)
		}
	}
	t := d.s.Turn
	if t == nil {
		if len(d.s.Queue) > 0 {
			need(d.s.Queue[0].Rules)
		}
		return out
	}
	need(t.Rules)
	r := d.rules[t.Rules.Digest]
	if r == nil {
		return out
	}
	if r.Policy != nil && r.set == nil {
		need(*r.Policy)
	}
	for i := 0; t.Step != nil && i < len(t.Step.Calls); i++ {
		c := &t.Step.Calls[i]
		spec, ok := r.tool(c.Name)
		if !ok || c.ArgsRef == nil || c.Over {
			continue
		}
		if spec.Handled != "" || !c.Judged && r.Gate() != nil && r.Gate().NeedsArgs(spec) {
			need(*c.ArgsRef)
		}
	}
	return out
}

// Supply hands in content that Missing named. Content nil means that the store
// hasn't got it.
func (d *Decider) Supply(ref belay.Ref, content []byte) error {
	if content == nil {
		d.gone[ref.Digest] = true
		return nil
	}
	if r := d.Rules(); r != nil && r.Policy != nil && r.Policy.Digest == ref.Digest {
		set, err := policy.Decode(content)
		if err != nil {
			d.gone[ref.Digest] = true
			return belay.Errorf(belay.CodeStoreDamaged, "the policy of the turn can't be read").At(string(ref.Digest)).Wrap(err)
		}
		r.set = set
		return nil
	}
	if !d.MissesRules(ref) {
		d.content[ref.Digest] = content
		return nil
	}
	var r Rules
	if err := json.Unmarshal(content, &r); err != nil {
		d.gone[ref.Digest] = true
		return belay.Errorf(belay.CodeStoreDamaged, "the rules of the turn can't be read").At(string(ref.Digest)).Wrap(err)
	}
	d.SupplyRules(ref, &r)
	return nil
}

// MissesRules reports whether content that Missing named is rules.
func (d *Decider) MissesRules(ref belay.Ref) bool {
	t := d.s.Turn
	return t != nil && t.Rules.Digest == ref.Digest || t == nil && len(d.s.Queue) > 0 && d.s.Queue[0].Rules.Digest == ref.Digest
}

// SupplyRules is Supply with rules that were decoded already. The decider copies
// them; what they refer to is shared and must not change any more.
func (d *Decider) SupplyRules(ref belay.Ref, shared *Rules) {
	r := *shared
	r.content = d.content
	clear(d.rules) // one set at a time: rules are as long as their tools' schemas
	d.rules[ref.Digest] = &r
}

// Rules are the rules in force, or nil.
func (d *Decider) Rules() *Rules {
	if d.s.Turn == nil {
		return nil
	}
	return d.rules[d.s.Turn.Rules.Digest]
}

// Save and Load: the state is plain data.
func (d *Decider) Save() ([]byte, error)  { return json.Marshal(&d.s) }
func (d *Decider) Load(data []byte) error { return json.Unmarshal(data, &d.s) }

// InFlight reports whether facts say that something runs.
func (d *Decider) InFlight() bool { return d.s.driven() || len(d.s.Procs) > 0 }

// wakeAt keeps the earliest wake time.
func wakeAt(rd *core.Ready, at time.Time) {
	if rd.Wake.IsZero() || at.Before(rd.Wake) {
		rd.Wake = at
	}
}
