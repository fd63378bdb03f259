package eval

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/store"
)

// Meanwhile is something that happens while a scenario runs, at a fact: right
// after it is durable and before anything follows from it, or right before it
// would be written. So it comes at the same moment in every run.
type Meanwhile struct {
	After  *Fact `yaml:"after"`
	Before *Fact `yaml:"before"`
	Nth    int   `yaml:"nth"` // which of the facts that meet the condition, from 1

	Write     map[string]string `yaml:"write"`     // files of the workspace change from outside
	Remove    []string          `yaml:"remove"`    // or are removed
	Answer    *Answer           `yaml:"answer"`    // the question that the fact asks is answered
	Interrupt bool              `yaml:"interrupt"` // the turn is interrupted
	Crash     bool              `yaml:"crash"`     // the process dies
}

// Answer is how a person answers a question.
type Answer struct {
	By      string  `yaml:"by"` // eval-user if empty
	Allow   bool    `yaml:"allow"`
	Session bool    `yaml:"session"` // allows the tool for the session
	Deny    *string `yaml:"deny"`    // with a reason
	Answer  string  `yaml:"answer"`  // to a question of the model
}

const askFact = "action.required"

// meanwhile checks what is to happen. Answers of the scenario come one for each
// question.
func (r *reader) meanwhile(s *Scenario, answers []Answer, others []Meanwhile) {
	for i := range answers {
		r.answer([]any{"answers", i}, &answers[i])
		s.Meanwhile = append(s.Meanwhile, Meanwhile{After: &Fact{Type: askFact}, Nth: i + 1, Answer: &answers[i]})
	}
	for i := range others {
		r.moment([]any{"meanwhile", i}, &others[i])
	}
	s.Meanwhile = append(s.Meanwhile, others...)
}

func (r *reader) moment(at []any, m *Meanwhile) {
	if (m.After == nil) == (m.Before == nil) {
		r.Fail(at, "it happens after a fact or before one").WithHint("write after: {fact: tool.started}")
	}
	if m.After != nil {
		*m.After = r.fact(strictyaml.Under(at, "after"), *m.After)
	}
	if m.Before != nil {
		*m.Before = r.fact(strictyaml.Under(at, "before"), *m.Before)
	}
	if m.Nth < 0 {
		r.Fail(strictyaml.Under(at, "nth"), "%d is no number from 1", m.Nth)
	}
	m.Nth = max(m.Nth, 1)
	if m.Answer != nil {
		r.answer(strictyaml.Under(at, "answer"), m.Answer)
		if m.After == nil || m.After.Type != askFact {
			r.Fail(strictyaml.Under(at, "answer"), "an answer comes after %s", askFact)
		}
	}
	for p := range m.Write {
		r.filePath(strictyaml.Under(at, "write", p), p)
	}
	for i, p := range m.Remove {
		r.filePath(strictyaml.Under(at, "remove", i), p)
	}
	if len(m.Write) == 0 && len(m.Remove) == 0 && m.Answer == nil && !m.Interrupt && !m.Crash {
		r.Fail(at, "nothing happens").WithHint("write one of write, remove, answer, interrupt and crash")
	}
}

func (r *reader) filePath(at []any, p string) {
	if !inside(p) {
		r.Fail(at, "%q is no path of a file below the workspace", p).WithHint("write it relative to the workspace and without ..")
	}
}

func (r *reader) answer(at []any, a *Answer) {
	switch {
	case count(a.Allow, a.Deny != nil, a.Answer != "") != 1:
		r.Fail(at, "an answer is one of allow, deny and answer").WithHint("write {allow: true}, {deny: WHY} or {answer: TEXT}")
	case a.Session && !a.Allow:
		r.Fail(at, "only allow can be for the session")
	case a.By != "" && belay.CheckID("user", a.By) != nil:
		r.Fail(strictyaml.Under(at, "by"), "%q is no name of a person", a.By)
	}
}

// command is the answer as a command.
func (a *Answer) command(id belay.ActionID) belay.RespondAction {
	c := belay.RespondAction{Action: id, Decision: "answer", Scope: "once", Message: a.Answer}
	if a.Allow {
		c.Decision = "allow"
	}
	if a.Session {
		c.Scope = "session"
	}
	if a.Deny != nil {
		c.Decision, c.Message = "deny", *a.Deny
	}
	return c
}

// errDied is what a store says to a process that has died.
var errDied = belay.Errorf(belay.CodeStoreFailed, "the process has died, as the scenario wanted")

