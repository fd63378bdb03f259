package simulate

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
)

// candidates are rules of the tier user that would give a call another verdict,
// and speak of as little else as can be said: of a command line one for each
// simple command that needs one. They were tried: none are returned that don't
// change the verdict, or that fail their own examples; none that allow what is
// asked about because of taint.
func candidates(set *policy.Set, r policy.Request, want policy.Decision) []policy.Rule {
	if set == nil || r.Tool.Handled != "" {
		return nil
	}
	r.Headless = false
	if want == policy.Ask && r.Mode == belay.ModeNever {
		want = policy.Deny
	}
	v := policy.Evaluate(set, &r)
	if want == policy.Allow && slices.Contains(v.Tags, "taint") {
		return nil // what content from outside could have wished for is a person's to answer, each time
	}
	all := drafts(v, r, want)
	if len(all) == 0 || len(all) > maxDrafts {
		return nil
	}
	rules := make([]policy.Rule, len(all))
	for i := range all {
		rules[i] = all[i].rule()
		proven(&rules[i])
		rules[i].ID = fresh(set, rules[:i], rules[i].ID)
	}
	with, err := add(set, rules...)
	if err != nil || policy.Evaluate(with, &r).Decision != want {
		return nil
	}
	return rules
}

// maxDrafts is how many rules are drafted for one call.
const maxDrafts = 5

// add is a set with more rules.
func add(set *policy.Set, rules ...policy.Rule) (*policy.Set, error) {
	d := *set.Document()
	d.Rules = slices.Concat(d.Rules, rules)
	return policy.Compile(d)
}

// draft is a rule in the making. One that allows speaks of nothing but what was
// asked: its expression holds for these values alone.
type draft struct {
	policy.Rule
	on   string   // what the values are of; empty: the rule needs no expression
	is   []string // the values, as they are written in an expression
	also string   // what must hold besides
}

// rule is the draft as a rule.
func (d *draft) rule() policy.Rule {
	r := d.Rule
	switch {
	case d.on == "":
	case len(d.is) == 1:
		r.If = d.on + " == " + d.is[0] + d.also
	default:
		r.If = d.on + " in [" + strings.Join(d.is, ", ") + "]" + d.also
	}
	return r
}

// drafts are rules for what of a call has another verdict than is wanted.
func drafts(v policy.Verdict, r policy.Request, want policy.Decision) []draft {
	if r.Tool.Command == nil {
		return draftsOfCall(r, want)
	}
	if len(v.Commands) != len(r.Commands) {
		return nil
	}
	var out []draft
	for i, j := range v.Commands {
		if j.Decision == want {
			continue
		}
		rule, ok := draftOfCommand(r.Tool.Name, r.Commands[i], want)
		d := draft{Rule: rule}
		if ok && want == policy.Allow {
			ok = d.exactly(r)
		}
		if !ok {
			return nil
		}
		if !slices.ContainsFunc(out, func(o draft) bool { return o.ID == d.ID }) {
			out = append(out, d)
		}
		if want != policy.Allow {
			break // one command is enough
		}
	}
	return out
}

// exactly holds a draft to the arguments of a call: another file, script, folder
// or option may read or run something else. How long a command may take doesn't
// matter. It is false where the arguments can't be written down.
func (d *draft) exactly(r policy.Request) bool {
	var args map[string]any
	if json.Unmarshal(r.Args, &args) != nil {
		return false
	}
	for i := range d.Examples.Match {
		d.Examples.Match[i].Args = r.Args
	}
	c := r.Tool.Command
	if c == nil {
		d.on = "args"
		return d.value(args)
	}
	for _, name := range []string{c.Line, c.Argv, c.Dir, c.Env, c.Boundary} {
		switch value, given := args[name]; {
		case name == "" || !given && !argument.Match(name):
		case !given:
			d.also += " && !has(args." + name + ")"
		case !argument.Match(name):
			return false
		case d.on == "":
			d.on = "args." + name
			if !d.value(value) {
				return false
			}
		default:
			literal, ok := written(value)
			if !ok {
				return false
			}
			d.also += " && args." + name + " == " + literal
		}
	}
	return d.on != ""
}

// argument is a name that an expression can select.
var argument = match.Lazy(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (d *draft) value(v any) bool {
	literal, ok := written(v)
	d.is = []string{literal}
	return ok
}

// written is a value as expressions write it, which is as JSON does.
func written(v any) (string, bool) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err == nil
}

// word is what a subcommand looks like: no file, no option, no value.
var word = match.Lazy(`^[a-z][a-z0-9_:-]{0,31}$`)

