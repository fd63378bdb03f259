// Package rulefile reads the files in which people write rules, and lays them
// over one another. It promises that a file is read strictly and in bounded
// time, that every mistake has its place, that a file which can't be read whole
// isn't read at all, and that an untrusted file can only narrow: its allows, its
// checkers, its boundaries and what it trusts don't count and are named.
//
// What the rules mean is package policy's business.
package rulefile

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/policy"
)

// MaxBytes is how long a file may be.
const MaxBytes = strictyaml.MaxBytes

const (
	maxInclude = 100
	hint       = "docs/policy.md describes the form"
)

// Layers collects files. Read gets the content of one that another includes.
// The zero value but for Read is ready.
type Layers struct {
	Read func(path string) ([]byte, error)

	doc     policy.Document
	files   []string
	trusted []string
	ignored []Ignored
	without policy.Document // rules and checkers that don't count, which must be none the less right
	open    []string        // the files that are being read, outermost first
}

// Ignored is something that doesn't count, because its file is untrusted.
type Ignored struct {
	What  string // rule ID, checker ID, trusted
	Where string // file:line:column
}

// Instead are files that a caller brings in place of those of a tier.
type Instead struct {
	Tier   policy.Tier
	Files  []File
	Beside bool                              // those of the tier count, too
	Read   func(path string) ([]byte, error) // the content of one that these include; nil: they include none
}

// File is a file of rules as it was read, or the text of one.
type File struct {
	Path    string
	Content []byte
}

// Place lays the files over those before them.
func (l *Layers) Place(i Instead) error {
	have := l.Read
	l.Read = i.Read
	defer func() { l.Read = have }()
	for _, f := range i.Files {
		if err := l.Add(f.Path, f.Content, i.Tier, true); err != nil {
			return err
		}
	}
	return nil
}

// Add lays a file over those before it. trusted reports whether a file of the tiers
// agent and workspace may widen rights; others always may.
func (l *Layers) Add(path string, content []byte, tier policy.Tier, trusted bool) error {
	if slices.Contains(l.open, path) {
		return bad("the file includes itself: %s", strings.Join(append(l.open, path), " → ")).At(path).WithHint("remove one of the includes")
	}
	if slices.Contains(l.files, path) {
		return nil // included twice: its rules are there
	}
	if l.files = append(l.files, path); len(l.files) > maxInclude {
		return bad("there are more than %d files of rules", maxInclude).At(path).WithHint("put rules together")
	}
	l.open = append(l.open, path)
	defer func() { l.open = l.open[:len(l.open)-1] }()
	if strings.TrimSpace(string(content)) == "" {
		return nil
	}
	t := strictyaml.Text{Name: path, Noun: "policy", Code: belay.CodeBadPolicy, Hint: hint, Size: "split it, and use groups and patterns"}
	root, err := t.Document(content)
	if err != nil {
		return err
	}
	r := &reading{Reader: strictyaml.Reader{Text: t, Root: root}, l: l, tier: tier, path: path,
		narrows: !trusted && (tier == policy.TierWorkspace || tier == policy.TierAgent)}
	if _, ok := root.(*ast.MappingNode); !ok {
		return r.Fail(nil, "the policy is not a list of names and values").WithHint("version: 1, rules: […]; %s", hint)
	}
	if err := r.newer(); err != nil {
		return err
	}
	if n, ok := strictyaml.At(root, "rules").(*ast.SequenceNode); ok && len(n.Values) > policy.MaxRules {
		return r.Fail([]any{"rules"}, "there are %d rules; %d are the most", len(n.Values), policy.MaxRules).WithHint("use groups and patterns")
	}
	var f form
	if err := t.Decode(root, &f); err != nil {
		return err
	}
	return r.take(&f)
}

// newer refuses a file of a later form before anything of it is judged: what is
// unknown to this build is no mistake there.
func (r *reading) newer() error {
	node := strictyaml.At(r.Root, "version")
	if node == nil {
		return r.Fail(nil, "the version is missing").WithHint("begin the file with: version: %d", policy.FormatVersion)
	}
	var version int
	if err := r.Decode(node, &version); err != nil {
		return err
	}
	if version < 1 {
		return r.Fail([]any{"version"}, "there is no version %d", version).WithHint("version: %d", policy.FormatVersion)
	}
	if version > policy.FormatVersion {
		e := r.Fail([]any{"version"}, "the policy is of version %d; this build reads %d", version, policy.FormatVersion)
		e.Code = belay.CodePolicyNewer
		return e.WithHint("update belay")
	}
	return nil
}

func bad(format string, args ...any) *belay.Error {
	return belay.Errorf(belay.CodeBadPolicy, format, args...).WithHint(hint)
}

// reading is one file on its way into the layers.
type reading struct {
	strictyaml.Reader
	l       *Layers
	tier    policy.Tier
	path    string
	narrows bool
}

