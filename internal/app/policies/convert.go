package policies

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/policy/convert"
)

// Foreign is a file of rules of another agent.
type Foreign struct {
	Name     string // in errors and as the place of rules
	Format   string // gemini, claude, openclaw or cowork; auto looks into the content
	Content  []byte
	Home     string // of the person
	OfPerson bool   // the file is the person's own
}

// Converted is the outcome of a file of rules of another agent.
type Converted struct {
	File     string         `json:"file"`
	Format   convert.Format `json:"format"`
	Rules    int            `json:"rules"`
	Items    []convert.Item `json:"items"`
	Counts   map[string]int `json:"counts"` // of items, by what is kept
	Widens   []string       `json:"widens"` // ids of rules that allow what isn't allowed now
	Document Document       `json:"-"`      // of the rules
	Allowing []Rule         `json:"-"`      // those that widen
}

// Item is one entry of such a file, and what it becomes.
type Item = convert.Item

// What is kept of an entry of such a file.
const (
	KeptSame     = convert.Same
	KeptStricter = convert.Stricter
	KeptLeft     = convert.Left // it was left out
	KeptLost     = convert.Lost // it may deny or ask, and can't be carried over
)

// Count returns of how many entries so much is kept.
func (c *Converted) Count(k convert.Fidelity) int { return c.Counts[string(k)] }

// Convert makes rules of a file, and holds them against those in force.
func Convert(f Foreign, inForce *policy.Set) (*Converted, error) {
	format := convert.Format(f.Format)
	if f.Format == "auto" {
		var ok bool
		if format, ok = convert.Guess(f.Content); !ok {
			return nil, belay.Errorf(belay.CodeUsage, "the format of these rules isn't recognized").At(f.Name).WithHint("--from gemini, claude, openclaw or cowork")
		}
	}
	r, err := convert.Read(format, f.Content, convert.Options{Name: f.Name, Home: f.Home, OfPerson: f.OfPerson})
	if err != nil {
		return nil, err
	}
	c := &Converted{File: f.Name, Format: format, Rules: len(r.Document.Rules), Items: r.Items, Counts: map[string]int{}, Widens: []string{}, Document: r.Document, Allowing: r.Widens(inForce)}
	for _, i := range r.Items {
		c.Counts[string(i.Kept)]++
	}
	for _, rule := range c.Allowing {
		c.Widens = append(c.Widens, rule.ID)
	}
	return c, nil
}

// ClaudeTools returns the tools that do here what a rule of Claude Code is about: those
// that it allows, or the more that it denies.
func ClaudeTools(rule string, deny bool) (names []string, known bool) {
	return convert.ClaudeTools(rule, deny)
}

// ClaudeMode is the mode that a permission mode of Claude Code is here; empty: it isn't
// known.
func ClaudeMode(name string) string { return convert.ClaudeMode(name) }
