package agentfile

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/tool"
)

// Catalog is the agents of some places, the strongest place first.
type Catalog struct {
	All []*Agent // by place, path

	places []Place
}

// Open reads the agents of places, the strongest first; behind them come those that are
// built in. A folder that doesn't exist has none, and what can't be read is an agent that
// can't run.
func Open(places []Place, built ...Agent) *Catalog {
	c := &Catalog{places: places}
	for i, p := range places {
		from := len(c.All)
		c.folder(p)
		for _, a := range c.All[from:] {
			a.place = i
		}
	}
	for _, a := range built {
		a.Origin, a.Trusted, a.place = BuiltIn, true, len(places)
		a.Digest = belay.DigestOf([]byte(a.Name + "\n" + a.Instructions))
		c.All = append(c.All, &a)
	}
	c.ambiguous()
	for _, a := range c.All {
		c.depend(a)
	}
	return c
}

// Parse reads a file.
func Parse(path string, data []byte) *Agent {
	a := &Agent{Source: Source{Path: path, Digest: belay.DigestOf(data), content: data}}
	switch {
	case len(data) > MaxBytes:
		a.unread(CodeTooMany, "the file has more than %d MiB", MaxBytes>>20)
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		a.unread(CodeBadFile, "the file is no UTF-8 text")
	case strings.TrimSpace(string(data)) == "":
		a.unread(CodeNoAgent, "the file is empty")
	case strings.EqualFold(filepath.Ext(path), ".md"):
		a.readMarkdown(data)
	default:
		a.readYAML(data)
	}
	slices.SortStableFunc(a.Findings, func(x, y Finding) int { return cmp.Compare(levelOrder(x.Level), levelOrder(y.Level)) })
	return a
}

func levelOrder(l string) int { return slices.Index([]string{Error, Warning, Note}, l) }

func (a *Agent) unread(code, format string, args ...any) {
	a.Name = baseName(a.Path)
	a.find(Error, code, a.Path, reference, format, args...)
}

func baseName(p string) string {
	b := filepath.Base(p)
	return strings.TrimSuffix(b, filepath.Ext(b))
}

// Names reports whether a file's name is one of an agent.
func Names(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return (ext == ".md" || ext == ".yaml" || ext == ".yml") && name[0] != '.' && name[0] != '_'
}

// folder adds the agents of a place.
func (c *Catalog) folder(p Place) {
	p.walk(func(_ *os.Root, _ string, d fs.DirEntry) (string, bool) { return "", !d.IsDir() && Names(d.Name()) }, func(f found) {
		a := &Agent{Source: Source{Path: f.name}}
		if f.code != "" {
			a.unread(f.code, "%s", f.problem)
		} else {
			a = Parse(f.name, f.data)
		}
		a.Origin, a.Trusted = p.Origin, f.trusted
		c.All = append(c.All, p.lastGood(a, f.rel))
	})
}

// lastGood is an agent as its file was when it could be used last, if it can't be used now.
func (p Place) lastGood(a *Agent, rel string) *Agent {
	if a.Usable() || p.Good == nil {
		return a
	}
	data := p.Good(a.Path)
	if data == nil {
		return a
	}
	b := Parse(a.Path, data)
	if !b.Usable() {
		return a
	}
	b.Origin, b.Trusted, b.Broken = p.Origin, p.trusts(rel, data), a.Findings
	b.broken = a.Digest
	b.find(Warning, CodeLastGood, a.Findings[0].Where, "repair the file: belay agents check "+a.Path, "the file can't be used (%s: %s): its last good content counts", a.Findings[0].Code, a.Findings[0].Message)
	return b
}

// ambiguous finds files of one place with one name and version, and other content.
func (c *Catalog) ambiguous() {
	type key struct {
		place         int
		name, version string
	}
	first := map[key]*Agent{}
	for _, a := range c.All {
		if !a.Usable() {
			continue
		}
		k := key{a.place, a.Name, a.Version}
		b := first[k]
		switch {
		case b == nil:
			first[k] = a
		case b.Digest != a.Digest:
			for x, y := range map[*Agent]*Agent{a: b, b: a} { // each names the other
				if !x.Is(CodeAmbiguous) {
					x.find(Error, CodeAmbiguous, x.Path, "give one of them another name or version", "%s has this name and version too", y.Path)
				}
			}
		}
	}
}

// Covers reports whether a file of a path would be one of the catalogue's. Folders that a
// person names for once don't count.
func (c *Catalog) Covers(name string) bool {
	return slices.ContainsFunc(c.places, func(p Place) bool {
		rel, err := filepath.Rel(filepath.Join(p.Dir, filepath.FromSlash(p.Below)), name)
		return err == nil && filepath.IsLocal(rel) && p.Origin != Given
	})
}

