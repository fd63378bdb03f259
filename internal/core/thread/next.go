package thread

import (
	"encoding/json"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// A stage looks at one concern. It adds facts, effects and wake times; done means
// that the stages after it must not act now.
type stage func(d *decision) (done bool)

// The stages in reading order. A new rule of the loop is a file and a line here.
var (
	// before the running turn continues, or without one: a compaction has ended before its cost
	// is recorded, files are restored and kept before a turn uses them, and a cancelled turn is
	// undone before the next begins
	threadStages = []stage{lostPrograms, returnUnused, shareGrants, place, shorten, charge, changeFiles, startTurn}

	turnStages = []stage{needRules, taint, tellCut, recordRuleChange, cancel, pauseTurn, admit, limits, snapshot, note, choose, lookAround, steer, request, permit, run, finish}
)

// decision derives once what is wanted: the state, the rules of the running or
// the next turn, the time, and what is wanted so far.
type decision struct {
	*State
	rules *Rules // nil while they aren't loaded, and when they are lost
	lost  bool   // they aren't in the store any more, or the gate's part of them isn't
	now   time.Time
	ready *core.Ready
	short belay.BudgetKind // what this decision found too little of
}

func (d *decision) record(facts ...core.Fact) { d.ready.Decided = append(d.ready.Decided, facts...) }
func (d *decision) want(effects ...core.Effect) {
	d.ready.Effects = append(d.ready.Effects, effects...)
}
func (d *decision) send(sends ...core.Send) { d.ready.Sends = append(d.ready.Sends, sends...) }

// wakeAt keeps the earliest wake time.
func (d *decision) wakeAt(at time.Time) {
	if d.ready.Wake.IsZero() || at.Before(d.ready.Wake) {
		d.ready.Wake = at
	}
}

// Next derives what is wanted from the state. Facts first: while there is
// something to decide there are no effects, because the log comes before the world.
func (d *Decider) Next(now time.Time) (rd core.Ready) {
	w := d.decision(now, &rd)
	if !w.pass(threadStages) {
		w.pass(turnStages)
	}
	if len(rd.Decided) > 0 {
		rd.Effects, rd.Wake = nil, time.Time{}
	} else {
		rd.Effects = append(append(rd.Effects, d.s.procs()...), d.s.heldCalls()...)
	}
	return rd
}

// decision begins one, with the rules that it depends on.
func (d *Decider) decision(now time.Time, rd *core.Ready) *decision {
	w := &decision{State: &d.s, now: now, ready: rd}
	var ref belay.Ref
	switch {
	case w.Turn != nil:
		ref = w.Turn.Rules
	case len(w.Queue) > 0:
		ref = w.Queue[0].Rules
	default:
		ref = w.rulesRef()
	}
	w.rules = d.s.within(d.rules[ref.Digest])
	w.lost = w.rules == nil && d.gone[ref.Digest] || w.rules != nil && w.rules.Policy != nil && d.gone[w.rules.Policy.Digest]
	return w
}

// pass runs stages and reports whether those after them have to wait.
func (d *decision) pass(stages []stage) bool {
	for _, st := range stages {
		if st(d) || len(d.ready.Decided) > 0 {
			return true
		}
	}
	return false
}

// needRules holds a turn until its rules are there, and ends it when they are lost.
func needRules(d *decision) bool {
	if d.rules != nil && d.rules.Gate() != nil {
		return false
	}
	d.rules = nil
	if d.lost && d.settleAll("RULES_MISSING", "the turn can't be continued") {
		d.fail(belay.Lost, "RULES_MISSING", "the turn's rules are not in the store any more, so it can't be continued")
	}
	return true
}

// returnUnused reports what programs used and releases the holds of calls that
// are over, in one decision: the report comes before what lets others continue.
func returnUnused(d *decision) bool {
	if d.Shared {
		d.reportUsage()
	}
	d.givesBack()
	spending{d}.returnBudget()
	return false
}

// changeFiles wants the effect on files that is due: restoring them, keeping the
// workspace as the last turn left it, or undoing what was cancelled.
func changeFiles(d *decision) bool {
	switch {
	case d.Restore != nil:
		d.want(d.restore())
	case d.Keep != nil:
		d.want(*d.Keep)
	case d.Undo != "":
		d.want(d.goesBack())
	default:
		return false
	}
	return true
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
const Version = "thread/37"

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
		} else {
			need(d.s.rulesRef())
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
	for _, c := range t.calls() {
		spec, ok := r.Tool(c.Name)
		if !ok || c.ArgsRef == nil || c.Phase == CallOver {
			continue
		}
		if spec.Handled != "" || c.Phase == CallProposed && r.Gate() != nil && r.Gate().NeedsArgs(spec) {
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
	if r := d.kept(); r != nil && r.Policy != nil && r.Policy.Digest == ref.Digest {
		set, err := policy.Decode(content)
		if err != nil {
			d.gone[ref.Digest] = true
			return newer("policy", ref, err)
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
		return newer("rules", ref, err)
	}
	d.SupplyRules(ref, &r)
	return nil
}

// newer is the error for content that is what was written, as its digest says, and that
// this program can't read.
func newer(what string, ref belay.Ref, err error) error {
	return belay.Errorf(belay.CodeStoreNewer, "a newer program wrote the %s of the turn, which this one can't read", what).At(string(ref.Digest)).
		WithHint("use the program that last wrote the store, or a newer one").Wrap(err)
}

// MissesRules reports whether content that Missing named is rules.
func (d *Decider) MissesRules(ref belay.Ref) bool {
	t := d.s.Turn
	switch {
	case t != nil:
		return t.Rules.Digest == ref.Digest
	case len(d.s.Queue) > 0:
		return d.s.Queue[0].Rules.Digest == ref.Digest
	}
	return d.s.rulesRef().Digest == ref.Digest
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
func (d *Decider) Rules() *Rules { return d.s.within(d.kept()) }

// kept are the rules that the turn was given, or nil.
func (d *Decider) kept() *Rules {
	if d.s.Turn == nil {
		return nil
	}
	return d.rules[d.s.Turn.Rules.Digest]
}

// Save is the state as bytes.
func (d *Decider) Save() ([]byte, error) { return json.Marshal(&d.s) }

// Load takes the state from bytes.
func (d *Decider) Load(data []byte) error { return json.Unmarshal(data, &d.s) }

// InFlight reports whether facts say that something runs.
func (d *Decider) InFlight() bool {
	return d.s.driven() || len(d.s.Procs) > 0 || d.s.Compacting.runs()
}
