package block

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/view/story"
)

// What a preview shows.
const (
	PreviewDiff    = "diff"    // changes of files as they are now
	PreviewCommand = "command" // what a program or a command line runs
	PreviewText    = "text"    // a call's arguments, or the question itself
)

// Preview is an open question as whoever answers it must see it: whole. An answer is
// bound to its version.
type Preview struct {
	ID      belay.ActionID  `json:"actionId"`
	Version string          `json:"version"` // changes when the request does
	Kind    string          `json:"kind"`    // permission, question, form, continue, budget
	Shows   string          `json:"shows"`   // diff, command, text
	Call    belay.CallID    `json:"callId,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"` // of the call, exactly
	What    string          `json:"what,omitempty"` // the call in words
	Rule    string          `json:"rule,omitempty"` // why it is asked about
	Mode    string          `json:"mode,omitempty"`
	Until   time.Time       `json:"until"`             // then it is denied
	Wider   bool            `json:"wider,omitempty"`   // the call ran, and asks for more than its boundary allows
	Notes   []string        `json:"notes,omitempty"`   // why it is asked once more, what a boundary stopped
	Confirm string          `json:"confirm,omitempty"` // why a yes takes a second key: it can destroy something, or lets more be spent
	Like    belay.Digest    `json:"like,omitempty"`    // the same for every agent that asks for the same call, in the same folder and boundary

	Lineage []belay.Ancestor `json:"lineage,omitempty"` // of a sub-agent's: from the main thread to the one that asks

	Files   []File `json:"files,omitempty"`   // of a diff: what the call makes of them
	Problem string `json:"problem,omitempty"` // why the call would fail as things are now

	Line     string              `json:"line,omitempty"`     // of a command: as the model wrote it
	Commands []string            `json:"commands,omitempty"` // the simple commands that it is made of
	Folder   string              `json:"folder,omitempty"`   // where they run
	Boundary string              `json:"boundary,omitempty"`
	Network  string              `json:"network,omitempty"` // none, hosts, full
	Hosts    []string            `json:"hosts,omitempty"`   // of network hosts
	Programs []belay.ProgramSeen `json:"programs,omitempty"`

	Text    string   `json:"text,omitempty"`    // of a text
	Options []string `json:"options,omitempty"` // of an agent's question: to choose from
	Prefix  string   `json:"prefix,omitempty"`  // proposed for an answer with scope prefix; empty: none is

	Offers []Offer  `json:"offers,omitempty"` // what an answer can allow beyond the call; another scope is refused
	Taint  []string `json:"taint,omitempty"`  // because of which it is asked, as kind:origin: clearTaint trusts it
}

// Offer is something that an answer can allow beyond the call that asks.
type Offer struct {
	Scope  string   `json:"scope"`            // session, prefix, count, until
	Covers string   `json:"covers"`           // tool, host, words, files, call
	Prefix string   `json:"prefix,omitempty"` // the host, the words, the folder
	Taint  []string `json:"taint,omitempty"`  // what the calls bring from outside, kind:origin, which a yes accepts
}

// Offer is what an answer with a scope can allow, or nil.
func (p *Preview) Offer(scope string) *Offer {
	if p == nil {
		return nil
	}
	if i := slices.IndexFunc(p.Offers, func(o Offer) bool { return o.Scope == scope }); i >= 0 {
		return &p.Offers[i]
	}
	return nil
}

// What is what it covers in words, of a call of a tool that runs a command or not.
func (o *Offer) What(tool string, command bool) string {
	switch {
	case o.Covers == "call":
		return "exactly this call"
	case o.Covers == "words":
		return fmt.Sprintf("commands that begin with %q", Line(o.Prefix))
	case o.Covers != "tool":
		return "only " + Line(o.Prefix)
	case command:
		return "every command"
	}
	return "every " + Line(tool)
}

// Show puts what an answer is about into the block of its question, with the version
// that it is for.
func (f *Fold) Show(p Preview) {
	if b := f.find(KindQuestion, string(p.ID)); b != nil {
		q := *b.Asked
		q.Preview, q.Rule, q.Mode = &p, p.Rule, p.Mode
		b.Asked = &q
	}
}