// draftOfCommand is a rule for a program, its subcommand if it has one, and the
// class that this command has: what is stricter it doesn't cover.
func draftOfCommand(tool string, c policy.Command, want policy.Decision) (policy.Rule, bool) {
	if c.Class == policy.Unparsable || c.Class == policy.EscapeAttempt {
		return policy.Rule{}, false
	}
	program := path.Base(c.Name)
	if !programName.Match(program) {
		return policy.Rule{}, false
	}
	m := &policy.CommandMatch{Program: []string{program}, Class: []string{string(c.Class)}}
	id := []string{string(want), program}
	if len(c.Args) > 0 && word.Match(c.Args[0]) {
		m.Prefix = c.Args[:1:1]
		id = append(id, c.Args[0])
	}
	r := policy.Rule{ID: slug(id...), Tier: policy.TierUser, Verdict: want, Match: policy.Match{Tool: []string{tool}, Command: m}}
	if c.Class == policy.Network && len(c.Hosts) > 0 {
		r.Host = slices.Compact(slices.Sorted(slices.Values(c.Hosts)))
	}
	r.Reason = reasonOf(want, "`"+strings.Join(append([]string{program}, m.Prefix...), " ")+"`")
	r.Examples.Match = []policy.Example{{Command: commandLine(c)}}
	return r, true
}

var programName = match.Lazy(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

// draftsOfCall are the rule for a call that runs no command line. Files that it
// does nothing but write it may write in the same folders; anything else must be
// the same call.
func draftsOfCall(r policy.Request, want policy.Decision) []draft {
	tool := r.Tool.Name
	d := draft{Rule: policy.Rule{ID: slug(string(want), tool), Tier: policy.TierUser, Verdict: want, Match: policy.Match{Tool: []string{tool}}, Reason: reasonOf(want, tool)}}
	writes := r.Tool.Access == belay.Write && !r.Tool.Destructive && len(r.Tool.Capabilities) == 0
	globs, ids := folders(r.Paths)
	if len(globs) > 0 && (writes || want != policy.Allow) {
		d.Path = &policy.PathMatch{Match: globs, Where: "inside"}
		d.ID = slug(slices.Concat([]string{string(want), tool}, ids)...)
		d.Reason = reasonOf(want, tool+" in "+strings.Join(globs, ", "))
		d.Examples.Match = []policy.Example{{Path: r.Paths[0], Access: string(r.Tool.Access)}}
		return []draft{d}
	}
	d.Examples.Match = []policy.Example{{Tool: tool}}
	if want == policy.Allow && !d.exactly(r) {
		return nil
	}
	return []draft{d}
}

// folders are globs for the folders of files inside the workspace; none if one
// lies outside or can't be written as a glob.
func folders(paths []string) (globs, ids []string) {
	for _, p := range paths {
		if !policy.Inside(p) || strings.ContainsAny(p, "*?[]{}\\\n\r") || len(paths) > 20 {
			return nil, nil
		}
		dir := path.Dir(path.Clean(p))
		glob, id := dir+"/*", dir
		if dir == "." {
			glob, id = path.Clean(p), path.Clean(p)
		}
		if !slices.Contains(globs, glob) {
			globs, ids = append(globs, glob), append(ids, id)
		}
	}
	return globs, ids
}

func reasonOf(want policy.Decision, what string) string {
	if want == policy.Allow {
		return what + " may run without a question"
	}
	return what + " needs a look"
}

// commandLine is a simple command as one could type it.
func commandLine(c policy.Command) string {
	words := make([]string, 0, len(c.Args)+1)
	for _, w := range append([]string{c.Name}, c.Args...) {
		if w == "" || !plain.Match(w) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

var plain = match.Lazy(`^[A-Za-z0-9_@%+=:,./-]+$`)

// proven drops examples that the rule doesn't speak of: they were read in
// another folder, or with another home.
func proven(r *policy.Rule) {
	tried, err := policy.Try(policy.Document{Version: policy.FormatVersion, Rules: []policy.Rule{*r}})
	if err != nil || slices.ContainsFunc(tried, func(t policy.ExampleResult) bool { return !t.OK() }) {
		r.Examples = policy.Examples{}
	}
}

var notID = match.Lazy(`[^a-z0-9._-]+`)

// slug is an id for a rule about words.
func slug(words ...string) string {
	s := notID.Get().ReplaceAllString(strings.ToLower(strings.Join(words, "-")), "-")
	if s = strings.Trim(s, "-._"); len(s) > 56 {
		s = strings.Trim(s[:56], "-._")
	}
	return s
}

// fresh is an id that no rule of the tier has.
func fresh(set *policy.Set, beside []policy.Rule, id string) string {
	name := id
	for n := 2; ; n++ {
		if set.RuleOf(policy.TierUser+"/"+name) == nil && !slices.ContainsFunc(beside, func(r policy.Rule) bool { return r.ID == name }) {
			return name
		}
		name = fmt.Sprintf("%s-%d", id, n)
	}
}
