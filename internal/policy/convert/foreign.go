// Package convert converts the rules of other agents. It promises three things:
// an allow is carried over only if every call that it then covers was allowed
// there too; a deny or an ask keeps its calls, or takes in more, or is named as
// lost; and every rule and setting of the source is named with its outcome, as
// lost if nothing is known of it.
//
// Commands are compared by their words, not by their spelling: an allow of git
// status covers "git" status as well, which is the same command. An allow
// doesn't reach through wrappers, substitutions, variables and redirections that
// the source would ask about.
package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// Format is whose rules they are.
type Format string

const (
	Gemini   Format = "gemini"   // the policy TOML of Gemini CLI
	Claude   Format = "claude"   // the permissions in the settings.json of Claude Code
	OpenClaw Format = "openclaw" // the tool settings in openclaw.json
	Cowork   Format = "cowork"   // the policy JSON of Cowork, version 1.0
)

// formats in the order help prints them.
var formats = []Format{Gemini, Claude, OpenClaw, Cowork}

// maxBytes bounds a file. Rules that people write are far smaller.
const maxBytes = 4 << 20

// Options say what a file can't.
type Options struct {
	Name     string // the file's name in places
	Home     string // what ~ means; empty: unknown
	OfPerson bool   // of claude: the file is a person's own, not a project's
}

// Fidelity is how much of a source's rule was carried over.
type Fidelity string

// How much of a rule was carried over.
const (
	Same     Fidelity = "same"
	Stricter Fidelity = "stricter" // it asks about or denies more than there
	Left     Fidelity = "left"     // not carried over, which widens nothing
	Lost     Fidelity = "lost"     // it denies or asks, and isn't carried over
)

// Item is the outcome of one rule or setting of the source.
type Item struct {
	Source string          `json:"source"` // the rule in the source's words
	Where  string          `json:"where"`  // file:line
	Says   policy.Decision `json:"says,omitempty"`
	Kept   Fidelity        `json:"kept"`
	Rules  []string        `json:"rules,omitempty"` // ids of the rules that it became
	Why    string          `json:"why,omitempty"`   // it isn't the same
}

// Result is rules of the tier user, and where they come from, in the order of
// the source.
type Result struct {
	Format   Format
	Document policy.Document
	Items    []Item
}

// Read reads a file. What comes out has been compiled, with the examples of its
// rules. An error is a *belay.Error with its place.
func Read(f Format, content []byte, o Options) (*Result, error) {
	if len(content) > maxBytes {
		return nil, mistake(o.Name, 0, "the file has %d bytes; %d are the most", len(content), maxBytes).WithHint("split it, and import the parts")
	}
	d := &draft{fields: fields{name: o.Name}, o: o, format: f, taken: map[string]int{}, settings: settings(f)}
	parse, read := parseJSON, (func(*node))(nil)
	switch f {
	case Gemini:
		parse, read = readTOML, gemini{d}.read
	case Claude:
		read = claude{d}.read
	case OpenClaw:
		content, read = plainJSON(content), openclaw{d}.read
	case Cowork:
		read = cowork{d}.read
	default:
		return nil, belay.Errorf(belay.CodeUsage, "there is no format %q", f).WithHint("the formats are gemini, claude, openclaw, cowork")
	}
	root, err := parse(o.Name, content)
	if err != nil {
		return nil, err
	}
	if read(root); d.err != nil {
		return nil, d.err
	}
	d.unread(root, "", false)
	doc := policy.Document{Version: policy.FormatVersion, Rules: d.rules}
	if _, err := policy.Compile(doc); err != nil {
		return nil, err
	}
	return &Result{Format: f, Document: doc, Items: d.items}, nil
}

// Widens are the rules that allow something and aren't among those in force.
func (r *Result) Widens(inForce *policy.Set) (out []policy.Rule) {
	have := map[string]bool{}
	for _, o := range inForce.Document().Rules {
		if o.Verdict == policy.Allow && (o.Tier == policy.TierUser || o.Tier == policy.TierAdmin) {
			have[spelled(&o)] = true
		}
	}
	for _, o := range r.Document.Rules {
		if o.Verdict == policy.Allow && !have[spelled(&o)] {
			out = append(out, o)
		}
	}
	return out
}

// spelled is what a rule asks for, as one text.
func spelled(r *policy.Rule) string {
	raw, _ := json.Marshal(r.Match) // a match can always be written
	return string(raw)
}