// Lines renders a preview. Nothing of it is left out, and everything that doesn't show
// itself is written out.
func (p *Preview) Lines(o Options) []string {
	var out []string
	body := func(head, text string) {
		lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
		for i, l := range lines {
			if i > 0 {
				head = strings.Repeat(" ", ansi.StringWidth(head))
			}
			out = append(out, o.wrap(head, strings.Repeat(" ", ansi.StringWidth(head)), exactly(l))...)
		}
	}
	if from := asker(p.Lineage); from != "" {
		out = append(out, o.wrap("", "  ", from+" asks:")...)
	}
	what, why := exactly(p.What), ""
	if p.Rule != "" {
		why = "asks: rule " + Line(p.Rule)
		if p.Mode != "" {
			why += ", mode " + Line(p.Mode)
		}
	}
	if len(p.Files) == 1 {
		what += "  " + p.Files[0].counts(o)
	}
	if p.What != "" {
		head := o.paint(yellow, "! ")
		if o.ScreenReader {
			head = "Allow this? "
		}
		out = append(out, o.whole(head, what, why)...)
	}
	switch p.Shows {
	case PreviewDiff:
		for _, f := range p.Files {
			if len(p.Files) > 1 {
				out = append(out, o.wrap("  ", "    ", exactly(f.Path)+"  "+f.counts(o))...)
			}
			out = append(out, o.hunks(f.Hunks, 0)...)
		}
	case PreviewCommand:
		if p.Line != p.What {
			body("  line: ", p.Line)
		}
		if len(p.Commands) > 1 || len(p.Commands) == 1 && p.Commands[0] != p.Line {
			head := "  runs: "
			for _, c := range p.Commands {
				body(head, c)
				head = strings.Repeat(" ", len(head))
			}
		}
		out = append(out, o.wrap("  in ", "     ", strings.Join(p.within(), ", "))...)
		for _, prog := range p.Programs {
			if prog.Path != "" && prog.Path != prog.Name {
				out = append(out, o.wrap("  ", "    ", story.Exactly(prog.Name+" is "+prog.Path))...)
			}
		}
	case PreviewText:
		head := "  "
		if p.What == "" {
			head = o.paint(yellow, "! ")
		}
		body(head, p.Text)
	}
	if p.Problem != "" {
		out = append(out, o.wrap("  ", "    ", "it would fail as things are now: "+Line(p.Problem))...)
	}
	for _, n := range p.Notes {
		out = append(out, o.wrap("  ", "    ", exactly(n))...)
	}
	return out
}

// asker names the agent that asks, and those that started it, the nearest first; empty:
// it is the main one.
func asker(lineage []belay.Ancestor) string {
	var names []string
	for _, a := range slices.Backward(lineage) {
		if a.Subagent != "" {
			names = append(names, Line(cmp.Or(a.Name, a.Agent)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "agent " + strings.Join(names, ", of ")
}

// within is where a command runs, and what it may reach.
func (p *Preview) within() []string {
	out := []string{exactly(p.Folder)}
	switch {
	case p.Network == belay.NetworkHosts:
		out = append(out, "network: "+exactly(strings.Join(p.Hosts, " ")))
	case p.Network != "":
		out = append(out, "network "+p.Network)
	}
	if p.Boundary != "" {
		out = append(out, "boundary "+Line(p.Boundary))
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// whole is columns without cutting: what doesn't fit goes on below.
func (o Options) whole(head, what, details string) []string {
	if width := ansi.StringWidth(head) + ansi.StringWidth(what) + 2 + ansi.StringWidth(details); o.Width <= 0 || width <= o.Width {
		if details == "" {
			return []string{head + what}
		}
		return o.columns(head, what, details)
	}
	out := o.wrap(head, "  ", what)
	if details != "" {
		out = append(out, o.wrap("  ", "  ", details)...)
	}
	return out
}

// exactly is a line that a person answers for, with its tabs as they look.
func exactly(s string) string {
	return story.Exactly(strings.ReplaceAll(s, "\t", "    "))
}

// Words are a call's arguments for people: a name and its value, in the order of the
// names, texts as they are.
func Words(args json.RawMessage) string {
	var in map[string]json.RawMessage
	if json.Unmarshal(args, &in) != nil {
		return string(args)
	}
	names := make([]string, 0, len(in))
	for name := range in {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		var text string
		if json.Unmarshal(in[name], &text) != nil || !strings.HasPrefix(string(in[name]), `"`) {
			text = string(in[name])
		}
		if strings.Contains(text, "\n") {
			b.WriteString(name + ":\n  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n")
			continue
		}
		b.WriteString(name + ": " + text + "\n")
	}
	return b.String()
}
