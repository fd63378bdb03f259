package config

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/agentfile"
)

// What facts say of an agent: what became of its file, and what a person, or its ends,
// made of it.
const (
	AgentDefined = "defined"
	AgentEdited  = "edited"
	AgentRefused = "refused" // an edit that can't be used: the content before counts
	AgentRemoved = "removed"

	AgentPaused  = "paused"  // what it does is held, and what is new waits
	AgentStopped = "stopped" // it takes nothing new
	AgentResumed = "resumed"
	AgentTrial   = "trial"   // one run of an agent that failed too often
	AgentChecked = "checked" // its health command ran
)

// AgentControl is what a person made of an agent, by its name as turns have it.
type AgentControl struct {
	Op      string // AgentPaused, AgentStopped; empty: it works
	Now     bool   // what it did was cancelled
	By      string
	Reason  string
	At      time.Time
	Resumed time.Time // what it did before says nothing of its health
	Trial   belay.TurnID
	Tried   time.Time // when the trial began
	Sick    string    // what its health command said last, if it failed
	Checked time.Time // when the command ran last
}

// Waits says why the work of an agent that is paused waits.
func (c AgentControl) Waits(agent string) string {
	return "agent " + agent + " is " + c.String() + "; belay agents resume " + agent + " lets it go on"
}

// Refuses is the error of new work for an agent that was stopped; nil: it takes some.
func (c AgentControl) Refuses(agent, path string) error {
	if c.Op != AgentStopped {
		return nil
	}
	return belay.Errorf(belay.CodeAgentStopped, "agent %s takes no new work: it is %s", agent, c).At(path).WithHint("belay agents resume %s", agent)
}

// String says it for people; empty: there is nothing to say.
func (c AgentControl) String() string {
	if c.Op == "" {
		return ""
	}
	if c.Reason == "" {
		return c.Op
	}
	return c.Op + " (" + c.Reason + ")"
}

// AgentSeen is the file of an agent as it was seen last.
type AgentSeen struct {
	Name, Version string
	Digest        belay.Digest // of its last good content
	Content       *belay.Ref   // that content; nil: it couldn't be kept
	Refused       belay.Digest // of what it holds now, if that can't be used
	At            time.Time
}

// agentBook is what is known of agents, folded from the facts.
type agentBook struct {
	files   map[string]AgentSeen // by absolute path
	control map[string]AgentControl
}

func (b *agentBook) apply(e event.Envelope, p event.ArtifactChanged) {
	switch p.Op {
	case AgentDefined, AgentEdited:
		if b.files == nil {
			b.files = map[string]AgentSeen{}
		}
		b.files[p.Path] = AgentSeen{Name: p.Name, Version: p.Version, Digest: p.Digest, Content: p.After, At: e.Time}
	case AgentRefused:
		if s, ok := b.files[p.Path]; ok {
			s.Refused = p.Digest
			b.files[p.Path] = s
		}
	case AgentRemoved:
		delete(b.files, p.Path)
	case AgentPaused, AgentStopped, AgentResumed, AgentTrial, AgentChecked:
		if b.control == nil {
			b.control = map[string]AgentControl{}
		}
		b.control[p.Name] = b.control[p.Name].then(e, p)
	}
}

func (c AgentControl) then(e event.Envelope, p event.ArtifactChanged) AgentControl {
	switch p.Op {
	case AgentTrial:
		c.Trial, c.Tried = p.Turn, e.Time
		return c
	case AgentChecked:
		c.Sick, c.Checked = p.Note, e.Time
		return c
	case AgentResumed:
		return AgentControl{Resumed: e.Time, Sick: c.Sick, Checked: c.Checked}
	}
	c.Op, c.Now, c.By, c.Reason, c.At = p.Op, p.Now, p.By, p.Note, e.Time
	return c
}

// AgentControl is what a person made of an agent.
func (b *TrustBook) AgentControl(name string) AgentControl {
	if b == nil {
		return AgentControl{}
	}
	return b.agents.control[name]
}

// ControlAgent pauses, stops or resumes an agent. Resuming one that works records that its
// failures before don't count any more.
func (w TrustWriter) ControlAgent(ctx context.Context, name, op string, now bool, reason string) error {
	_, err := w.write(ctx, func(b *TrustBook) []event.Payload {
		if c := b.AgentControl(name); op != AgentResumed && c.Op == op && (c.Now || !now) {
			return nil
		}
		return one(event.ArtifactChanged{Kind: "agent", Op: op, Name: name, Now: now, By: w.By, Note: reason})
	})
	return err
}

// CheckedAgent records what an agent's health command said; nothing: it is well. What is
// known already isn't recorded again.
func (w TrustWriter) CheckedAgent(ctx context.Context, name, sick string) error {
	_, err := w.write(ctx, func(b *TrustBook) []event.Payload {
		if c := b.AgentControl(name); !c.Checked.IsZero() && c.Sick == sick {
			return nil
		}
		return one(event.ArtifactChanged{Kind: "agent", Op: AgentChecked, Name: name, Note: sick})
	})
	return err
}