// stage stands between the program and its store: it makes happen what is to
// happen meanwhile. Once the process has died, nothing it does is written.
type stage struct {
	workspace string
	now       func() time.Time

	mu      sync.Mutex
	moments []*moment
	dead    bool
	failed  error           // what could not be made to happen
	session belay.SessionID // the last one seen
	action  belay.ActionID
}

type moment struct {
	Meanwhile
	seen int
	done bool
}

func newStage(s *Scenario, workspace string, now func() time.Time) *stage {
	st := &stage{workspace: workspace, now: now}
	for _, m := range s.Meanwhile {
		st.moments = append(st.moments, &moment{Meanwhile: m})
	}
	return st
}

// missed are the moments that never came.
func (s *stage) missed() (conditions []Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.moments {
		if !m.done {
			conditions = append(conditions, *cmp.Or(m.After, m.Before))
		}
	}
	return conditions
}

// died reports whether the process died since the last time.
func (s *stage) died() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dead
	s.dead = false
	return d
}

// of is a store with the stage in front of it.
func (s *stage) of(st store.Store) store.Store { return &staged{Store: st, stage: s} }

// at makes happen what is to happen before or after a batch. It counts a fact
// before it is written; what then isn't written is not counted again, because
// only a process that dies doesn't write it.
func (s *stage) at(ctx context.Context, st store.Store, batches []store.Batch, before bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var facts []event.Envelope
	for _, b := range batches {
		facts = append(facts, b.Events...)
	}
	for _, e := range facts {
		if !before {
			s.session = e.IDs.Session
			if e.Type() == askFact {
				s.action = e.IDs.Action
			}
		}
		for _, m := range s.moments {
			at := m.After
			if before {
				at = m.Before
			}
			if at == nil || m.done || !at.holds(e) {
				continue
			}
			if m.seen++; m.seen < m.Nth {
				continue
			}
			m.done = true
			if err := s.happen(ctx, st, m.Meanwhile, e); err != nil && s.failed == nil {
				s.failed = err
			}
		}
	}
	if s.dead {
		return errDied
	}
	return nil
}

func (s *stage) happen(ctx context.Context, st store.Store, m Meanwhile, e event.Envelope) error {
	for p, content := range m.Write {
		if err := writeFile(s.workspace, p, content); err != nil {
			return err
		}
	}
	for _, p := range m.Remove {
		if err := os.Remove(filepath.Join(s.workspace, filepath.FromSlash(p))); err != nil {
			return err
		}
	}
	if m.Crash {
		s.dead = true
		return nil
	}
	if a := m.Answer; a != nil {
		return s.order(ctx, st, e, a.By, a.command(e.IDs.Action))
	}
	if m.Interrupt {
		return s.order(ctx, st, e, "", belay.InterruptTurn{Reason: "interrupted by the scenario"})
	}
	return nil
}

// order gives a command as another person, for the stream of a fact's thread.
func (s *stage) order(ctx context.Context, st store.Store, e event.Envelope, by string, c belay.Command) error {
	return st.Enqueue(ctx, belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: "user:" + cmp.Or(by, "eval-user"), Time: s.now().UTC(),
		Session: e.IDs.Session, Stream: e.IDs.Thread.Stream(), Command: c})
}

func (s *stage) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errDied
	}
	return nil
}

// staged is a store as a program on the stage sees it.
type staged struct {
	store.Store
	stage *stage
}

func (s *staged) Append(ctx context.Context, b ...store.Batch) ([]store.Position, error) {
	if err := s.stage.at(ctx, s.Store, b, true); err != nil {
		return nil, err
	}
	pos, err := s.Store.Append(ctx, b...)
	if err != nil {
		return pos, err
	}
	return pos, s.stage.at(ctx, s.Store, b, false)
}

func (s *staged) Enqueue(ctx context.Context, o ...belay.Order) error {
	if err := s.stage.alive(); err != nil {
		return err
	}
	return s.Store.Enqueue(ctx, o...)
}

func (s *staged) Put(ctx context.Context, content []byte, media string) (belay.Ref, error) {
	if err := s.stage.alive(); err != nil {
		return belay.Ref{}, err
	}
	return s.Store.Put(ctx, content, media)
}

func (s *staged) Writer(ctx context.Context, media string) (store.BlobWriter, error) {
	if err := s.stage.alive(); err != nil {
		return nil, err
	}
	return s.Store.Writer(ctx, media)
}

func (s *staged) SaveView(ctx context.Context, view string, from, to store.Position, rows map[string]store.ViewRow) error {
	if err := s.stage.alive(); err != nil {
		return err
	}
	return s.Store.SaveView(ctx, view, from, to, rows)
}