// News are the agents whose files differ from what is known of them: the digest of the last
// good content, and of what is there instead.
func (c *Catalog) News(known func(path string) (good, refused belay.Digest)) (all []*Agent) {
	for _, a := range c.All {
		good, refused := known(a.Path)
		if a.Origin == Given || a.Origin == BuiltIn || !a.Usable() && !a.Is(CodeAmbiguous) {
			continue
		}
		if _, now := a.Content(); a.Digest != good || now != refused {
			all = append(all, a)
		}
	}
	return all
}

// Is reports whether the agent has a finding with a code.
func (a *Agent) Is(code string) bool {
	return slices.ContainsFunc(a.Findings, func(f Finding) bool { return f.Code == code })
}

// Find returns the agent that a person or a model means: NAME, NAME@RANGE or ORIGIN:NAME.
// The strongest place that has the name counts, and of its versions the highest that fits;
// if nothing there can be used, a weaker place isn't asked instead.
// An agent of a workspace that isn't trusted never takes another's name.
func (c *Catalog) Find(want string) (*Agent, error) {
	name, versions, _ := strings.Cut(want, "@")
	if _, err := rangeOf(versions); err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%q is no range of versions", short(versions, 40)).At(want).WithHint("such as ^1.2 or >=1.0 <3")
	}
	origin := ""
	if o, rest, ok := strings.Cut(name, ":"); ok && slices.Contains([]string{Given, Workspace, User, System, BuiltIn}, o) {
		origin, name = o, rest
	}
	var named []*Agent
	for _, a := range c.All {
		if a.Name == name && (origin == "" || a.Origin == origin) {
			named = append(named, a)
		}
	}
	if len(named) == 0 {
		return nil, belay.Errorf(belay.CodeNotFound, "there is no agent %s", short(name, 80)).WithHint("%s", match.Hint(name, c.Names(), "belay agents list shows them"))
	}
	var best *Agent
	for _, trusted := range []bool{true, false} {
		for _, a := range named {
			if a.Trusted != trusted || !a.Fits(versions) || best != nil && a.place != best.place {
				continue
			}
			if best == nil || a.Usable() && (!best.Usable() || a.semver().GreaterThan(best.semver())) {
				best = a
			}
		}
		if best != nil {
			break
		}
	}
	if best != nil {
		if best.Usable() {
			return best, nil
		}
		named = []*Agent{best}
	}
	for _, a := range named {
		for _, f := range a.Findings {
			if f.Level == Error {
				return nil, belay.Errorf(belay.CodeBadManifest, "agent %s can't be used: %s: %s", name, f.Code, f.Message).At(f.Where).WithHint("belay agents check")
			}
		}
	}
	return nil, belay.Errorf(belay.CodeNotFound, "no version of agent %s fits %s; there are %s", name, versions, strings.Join(versionsOf(named), ", ")).WithHint("belay agents list")
}

func versionsOf(all []*Agent) (out []string) {
	for _, a := range all {
		out = append(out, cmp.Or(a.Version, "0.0.0"))
	}
	return out
}

// Names are the names of all agents, each once.
func (c *Catalog) Names() []string {
	names := map[string]bool{}
	for _, a := range c.All {
		names[a.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// InForce are the agents that bare names mean, by name.
func (c *Catalog) InForce() (out []*Agent) {
	for _, name := range c.Names() {
		if a, err := c.Find(name); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// About lists the agents that have a word as a capability, a tool or their domain.
func (c *Catalog) About(capability, tool, domain string) (out []*Agent) {
	for _, a := range c.All {
		if (capability == "" || slices.Contains(a.GoodAt, capability) || slices.Contains(a.Can, capability)) &&
			(tool == "" || slices.Contains(a.Tools, tool)) && (domain == "" || a.Domain == domain) {
			out = append(out, a)
		}
	}
	return out
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Told is what a person's task for an agent is with the data that it is started with, which
// is held against the agent's schema. Only who starts it has to bring some.
func (c *Catalog) Told(agent, text string, data json.RawMessage, starts bool) (string, error) {
	if agent == "" && len(data) == 0 {
		return text, nil
	}
	if agent == "" {
		return "", belay.Errorf(belay.CodeUsage, "data is for an agent, and none is named").WithHint("name the agent, or put the data into the text")
	}
	a, err := c.Find(agent)
	if err != nil && len(data) == 0 { // who makes the rules of the turn meets it
		return text, nil
	}
	if err != nil {
		return "", err
	}
	said := ""
	switch {
	case len(data) == 0 && a.Input != nil && starts:
		said = "it is missing"
	case len(data) == 0:
		return text, nil
	case !json.Valid(data):
		return "", belay.Errorf(belay.CodeUsage, "it isn't JSON").WithHint(`a value such as {"change": 7}`)
	case a.Input != nil:
		if said, err = tool.Misfit(a.Input, data); err != nil {
			return "", err
		}
	}
	if said != "" {
		return "", belay.Errorf(belay.CodeBadInput, "the input of agent %s doesn't fit its schema: %s", a.Name, said).WithHint("its schema is %s", short(string(a.Input), 1000))
	}
	return tool.SpawnArgs{Task: text, Input: data}.Objective(), nil
}
