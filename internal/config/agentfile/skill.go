package agentfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/lib/match"
)

// SkillFile is the file that makes a folder a skill.
const SkillFile = "SKILL.md"

// Bounds of a skill, by the rules of Agent Skills.
const (
	maxSkillName  = 64
	maxSkillText  = 1024 // characters of its description
	maxSkillFiles = 200  // that are listed
)

// Skill is a folder that teaches an agent how to do something, as its SKILL.md says. It
// never changes.
type Skill struct {
	Name         string       `json:"name"`
	Description  string       `json:"description,omitempty"`
	Origin       string       `json:"origin"`
	Path         string       `json:"path"` // of SKILL.md
	Digest       belay.Digest `json:"digest,omitempty"`
	Trusted      bool         `json:"trusted"`
	Hidden       bool         `json:"hidden,omitempty"` // only people start it: the model isn't told of it
	Instructions string       `json:"instructions,omitempty"`
	Files        []string     `json:"files,omitempty"` // besides SKILL.md, relative to the folder
	Unknown      []string     `json:"unknownKeys,omitempty"`
	Findings     Findings     `json:"findings,omitempty"`

	place *Place
	rel   string // of the folder, in the place
	order int    // of the place; the strongest is 0
}

// Skills are the skills of some places, the strongest place first.
type Skills struct {
	All []*Skill // by place, path
}

// skillKeys are the keys of front matter that the rules have, and those that count
// besides.
var skillKeys = []string{"name", "description", "license", "compatibility", "metadata", "allowed-tools", "disable-model-invocation"}

