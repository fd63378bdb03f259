// Package agents has the use cases about agents that are kept as files.
package agents

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/config/agentfile"
)

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.DefineRead(app.Read{Name: "listAgents", Path: "/v1/agents", Tag: "reads", Doc: "List the agents that are kept as files, with what their files say and what is wrong with them.",
			Query: []read.Param{
				{Name: "workspace", Doc: "The folder; the server's own when it is left out."},
				{Name: "agent", Doc: "Only this one: NAME, NAME@RANGE or ORIGIN:NAME."},
				{Name: "capability", Doc: "Only those with this capability."}, {Name: "tool", Doc: "Only those that name this tool."}, {Name: "domain", Doc: "Only those about this."},
			}}, list),
	}
}

// AgentFiles are agents, the strongest place first.
type AgentFiles struct {
	app.Fresh
	Agents []AgentFile `json:"agents"`
}

// AgentFile is an agent and whether it can run.
type AgentFile struct {
	*agentfile.Agent
	Usable  bool `json:"usable"`
	InForce bool `json:"inForce"` // its name alone means it
}

// Wanted says which agents are listed. What is empty leaves none out.
type Wanted struct {
	Agent                    string
	Capability, Tool, Domain string
}

// Of are the agents of a catalogue that are wanted.
func Of(c *agentfile.Catalog, w Wanted) ([]AgentFile, error) {
	all := c.About(w.Capability, w.Tool, w.Domain)
	if w.Agent != "" {
		a, err := c.Find(w.Agent)
		if err != nil {
			return nil, err
		}
		all = []*agentfile.Agent{a}
	}
	force := map[*agentfile.Agent]bool{}
	for _, a := range c.InForce() {
		force[a] = true
	}
	out := make([]AgentFile, 0, len(all))
	for _, a := range all {
		out = append(out, AgentFile{a, a.Usable(), force[a]})
	}
	return out, nil
}

func list(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*AgentFiles, error) {
	ws, err := c.Workspaces.Workspace(ctx, q.Values.Get("workspace"))
	if err != nil {
		return nil, input.At("query workspace", err)
	}
	cat, err := c.Workspaces.Agents(ctx, ws, "")
	if err != nil {
		return nil, err
	}
	all, err := Of(cat, Wanted{q.Values.Get("agent"), q.Values.Get("capability"), q.Values.Get("tool"), q.Values.Get("domain")})
	if belay.CodeOf(err) == belay.CodeNotFound {
		return nil, input.At("query agent", err)
	}
	return &AgentFiles{f, all}, err
}
