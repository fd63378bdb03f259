package agentfile

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// depend finds, for an agent, other agents that it names and that aren't there, those that it
// can't be with, and circles.
func (c *Catalog) depend(a *Agent) {
	chain, where := true, a.Path
	for _, n := range a.names {
		b, err := c.Find(n.name)
		e, _ := err.(*belay.Error) //nolint:errorlint // Find makes it
		switch {
		case n.as == "" && e != nil:
			chain = false
			a.find(Warning, CodeMissing, n.where, e.Hint, "%s > %s: %s", a.Name, n.name, e.Message)
		case n.as == "" && where == a.Path:
			where = n.where
		case n.as == "":
		case e != nil:
			a.find(Warning, CodeMissing, n.where, e.Hint, "%s is missing: %s", n.as, e.Message)
		case len(b.Members) > 0:
			a.find(Warning, CodeMissing, n.where, "name a single agent", "%s is a team: %s", n.as, b.Name)
		}
	}
	if !chain || !a.Usable() {
		return
	}
	_, err := c.Order(a)
	if e, ok := err.(*belay.Error); ok { //nolint:errorlint // Order makes it
		a.find(Warning, string(e.Code), where, e.Hint, "%s", e.Message)
	}
}

// Hold adds an agent of a file that a person names, before all others.
func (c *Catalog) Hold(a *Agent) {
	a.Origin, a.Trusted, a.place = Given, true, -1
	c.All = slices.Insert(c.All, 0, a)
	c.depend(a)
}

// Order is what must be done before an agent, and the agent, each behind what it
// requires. What is missing, in conflict or in a circle is named with the way to it; the
// error's code is that of a finding.
func (c *Catalog) Order(agents ...*Agent) (out []*Agent, err error) {
	ways := map[*Agent]string{}
	var visit func(a *Agent, way []string) error
	visit = func(a *Agent, way []string) error {
		if i := slices.Index(way, a.Name); i >= 0 {
			return belay.Errorf(CodeCycle, "agents require each other: %s", strings.Join(append(slices.Clone(way[i:]), a.Name), " > ")).WithHint("take one of the requirements out")
		}
		if slices.Contains(out, a) {
			return nil
		}
		way = append(slices.Clip(way), a.Name)
		ways[a] = strings.Join(way, " > ")
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
				return nil, belay.Errorf(CodeConflict, "%s and %s can't be together: %s; %s", a.Title(), out[i].Title(), ways[a], ways[out[i]]).WithHint("run them one without the other")
			}
		}
	}
	return out, nil
}