var skillName = match.Lazy(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// OpenSkills reads the skills of places, the strongest first. What can't be read is a
// skill that can't be used.
func OpenSkills(places []Place) *Skills {
	c := &Skills{}
	for i := range places {
		p := &places[i]
		from := len(c.All)
		p.walk(isSkill, func(f found) {
			s := &Skill{Path: f.name, Origin: p.Origin, Trusted: f.trusted, place: p, rel: path.Dir(f.rel), order: i}
			if f.code != "" {
				s.Name = filepath.Base(filepath.Dir(f.name))
				s.Findings.add(Error, f.code, f.name, reference, "%s", f.problem)
			} else {
				s.parse(f.data)
			}
			c.All = append(c.All, s)
		})
		c.twice(from)
	}
	return c
}

// isSkill takes folders that have a SKILL.md.
func isSkill(root *os.Root, rel string, d fs.DirEntry) (string, bool) {
	if !d.IsDir() {
		return "", false
	}
	info, err := root.Lstat(filepath.FromSlash(path.Join(rel, SkillFile)))
	return SkillFile, err == nil && info.Mode().IsRegular()
}

// ParseSkill reads a text as the SKILL.md of a path.
func ParseSkill(name string, data []byte) *Skill {
	s := &Skill{Path: name}
	s.parse(data)
	return s
}

func (s *Skill) parse(data []byte) {
	s.Digest = belay.DigestOf(data)
	folder := filepath.Base(filepath.Dir(s.Path))
	s.Name = folder
	switch {
	case len(data) > MaxBytes:
		s.Findings.add(Error, CodeTooMany, s.Path, reference, "the file has more than %d MiB", MaxBytes>>20)
		return
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		s.Findings.add(Error, CodeBadFile, s.Path, reference, "the file is no UTF-8 text")
		return
	case strings.TrimSpace(string(data)) == "":
		s.Findings.add(Error, CodeBadFile, s.Path, reference, "the file is empty")
		return
	}
	fields, body, ok := front(string(data), func(key string) bool { return slices.Contains(skillKeys, key) })
	s.Instructions = body
	if !ok {
		s.Findings.add(Warning, CodeBadFile, s.Path+":1:1", "begin the file with ---, name: "+folder+", description: TEXT, ---", "the file has no front matter")
	}
	values, place := map[string]string{}, map[string]string{}
	for _, f := range fields {
		if _, twice := values[f.key]; twice {
			s.Findings.add(Warning, CodeBadFile, fmt.Sprintf("%s:%d:1", s.Path, f.line), "leave one of them out", "%s is there twice; the first one counts", f.key)
			continue
		}
		values[f.key], place[f.key] = f.text(), fmt.Sprintf("%s:%d:1", s.Path, f.line)
		if !slices.Contains(skillKeys, f.key) {
			s.Unknown = append(s.Unknown, short(f.key, 80))
		}
	}
	at := func(key string) string { return cmp.Or(place[key], s.Path+":1:1") }
	s.check(values, folder, at)
	if len(s.Unknown) > 0 {
		s.Findings.add(Note, CodeUnknownKey, s.Path, "docs/agent-files.md lists those that count", "keys that mean nothing here: %s", strings.Join(s.Unknown, ", "))
	}
}

// check holds the front matter against the rules of Agent Skills. A breach is a warning.
func (s *Skill) check(values map[string]string, folder string, at func(string) string) {
	warn := func(code, key, hint, format string, args ...any) {
		s.Findings.add(Warning, code, at(key), hint, format, args...)
	}
	switch name := values["name"]; {
	case name == "":
		warn(CodeNoName, "name", "name: "+folder, "the skill has no name; its folder's counts")
	case name != folder:
		warn(CodeBadName, "name", "name: "+folder, "%q isn't the name of its folder, which counts", short(name, maxSkillName))
	}
	if !skillName.Match(folder) || len(folder) > maxSkillName {
		warn(CodeBadName, "name", "lower-case letters and digits with single hyphens between, at most 64", "%q is no name of a skill", short(folder, maxSkillName))
	}
	s.Description = strings.Join(strings.Fields(values["description"]), " ")
	switch n := utf8.RuneCountInString(s.Description); {
	case n == 0:
		warn(CodeBadFile, "description", "description: what it does, and when to use it", "without a description no agent knows when to use it")
	case n > maxSkillText:
		warn(CodeTooMany, "description", "shorten it", "the description has %d characters; %d are shown", n, maxSkillText)
		s.Description = string([]rune(s.Description)[:maxSkillText])
	}
	if c := values["compatibility"]; utf8.RuneCountInString(c) > 500 {
		warn(CodeTooMany, "compatibility", "shorten it", "compatibility has more than 500 characters")
	}
	if values["allowed-tools"] != "" {
		s.Findings.add(Note, CodeNotTaken, at("allowed-tools"), "belay trust, and rules of policy.yaml, allow calls", "allowed-tools grants nothing: the rules say what may be called")
	}
	s.Hidden = strings.EqualFold(values["disable-model-invocation"], "true")
	if s.Instructions == "" {
		warn(CodeBadFile, "", "write below the front matter what is to be done", "the skill has no instructions")
	}
}

// twice finds skills of one place with one name; the ones from an index on are its own.
func (c *Skills) twice(from int) {
	first := map[string]*Skill{}
	for _, s := range c.All[from:] {
		switch b := first[s.Name]; {
		case b == nil:
			first[s.Name] = s
		case b.Digest != s.Digest:
			for x, y := range map[*Skill]*Skill{s: b, b: s} { // each names the other
				if x.Usable() {
					x.Findings.add(Error, CodeAmbiguous, x.Path, "give one of them another name", "%s has this name too", y.Path)
				}
			}
		}
	}
}

// Usable reports whether the skill can be read.
func (s *Skill) Usable() bool { return !s.Findings.Bad() }

// Title is what the skill is called: one of a workspace that isn't trusted never takes
// another's name.
func (s *Skill) Title() string {
	if s.Trusted {
		return s.Name
	}
	return s.Origin + ":" + s.Name
}

// InForce are the skills that can be used, each under its title: of those with one, the
// one of the strongest place.
func (c *Skills) InForce() (out []*Skill) {
	seen := map[string]bool{}
	for _, s := range c.All {
		if s.Usable() && !seen[s.Title()] {
			seen[s.Title()] = true
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b *Skill) int { return cmp.Compare(a.Title(), b.Title()) })
	return out
}

// Find returns the skill that a name means: NAME or ORIGIN:NAME. A bare name that no
// trusted skill has means an untrusted one.
func (c *Skills) Find(want string) (*Skill, error) {
	origin, name := "", want
	if o, rest, ok := strings.Cut(want, ":"); ok && slices.Contains([]string{Workspace, User, System}, o) {
		origin, name = o, rest
	}
	var names []string
	var broken *Skill
	for _, trusted := range []bool{true, false} {
		for _, s := range c.All {
			names = append(names, s.Name)
			switch {
			case s.Name != name || s.Trusted != trusted || origin != "" && s.Origin != origin:
			case s.Usable():
				return s, nil
			default:
				broken = s
			}
		}
	}
	if broken != nil {
		f := broken.Findings[0]
		return nil, belay.Errorf(belay.CodeBadManifest, "skill %s can't be used: %s: %s", short(name, 80), f.Code, f.Message).At(f.Where).WithHint("belay skills check")
	}
	return nil, belay.Errorf(belay.CodeNotFound, "there is no skill %s", short(name, 80)).WithHint("%s", match.Hint(name, names, "belay skills list shows them"))
}

// List names the files of the skill's folder besides SKILL.md. Links aren't followed.
func (s *Skill) List() []string {
	root, err := s.open()
	if err != nil {
		return nil
	}
	defer root.Close()
	var out []string
	fs.WalkDir(files.Tree(root), ".", func(rel string, d fs.DirEntry, err error) error { //nolint:errcheck // what can't be read isn't listed
		switch {
		case err != nil || len(out) >= maxSkillFiles:
			return skip(d)
		case d.Type().IsRegular() && rel != SkillFile:
			out = append(out, rel)
		}
		return nil
	})
	return out
}

// Read reads a file of the skill's folder, of at most 1 MiB.
func (s *Skill) Read(file string) ([]byte, error) {
	if s.place == nil {
		return nil, errors.New("the skill isn't in a place")
	}
	root, err := s.open()
	if err != nil {
		return nil, cause(err)
	}
	defer root.Close()
	data, err := read(root, file)
	if err == nil && len(data) > MaxBytes {
		err = fmt.Errorf("it has more than %d MiB", MaxBytes>>20)
	}
	return data, cause(err)
}

func (s *Skill) open() (*os.Root, error) {
	root, err := s.place.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return files.OpenRootIn(root, filepath.FromSlash(s.rel))
}
