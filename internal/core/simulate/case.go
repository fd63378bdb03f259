package simulate

import (
	"encoding/json"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
)

// ErrGone is what a Content returns for content that is kept no more.
var ErrGone = errors.New("the content is gone")

// Content reads content by its digest.
type Content func(belay.Digest) ([]byte, error)

// Why a recorded call can't be judged again.
const (
	lostRules     = "rules"     // the rules of its turn are gone
	lostArguments = "arguments" // its arguments are kept by reference, and gone
	lostCall      = "call"      // the facts before it are gone, so what it was is unknown
	lostForeign   = "foreign"   // another build recorded it, in a form this one can't read
	lostTool      = "tool"      // the turn had no such tool: no rule decides that
	lostChecker   = "checker"   // a checker decided, and its answer isn't repeated
	lostStopped   = "stopped"   // it was about a wider boundary for a call that one stopped: no rule decides that
)

// LostWords says the reasons for people.
var LostWords = map[string]string{
	lostRules: "the rules of the turn are gone", lostArguments: "the arguments were kept by reference and are gone", lostCall: "the facts before the call are gone",
	lostForeign: "another build recorded the decision, in a form that this one can't read", lostTool: "the turn had no such tool, which no rule decides",
	lostChecker: "a checker decided, and its answer isn't repeated", lostStopped: "a boundary had stopped the call, and no rule decides about a wider one",
}

// Case is one recorded decision and the question it answered.
type Case struct {
	Event    belay.EventID
	IDs      belay.IDs
	Recorded event.PermissionEvaluated
	Request  policy.Request
	Gate     *policy.Set // the rules of its day
	Lost     string      // why it can't be judged again; empty: it can
}

// RecordedDecision is the decision of the rules of its day, and the rule. What a person, or
// the end of a turn, made of an ask is still an ask here.
func (c *Case) RecordedDecision() (policy.Decision, string) {
	switch c.Recorded.Source {
	case "person", "runtime":
		return policy.Ask, c.Recorded.Rule
	}
	return policy.Decision(c.Recorded.Decision), c.Recorded.Rule
}

// Reader folds recorded threads as the gate's thread did, and puts each decision
// together with what was asked. It remembers one state for each stream it was
// given and a few sets of rules, however long the streams are.
type Reader struct {
	get     Content
	threads map[belay.StreamID]*thread.Decider
	rules   map[belay.Digest]*thread.Rules
	sets    map[belay.Digest]*policy.Set
}

// NewReader is a reader that gets content from get.
func NewReader(get Content) *Reader {
	return &Reader{get: get, threads: map[belay.StreamID]*thread.Decider{}, rules: map[belay.Digest]*thread.Rules{}, sets: map[belay.Digest]*policy.Set{}}
}

// maxDecoded bounds the rules that are kept decoded.
const maxDecoded = 16

// Apply takes the next fact of a stream, and returns the decision if it is one.
// An error is content that can't be read, other than for being gone.
func (r *Reader) Apply(e event.Envelope) (*Case, error) {
	d := r.threads[e.Stream]
	if d == nil {
		d = thread.New(e.Stream)
		r.threads[e.Stream] = d
	}
	defer d.Apply(e)
	switch p := e.Data.(type) {
	case event.PermissionEvaluated:
		return r.asked(d, e, p)
	case event.Unknown:
		if p.Type == "permission.evaluated" {
			return &Case{Event: e.ID(), IDs: e.IDs, Lost: lostForeign}, nil
		}
	}
	return nil, nil
}

// asked puts a decision together with its question.
func (r *Reader) asked(d *thread.Decider, e event.Envelope, p event.PermissionEvaluated) (*Case, error) {
	c := &Case{Event: e.ID(), IDs: e.IDs, Recorded: p}
	s := d.State()
	call := s.CallOf(e.IDs.Call)
	switch {
	case call == nil:
		c.Lost = lostCall
		return c, nil
	case p.Rule == "builtin/unknown-tool":
		c.Lost = lostTool
		return c, nil
	case call.Blocked != nil:
		c.Lost = lostStopped
		return c, nil
	case p.Source == "checker":
		c.Lost = lostChecker
		return c, nil
	}
	rules, err := r.rulesOf(s.Turn.Rules.Digest)
	if errors.Is(err, ErrGone) {
		c.Lost = lostRules
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	var args []byte
	if call.ArgsRef != nil {
		args, err = r.get(call.ArgsRef.Digest)
		if errors.Is(err, ErrGone) {
			c.Lost = lostArguments
			return c, nil
		}
		if err != nil {
			return nil, err
		}
	}
	c.Gate = rules.Gate()
	var known bool
	if c.Request, known = s.Asked(rules, e.IDs.Call, args, e.Time); !known {
		c.Lost = lostTool
	}
	return c, nil
}

// rulesOf are a turn's rules with the set they name.
func (r *Reader) rulesOf(d belay.Digest) (*thread.Rules, error) {
	rules, err := once(r.get, r.rules, d, "rules", func(raw []byte) (*thread.Rules, error) {
		rules := &thread.Rules{}
		return rules, json.Unmarshal(raw, rules)
	})
	if err != nil || rules.Gate() != nil {
		return rules, err
	}
	set, err := once(r.get, r.sets, rules.Policy.Digest, "policy", policy.Decode)
	if err == nil {
		rules.Govern(*rules.Policy, set)
	}
	return rules, err
}

// once returns what a content of a turn is decoded to, and keeps it.
func once[T any](get Content, kept map[belay.Digest]*T, d belay.Digest, what string, decode func([]byte) (*T, error)) (*T, error) {
	if v := kept[d]; v != nil {
		return v, nil
	}
	raw, err := get(d)
	if err != nil {
		return nil, err
	}
	v, err := decode(raw)
	if err != nil {
		return nil, belay.Errorf(belay.CodeStoreDamaged, "the %s of a turn can't be read", what).At(string(d)).Wrap(err)
	}
	if len(kept) >= maxDecoded {
		clear(kept)
	}
	kept[d] = v
	return v, nil
}