// TryAgent makes a turn the trial of an agent that failed too often, unless something was
// said of the agent since it was seen so. It returns what is so then.
func (w TrustWriter) TryAgent(ctx context.Context, name string, turn belay.TurnID, seen AgentControl) (AgentControl, error) {
	b, err := w.write(ctx, func(b *TrustBook) []event.Payload {
		if c := b.AgentControl(name); c.Op != seen.Op || !c.Resumed.Equal(seen.Resumed) || !c.Tried.Equal(seen.Tried) {
			return nil
		}
		return one(event.ArtifactChanged{Kind: "agent", Op: AgentTrial, Name: name, Turn: turn})
	})
	return b.AgentControl(name), err
}

// Agent is the file of an agent as it was seen last; false: it never was, or is gone.
func (b *TrustBook) Agent(path string) (AgentSeen, bool) {
	if b == nil {
		return AgentSeen{}, false
	}
	s, ok := b.agents.files[path]
	return s, ok
}

// maxAgentFacts bounds how many facts are appended at once.
const maxAgentFacts = 200

// SeeAgents records which agents a workspace has, where that isn't known yet, and reports
// whether anything was new. keep stores a content; nil: it mustn't be kept.
func (w TrustWriter) SeeAgents(ctx context.Context, known *TrustBook, c *agentfile.Catalog, keep func([]byte) (*belay.Ref, error)) (news bool, err error) {
	refs := map[belay.Digest]*belay.Ref{}
	for _, p := range c.News(known.agentDigest) {
		if content, _ := p.Content(); p.Usable() && refs[p.Digest] == nil {
			if refs[p.Digest], err = keep(content); err != nil {
				return false, err
			}
		}
		news = true
	}
	gone := known.gone(c)
	if !news && len(gone) == 0 {
		return false, nil
	}
	for more := true; more && err == nil; {
		_, err = w.write(ctx, func(b *TrustBook) []event.Payload {
			facts := agentFacts(b, c, refs)
			more = len(facts) > maxAgentFacts
			return facts[:min(len(facts), maxAgentFacts)]
		})
	}
	return true, err
}

// agentDigest are the digests of a file's last good content, and of what it holds instead.
func (b *TrustBook) agentDigest(path string) (good, refused belay.Digest) {
	s, _ := b.Agent(path)
	return s.Digest, s.Refused
}

// gone are the paths of files that were seen in a catalogue's places, and aren't there.
func (b *TrustBook) gone(c *agentfile.Catalog) (paths []string) {
	if b == nil {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(b.agents.files)) {
		if c.Covers(path) && !slices.ContainsFunc(c.All, func(a *agentfile.Agent) bool { return a.Path == path }) {
			paths = append(paths, path)
		}
	}
	return paths
}

// agentFacts are those that a book lacks about a catalogue.
func agentFacts(b *TrustBook, c *agentfile.Catalog, refs map[belay.Digest]*belay.Ref) (facts []event.Payload) {
	for _, a := range c.News(b.agentDigest) {
		was, seen := b.Agent(a.Path)
		fact := event.ArtifactChanged{Kind: "agent", Op: AgentDefined, Path: a.Path, Name: a.Name, Version: a.Version, Digest: a.Digest, Origin: a.Origin, After: refs[a.Digest]}
		switch _, now := a.Content(); {
		case now != "":
			fact.Op, fact.Digest, fact.After, fact.Before = AgentRefused, now, nil, was.Content
			fact.Note = event.CutText(a.Broken[0].Code+": "+a.Broken[0].Message, 500)
		case seen:
			fact.Op, fact.Before = AgentEdited, was.Content
		}
		facts = append(facts, fact)
	}
	for _, path := range b.gone(c) {
		s, _ := b.Agent(path)
		facts = append(facts, event.ArtifactChanged{Kind: "agent", Op: AgentRemoved, Path: path, Name: s.Name, Version: s.Version, Digest: s.Digest, Before: s.Content})
	}
	return facts
}

// goodAgent finds the last good content of an agent's file.
func (in Input) goodAgent(ctx context.Context) func(path string) []byte {
	return func(path string) []byte {
		if in.Kept == nil || in.Trust == nil {
			return nil
		}
		book, err := in.Trust(ctx)
		if err != nil {
			return nil
		}
		s, ok := book.Agent(path)
		if !ok || s.Content == nil {
			return nil
		}
		content, err := in.Kept(ctx, s.Content.Digest)
		if err != nil || !strings.EqualFold(string(belay.DigestOf(content)), string(s.Digest)) {
			return nil
		}
		return content
	}
}
