package agentfile

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// depend finds, for each agent, what it requires and isn't there, what it can't be with,
// and circles.
func (c *Catalog) depend() {
	for _, a := range c.All {
		if !a.Usable() || len(a.Requires)+len(a.Conflicts) == 0 {
			continue
		}
		_, err := c.Order(a)
		if e, ok := err.(*belay.Error); ok { //nolint:errorlint // Order makes it
			a.find(Warning, string(e.Code), a.Path, e.Hint, "%s", e.Message)
		}
	}
}

// Order is what must be done before an agent, and the agent, each behind what it
// requires. What is missing, in conflict or in a circle is named with the way to it; the
// error's code is that of a finding.
func (c *Catalog) Order(agents ...*Agent) (out []*Agent, err error) {
	var visit func(a *Agent, way []string) error
	visit = func(a *Agent, way []string) error {
		if i := slices.Index(way, a.Name); i >= 0 {
			return belay.Errorf(CodeCycle, "agents require each other: %s", strings.Join(append(slices.Clone(way[i:]), a.Name), " > ")).WithHint("take one of the requirements out")
		}
		if slices.Contains(out, a) {
			return nil
		}
		way = append(slices.Clip(way), a.Name)
		for _, n := range a.Requires {
			b, err := c.Find(n.String())
			if err != nil {
				e, _ := err.(*belay.Error) //nolint:errorlint // Find makes it
				return belay.Errorf(CodeMissing, "%s > %s: %s", strings.Join(way, " > "), n, e.Message).WithHint("%s", e.Hint)
			}
			if err := visit(b, way); err != nil {
				return err
			}
		}
		out = append(out, a)
		return nil
	}
	for _, a := range agents {
		if err := visit(a, nil); err != nil {
			return nil, err
		}
	}
	for _, a := range out {
		for _, n := range a.Conflicts {
			if i := slices.IndexFunc(out, func(b *Agent) bool { return b != a && b.Name == n.Name && b.Fits(n.Range) }); i >= 0 {
				return nil, belay.Errorf(CodeConflict, "%s and %s can't be together", a.Title(), out[i].Title()).WithHint("run them one without the other")
			}
		}
	}
	return out, nil
}