// Guess returns the format of a file; false when it could be several or none.
func Guess(content []byte) (Format, bool) {
	if len(content) > maxBytes {
		return "", false
	}
	if t := bytes.TrimSpace(content); len(t) == 0 || t[0] != '{' && !bytes.HasPrefix(t, []byte("//")) && !bytes.HasPrefix(t, []byte("/*")) {
		root, err := readTOML("", content)
		return Gemini, err == nil && (root.at("rule") != nil || root.at("safety_checker") != nil)
	}
	root, err := parseJSON("", plainJSON(content))
	if err != nil || root.kind != object {
		return "", false
	}
	var is []Format
	if root.at("permissions") != nil {
		is = append(is, Claude)
	}
	if root.at("rules") != nil && root.at("defaults") != nil {
		is = append(is, Cowork)
	}
	if root.at("tools") != nil || root.at("agents") != nil {
		is = append(is, OpenClaw)
	}
	if len(is) != 1 {
		return "", false
	}
	return is[0], true
}

func mistake(name string, line int, format string, args ...any) *belay.Error {
	return belay.Errorf(belay.CodeBadPolicy, format, args...).At(where(name, line)).WithHint("docs/policy.md says what is read of each format")
}

// where is a line of a file, or the file itself.
func where(name string, line int) string {
	if line <= 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, line)
}

// draft is a result in the making.
type draft struct {
	fields
	o      Options
	format Format
	rules  []policy.Rule
	items  []Item
	taken  map[string]int // how often an id was wanted

	settings []setting // what is known of settings of the format
}

// source is one rule of the source on its way.
type source struct {
	text string // in the source's words
	line int
	says policy.Decision
	stem string // of ids
	base policy.Rule
	why  []string // it is stricter
	lost []string // what of it isn't understood
	ids  []string
}

// add makes a rule of what a source says; what isn't given comes from its base.
func (d *draft) add(s *source, m policy.Match, match, not []policy.Example) {
	r := s.base
	r.Match, r.Verdict, r.Tier = m, s.says, policy.TierUser
	if r.Mode == nil {
		r.Mode = s.base.Mode
	}
	if r.Agent == nil {
		r.Agent = s.base.Agent
	}
	if r.Reason == "" {
		r.Reason = short(string(d.format)+": "+s.text, 200)
	}
	r.Examples = policy.Examples{Match: match, NoMatch: not}
	r.ID = d.id(s.stem)
	r.Where = where(d.name, s.line)
	d.rules = append(d.rules, r)
	s.ids = append(s.ids, r.ID)
}

// strange notes a name in an ask or a deny that stands for no tool that is known.
func (s *source) strange(tool string) {
	s.lost = append(s.lost, "nothing is known of "+short(tool, 80)+" here: only a tool of that very name is meant")
}

// done names the outcome of a source.
func (d *draft) done(s *source) {
	kept := Same
	switch {
	case len(s.lost) > 0 && s.says != policy.Allow:
		kept = Lost
	case len(s.why)+len(s.lost) > 0:
		kept = Stricter
	}
	d.item(s, kept, strings.Join(slices.Compact(slices.Concat(s.lost, s.why)), "; "))
}

// finish makes the last rule of what a source says, often the only one, and names the outcome.
func (d *draft) finish(s *source, m policy.Match, match, not []policy.Example) {
	d.add(s, m, match, not)
	d.done(s)
}

// drop records that a source isn't carried over.
func (d *draft) drop(s *source, why string) {
	kept := Left
	if s.says == policy.Ask || s.says == policy.Deny {
		kept = Lost
	}
	d.item(s, kept, why)
}

// noEffect records that a source never matches, so that nothing is lost without it.
func (d *draft) noEffect(s *source, why string) { d.item(s, Left, why) }

func (d *draft) item(s *source, k Fidelity, why string) {
	d.items = append(d.items, Item{Source: short(s.text, 200), Where: where(d.name, s.line), Says: s.says, Kept: k, Rules: s.ids, Why: why})
}

// setting names something that is no rule.
func (d *draft) setting(name string, line int, k Fidelity, why string) {
	d.items = append(d.items, Item{Source: short(name, 200), Where: where(d.name, line), Kept: k, Why: why})
}

// id is a rule's id: words of the source, and a number if they are taken.
func (d *draft) id(stem string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(string(d.format) + "-" + stem) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if s := b.String(); !strings.HasSuffix(s, "-") {
			b.WriteByte('-')
		}
		if b.Len() >= 50 {
			break
		}
	}
	id := strings.Trim(b.String(), "-")
	d.taken[id]++
	if n := d.taken[id]; n > 1 {
		// No other stem ends like this: a point is in none.
		return fmt.Sprintf("%s.%d", id, n)
	}
	return id
}

func short(s string, n int) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

func verb(d policy.Decision) string {
	if d == policy.Ask {
		return "asks about"
	}
	return "denies"
}