func (r *reading) take(f *form) error {
	if err := r.include(f); err != nil {
		return err
	}
	doc := &r.l.doc
	for _, name := range slices.Sorted(maps.Keys(f.Groups)) {
		doc.Groups = append(doc.Groups, policy.Group{Name: name, Tools: f.Groups[name], Tier: r.tier})
	}
	for _, tool := range slices.Sorted(maps.Keys(f.Caps)) {
		if f.Caps[tool] < 0 {
			return r.Fail([]any{"caps", tool}, "a cap is 0 or more")
		}
		doc.Caps = append(doc.Caps, policy.Cap{Tool: tool, Calls: f.Caps[tool], Tier: r.tier})
	}
	doc.OwnerOnly = append(doc.OwnerOnly, f.OwnerOnly...)
	if len(f.Trusted) > 0 {
		if r.tier == policy.TierUser || r.tier == policy.TierAdmin {
			r.l.trusted = append(r.l.trusted, f.Trusted...)
		} else {
			r.ignore("trusted", "trusted")
		}
	}
	if err := r.boundaries(f); err != nil {
		return err
	}
	if err := r.rules(f); err != nil {
		return err
	}
	return r.checkers(f)
}

func (r *reading) ignore(what string, path ...any) {
	r.l.ignored = append(r.l.ignored, Ignored{What: what, Where: r.At(path...)})
}

// include reads the files that this one names, which lie beside or below it.
func (r *reading) include(f *form) error {
	for i, name := range f.Include {
		if r.tier == policy.TierWorkspace || r.l.Read == nil {
			return r.Fail([]any{"include", i}, "%s includes no other file", map[bool]string{true: "a policy of a workspace", false: "a text"}[r.tier == policy.TierWorkspace])
		}
		if !filepath.IsLocal(name) {
			return r.Fail([]any{"include", i}, "%q lies outside of the folder of the file", name)
		}
		path := filepath.Join(filepath.Dir(r.path), name)
		content, err := r.l.Read(path)
		if err != nil {
			return r.Fail([]any{"include", i}, "%s can't be read: %v", name, err)
		}
		if err := r.l.Add(path, content, r.tier, !r.narrows); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) rules(f *form) error {
	if n := len(r.l.doc.Rules) + len(f.Rules); n > policy.MaxRules {
		return r.Fail([]any{"rules"}, "there are %d rules; %d are the most", n, policy.MaxRules)
	}
	for i := range f.Rules {
		where := r.At("rules", i)
		rule, err := f.Rules[i].rule(r.tier, where)
		if err != nil {
			return r.Fail([]any{"rules", i}, "%v", err)
		}
		if r.narrows && rule.Verdict == policy.Allow {
			r.l.ignored = append(r.l.ignored, Ignored{What: "rule " + rule.ID, Where: where})
			r.l.without.Rules = append(r.l.without.Rules, rule)
			continue
		}
		r.bounded(&rule, f, i)
		r.l.doc.Rules = append(r.l.doc.Rules, rule)
	}
	if len(f.Capabilities) > 0 {
		rules, err := policy.CapabilityRules(r.tier, f.Capabilities)
		if err != nil {
			return r.Fail([]any{"capabilities"}, "%v", err)
		}
		for i := range rules {
			rules[i].Where = r.At("capabilities")
		}
		r.l.doc.Rules = append(r.l.doc.Rules, rules...)
	}
	return nil
}

func (r *reading) checkers(f *form) error {
	for i := range f.Checkers {
		c, err := f.Checkers[i].checker(r.tier)
		if err != nil {
			return r.Fail([]any{"checkers", i}, "%v", err)
		}
		if r.narrows && c.Kind != "builtin" {
			r.ignore("checker "+c.ID, "checkers", i)
			r.l.without.Checkers = append(r.l.without.Checkers, c)
			continue
		}
		r.l.doc.Checkers = append(r.l.doc.Checkers, c)
	}
	return nil
}

// Empty reports whether no file was added.
func (l *Layers) Empty() bool { return len(l.files) == 0 }

// Files are those that were read, in order.
func (l *Layers) Files() []string { return l.files }

// Trusted are the folders whose files a person trusts, as globs.
func (l *Layers) Trusted() []string { return l.trusted }

// Ignored is what doesn't count.
func (l *Layers) Ignored() []Ignored { return l.ignored }

// Document is the rules of all layers and the built-in ones. groups are the
// groups of tools that there are besides those of the files.
func (l *Layers) Document(groups []policy.Group) policy.Document {
	doc := l.doc
	doc.Version = policy.FormatVersion
	doc.Rules = slices.Concat(policy.BuiltinRules(), l.doc.Rules)
	doc.Groups = slices.Concat(groups, l.doc.Groups)
	return doc
}

// Set is Document made ready. A mistake in what doesn't count is a mistake all the
// same: who trusts the file later must not find out then.
func (l *Layers) Set(groups []policy.Group) (*policy.Set, error) {
	doc := l.Document(groups)
	if len(l.without.Rules)+len(l.without.Checkers) > 0 {
		all := doc
		all.Rules, all.Checkers = slices.Concat(doc.Rules, l.without.Rules), slices.Concat(doc.Checkers, l.without.Checkers)
		if _, err := policy.Compile(all); err != nil {
			return nil, err
		}
	}
	s, err := policy.Compile(doc)
	if err != nil {
		return nil, err
	}
	return s, l.known(s)
}
