// Package agents has the use cases about agents, and skills, that are kept as files.
package agents

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/story"
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
		app.DefineRead(app.Read{Name: "getAgentStats", Path: "/v1/agents/stats", Tag: "reads", Doc: "Count the runs of agents: how they ended, their time, tokens, cost, retries, failed checks and context efficiency.",
			Query: []read.Param{{Name: "since", Doc: "Only what ended in this time until now, such as 24h."}}}, stats),
		app.DefineRead(app.Read{Name: "listSkills", Path: "/v1/skills", Tag: "reads", Doc: "List the skills that agents can read, with what is wrong with them.",
			Query: []read.Param{{Name: "workspace", Doc: "The folder; the server's own when it is left out."}, {Name: "skill", Doc: "Only this one: NAME or ORIGIN:NAME."}}}, listSkills),
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
	Usable  bool        `json:"usable"`
	InForce bool        `json:"inForce"`           // its name alone means it
	Control string      `json:"control,omitempty"` // paused or stopped, and why
	Health  AgentHealth `json:"health"`
	Runs    int         `json:"runs"`              // that ended
	Success *float64    `json:"success,omitempty"` // the share of them that completed

	Recorded time.Time       `json:"recorded,omitzero"` // when its file was seen first as it is
	Ends     []view.AgentEnd `json:"ends,omitempty"`    // of its last runs, the newest last

	Working []app.AgentWork  `json:"working,omitempty"` // of one that is asked for by its name: its turns that haven't ended
	Life    *story.AgentLife `json:"life,omitempty"`    // of such a one
}

// AgentHealth is how an agent is.
type AgentHealth struct {
	Status string   `json:"status"` // healthy, unhealthy, unknown
	Why    []string `json:"why,omitempty"`
}

// needed are the codes of findings about something that an agent needs and isn't here.
var needed = []string{agentfile.CodeUnknownTool, agentfile.CodeModel, agentfile.CodeNoProgram, agentfile.CodeMissing, agentfile.CodeConflict, agentfile.CodeCycle}

// healthOf is how an agent is, by its file, what it needs, its health command and its last runs.
func healthOf(a *agentfile.Agent, c config.AgentControl, r view.AgentRuns) AgentHealth {
	var why []string
	for _, f := range a.Findings {
		if f.Level == agentfile.Error || f.Level == agentfile.Warning && slices.Contains(needed, f.Code) {
			why = append(why, f.Code+": "+f.Message)
		}
	}
	if c.Sick != "" {
		why = append(why, "its health command said: "+c.Sick)
	}
	if last, failing := r.Failing(c.Resumed); failing {
		why = append(why, fmt.Sprintf("its last %d runs failed, the last one at %s", view.FailedInARow, last.UTC().Format(time.RFC3339)))
	}
	switch {
	case len(why) > 0:
		return AgentHealth{"unhealthy", why}
	case len(r.Ends) == 0 && c.Checked.IsZero():
		return AgentHealth{"unknown", []string{"it hasn't run, and nothing was checked"}}
	}
	return AgentHealth{Status: "healthy"}
}

// Wanted says which agents are listed. What is empty leaves none out.
type Wanted struct {
	Agent                    string
	Capability, Tool, Domain string
}

// Of are the agents of a catalogue that are wanted, with what is known of them besides.
func Of(c *agentfile.Catalog, w Wanted, book *config.TrustBook, runs map[string]view.AgentRuns) ([]AgentFile, error) {
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
		control, ran := book.AgentControl(a.Called()), runs[a.Called()]
		f := AgentFile{Agent: a, Usable: a.Usable(), InForce: force[a], Control: control.String(), Health: healthOf(a, control, ran), Runs: ran.Runs}
		if seen, ok := book.Agent(a.Path); ok {
			f.Recorded = seen.At
		}
		f.Ends = ran.Ends
		if ran.Runs > 0 {
			share := float64(ran.Completed) / float64(ran.Runs)
			f.Success = &share
		}
		out = append(out, f)
	}
	return out, nil
}

func list(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*AgentFiles, error) {
	all, err := in(ctx, c.Runtime, q.Values.Get("workspace"), Wanted{q.Values.Get("agent"), q.Values.Get("capability"), q.Values.Get("tool"), q.Values.Get("domain")})
	if err == nil && q.Values.Get("agent") != "" {
		a := &all[0]
		if a.Working, err = app.WorkOf(ctx, c.Runtime, a.Called()); err == nil {
			a.Life, err = app.LifeOf(ctx, c.Runtime, a.Called(), a.Path, a.Ends, a.Working)
		}
	}
	return &AgentFiles{f, all}, err
}

// in are the agents of a workspace that are wanted; empty: of the server's own.
func in(ctx context.Context, r *app.Runtime, workspace string, w Wanted) ([]AgentFile, error) {
	ws, err := r.Workspaces.Workspace(ctx, workspace)
	if err != nil {
		return nil, input.At("query workspace", err)
	}
	cat, err := r.Workspaces.Agents(ctx, ws)
	if err != nil {
		return nil, err
	}
	book, runs, err := r.Workspaces.AgentRecords(ctx)
	if err != nil {
		return nil, err
	}
	all, err := Of(cat, w, book, runs)
	if belay.CodeOf(err) == belay.CodeNotFound {
		return nil, input.At("query agent", err)
	}
	return all, err
}

// Known are the agents of the server's own workspace, one of each name, those with the most
// runs first.
func Known(ctx context.Context, r *app.Runtime) ([]AgentFile, error) {
	all, err := in(ctx, r, "", Wanted{})
	one := map[string]AgentFile{}
	for _, a := range all {
		if _, has := one[a.Called()]; !has || a.InForce {
			one[a.Called()] = a
		}
	}
	return slices.SortedFunc(maps.Values(one), func(a, b AgentFile) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Called(), b.Called()))
	}), err
}

// SkillFiles are skills, the strongest place first.
type SkillFiles struct {
	app.Fresh
	Skills []SkillFile `json:"skills"`
}

// SkillFile is a skill and whether it can be used.
type SkillFile struct {
	*agentfile.Skill
	Usable  bool `json:"usable"`
	InForce bool `json:"inForce"` // its title means it
}

// SkillsOf are the skills that are wanted: all of them, or the one that a name means, with
// its files.
func SkillsOf(c *agentfile.Skills, name string) ([]SkillFile, error) {
	all := c.All
	if name != "" {
		s, err := c.Find(name)
		if err != nil {
			return nil, err
		}
		whole := *s
		whole.Files = s.List()
		return []SkillFile{{&whole, true, slices.Contains(c.InForce(), s)}}, nil
	}
	force := c.InForce()
	out := make([]SkillFile, 0, len(all))
	for _, s := range all {
		brief := *s
		brief.Instructions = "" // they are long; one alone has them
		out = append(out, SkillFile{&brief, s.Usable(), slices.Contains(force, s)})
	}
	return out, nil
}

func listSkills(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*SkillFiles, error) {
	ws, err := c.Workspaces.Workspace(ctx, q.Values.Get("workspace"))
	if err != nil {
		return nil, input.At("query workspace", err)
	}
	all, err := c.Workspaces.Skills(ctx, ws)
	if err != nil {
		return nil, err
	}
	shown, err := SkillsOf(all, q.Values.Get("skill"))
	if belay.CodeOf(err) == belay.CodeNotFound {
		return nil, input.At("query skill", err)
	}
	return &SkillFiles{f, shown}, err
}
