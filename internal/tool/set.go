package tool

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/jcs"
	"github.com/belay-run/belay/internal/lib/match"
)

// Set is the tools of a thread, ordered by name. It doesn't change once made.
type Set struct {
	entries []entry

	mu      sync.Mutex
	choices map[string][]Spec // that Choose made, by its terms
}

type entry struct {
	spec   Spec
	tool   Tool
	schema *Schema
}

// NewSet makes a set. Two tools of one name, a name a model can't say, and a
// schema that is none are errors.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{entries: make([]entry, 0, len(tools))}
	for _, t := range tools {
		spec := t.Spec()
		if !Name.Match(spec.Name) {
			return nil, belay.Errorf(belay.CodeUsage, "%q is not a name for a tool", spec.Name).
				WithHint("use 1 to 64 letters, digits, _ and -")
		}
		schema, err := ReadSchema(spec.Input)
		if err != nil {
			return nil, belay.Errorf(belay.CodeUsage, "the input schema is not usable").At("tool " + spec.Name).Wrap(err)
		}
		if len(spec.Output) > 0 {
			if _, err := ReadSchema(spec.Output); err != nil {
				return nil, belay.Errorf(belay.CodeUsage, "the output schema is not usable").At("tool " + spec.Name).Wrap(err)
			}
		}
		s.entries = append(s.entries, entry{spec, t, schema})
	}
	slices.SortFunc(s.entries, func(a, b entry) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	for i := 1; i < len(s.entries); i++ {
		if name := s.entries[i].spec.Name; name == s.entries[i-1].spec.Name {
			return nil, belay.Errorf(belay.CodeUsage, "two tools are called %s", name).WithHint("leave one of them out, or rename it")
		}
	}
	return s, nil
}

// Name is what a tool may be called: what a model can say.
var Name = match.Lazy(`^[A-Za-z0-9_-]{1,64}$`)

// Specs lists what the tools are, by name.
func (s *Set) Specs() []Spec {
	specs := make([]Spec, len(s.entries))
	for i, e := range s.entries {
		specs[i] = e.spec
	}
	return specs
}

// maxChoices bounds the choices that are kept.
const maxChoices = 64

// Choose is Choose of the set's tools. The same terms get the very same specs
// again, so they must not be changed.
func (s *Set) Choose(terms []string) []Spec {
	key := strings.Join(terms, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	chosen, ok := s.choices[key]
	if !ok {
		if s.choices == nil || len(s.choices) >= maxChoices {
			s.choices = map[string][]Spec{}
		}
		chosen = Choose(terms, s.Specs())
		s.choices[key] = chosen
	}
	return chosen
}

// Get is the tool of a name.
func (s *Set) Get(name string) (Tool, bool) {
	if e := s.find(name); e != nil {
		return e.tool, true
	}
	return nil, false
}

func (s *Set) find(name string) *entry {
	i, ok := slices.BinarySearchFunc(s.entries, name, func(e entry, name string) int { return cmp.Compare(e.spec.Name, name) })
	if !ok {
		return nil
	}
	return &s.entries[i]
}

// Check reads the arguments of a call as a model wrote them. It returns their
// canonical form and its digest, which is the identity of the call, or a
// problem that tells the model all that is wrong. Arguments that are JSON but
// break the schema have form and digest besides the problem. Blank arguments
// are an empty object.
func (s *Set) Check(name, rawArgs string) (canonicalArgs []byte, hash belay.Digest, problem *event.Problem) {
	e := s.find(name)
	if e == nil {
		return nil, "", s.unknown(name)
	}
	if isBlank(rawArgs) {
		rawArgs = "{}"
	}
	args, err := jcs.JSON([]byte(rawArgs))
	if err != nil {
		return nil, "", e.unreadable(err)
	}
	return args, belay.DigestOf(args), e.check(args)
}

func (s *Set) unknown(name string) *event.Problem {
	names := make([]string, len(s.entries))
	for i, e := range s.entries {
		names[i] = e.spec.Name
	}
	p := Failf(NotFound, CodeUnknownTool, "there is no tool %q", shorten(name))
	p.WithHint("%s", match.Hint(name, names, "the tools are: "+list(names)))
	return &p.Problem
}

// unreadable is the problem of arguments that have no canonical form.
func (e *entry) unreadable(err error) *event.Problem {
	if c, ok := errors.AsType[*jcs.Error](err); ok && c.Kind != jcs.Syntax {
		return &Failf(BadArguments, CodeBadArguments, "arguments of %s: %v", e.spec.Name, err).Problem
	}
	return &Failf(BadArguments, CodeBrokenJSON, "arguments of %s are not JSON: %v", e.spec.Name, err).
		WithHint("send one JSON object; escape quotes, backslashes and newlines inside strings").Problem
}
