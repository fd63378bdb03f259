package config

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/config/template"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// agentDirs are the folders of agents: in a workspace, and the second also in a person's
// home.
var agentDirs = []string{".belay/agents", ".claude/agents"}

// skillDirs are the folders of skills of a workspace; all but the second are also in a
// person's home, which has that one where the settings are.
var skillDirs = []string{".agents/skills", ".belay/skills", ".claude/skills"}

// AgentsVariable is the variable of the environment that names a folder of agents, which
// go before all others.
const AgentsVariable = "BELAY_AGENTS"

// Agents reads the agents that are kept as files, the strongest place first: folders that
// are given.
func (w *Workspace) Agents(ctx context.Context, given ...string) (*agentfile.Catalog, error) {
	places, failed := w.agentPlaces(ctx)
	for _, dir := range given {
		places = slices.Insert(places, 0, agentfile.Place{Dir: dir, Origin: agentfile.Given})
	}
	c := agentfile.Open(places, w.in.Agents...)
	w.holdAgents(ctx, c, nil)
	return c, *failed
}

// word gives agents the templates DOMAIN/task of their domains: the person's before the
// program's. One of the workspace counts if the folder is trusted, or for an agent that
// is the workspace's and isn't trusted either.
func (w *Workspace) word(c *agentfile.Catalog) {
	if !slices.ContainsFunc(c.All, func(a *agentfile.Agent) bool { return a.Domain != "" }) {
		return
	}
	all, err := w.in.Templates(w.in.Workspace)
	if err != nil { // belay templates says it
		return
	}
	for _, a := range c.All {
		origins := []string{template.User, template.Builtin}
		if strange := a.Origin == agentfile.Workspace && !a.Trusted; strange || w.trustsFolder() {
			origins = append(origins, template.Workspace)
		}
		for _, origin := range origins {
			var found []*template.Template
			for _, t := range all.All {
				if t.Domain == a.Domain && t.Kind == taskKind && t.Origin == origin {
					found = append(found, t)
				}
			}
			if len(found) > 1 {
				a.AmbiguousWording(found[0].Name, found[1].Name)
			}
			if len(found) == 1 {
				t := found[0]
				var names []string
				for _, v := range t.Variables {
					names = append(names, v.Name)
				}
				a.Word(t.Origin+":"+t.Name+"@"+t.Version, func(values map[string]string) (string, error) { return t.Render(values, nil) }, names)
			}
			if len(found) > 0 {
				break
			}
		}
	}
}

// taskKind is the kind of templates by which agents of a domain are told their tasks.
const taskKind = "task"

func (w *Workspace) trustsFolder() bool {
	return w.layers != nil && w.in.trustsFolder(w.layers.Trusted())
}

// HoldAgents holds agents that aren't in the places of the workspace against what there is.
func (w *Workspace) HoldAgents(ctx context.Context, c *agentfile.Catalog) {
	w.holdAgents(ctx, c, sync.OnceValue(func() *agentfile.Catalog {
		places, _ := w.agentPlaces(ctx)
		return agentfile.Open(places)
	}))
}

// holdAgents holds agents against the tools of the workspace, their rules against what
// rules can be, and teams against the schemas of their members. own are the agents of the
// workspace, if c is others.
func (w *Workspace) holdAgents(ctx context.Context, c *agentfile.Catalog, own func() *agentfile.Catalog) {
	c.HoldAgainst(w.Specs())
	c.HoldSkills(func() (*agentfile.Skills, error) { return w.Skills(ctx) })
	w.word(c)
	c.CheckTeams(func(name string) (*agentfile.Agent, error) {
		a, err := c.Find(name)
		if err == nil || own == nil {
			return a, err
		}
		return own().Find(name)
	})
	c.CheckRules(func(a *agentfile.Agent) error {
		_, _, err := AgentRules(a, true)
		return err
	})
}

// AgentRules are the rules that an agent's file brings, of the tier agent: all of them, or
// without allows those that deny and ask. ignored are the others.
func AgentRules(a *agentfile.Agent, allows bool) (rules []policy.Rule, ignored []rulefile.Ignored, err error) {
	if a.Rules == nil {
		return nil, nil, nil
	}
	var l rulefile.Layers
	if err := l.Add(a.Path, a.Rules, policy.TierAgent, allows); err != nil {
		return nil, nil, err
	}
	if _, err := l.Set(nil); err != nil {
		return nil, nil, err
	}
	for _, r := range l.Document(nil).Rules {
		if r.Tier == policy.TierAgent {
			rules = append(rules, r)
		}
	}
	return rules, l.Ignored(), nil
}

// AgentStamp changes when a file of an agent does, as far as names, sizes and times tell.
func (w *Workspace) AgentStamp(ctx context.Context) belay.Digest {
	places, _ := w.agentPlaces(ctx)
	return agentfile.Stamp(places)
}

// agentPlaces are the places of agents, the strongest first.
func (w *Workspace) agentPlaces(ctx context.Context) (places []agentfile.Place, failed *error) {
	places, failed = w.inside(ctx, agentDirs)
	if given := w.in.Get(AgentsVariable); given != "" {
		given = w.in.Abs(given)
		if info, err := os.Stat(given); err != nil || !info.IsDir() {
			*failed = belay.Errorf(belay.CodeUsage, "there is no such folder").At(given).WithHint("--agents DIR, or " + AgentsVariable + ", names a folder of agents")
		}
		places = slices.Insert(places, 0, agentfile.Place{Dir: given, Origin: agentfile.Given})
	}
	if dir := w.in.ConfigDir(); dir != "" {
		places = append(places, agentfile.Place{Dir: dir, Below: "agents", Origin: agentfile.User})
	}
	places = append(places, w.atHome(agentDirs[1])...)
	places = append(places, agentfile.Place{Dir: systemDir, Below: "agents", Origin: agentfile.System})
	for i := range places {
		places[i].Good = w.in.goodAgent(ctx)
	}
	return places, failed
}

// Skills reads the skills of the workspace and the person, the strongest place first.
func (w *Workspace) Skills(ctx context.Context) (*agentfile.Skills, error) {
	places, failed := w.inside(ctx, skillDirs)
	places = append(places, w.atHome(skillDirs[0])...)
	if dir := w.in.ConfigDir(); dir != "" {
		places = append(places, agentfile.Place{Dir: dir, Below: "skills", Origin: agentfile.User})
	}
	places = append(places, w.atHome(skillDirs[2])...)
	return agentfile.OpenSkills(places), *failed
}

// inside are places of the workspace. What of trust can't be read is in failed after they
// were read.
func (w *Workspace) inside(ctx context.Context, dirs []string) (places []agentfile.Place, failed *error) {
	failed = new(error)
	if w.in.Workspace == "" {
		return nil, failed
	}
	whole := w.trustsFolder()
	trusts := func(rel string, content []byte) bool {
		if whole {
			return true
		}
		s, err := w.in.standing(ctx, rel, content)
		if err != nil {
			*failed = err
		}
		return s == Trusted
	}
	for _, dir := range dirs {
		places = append(places, agentfile.Place{Dir: w.in.Workspace, Below: dir, Origin: agentfile.Workspace, Trusts: trusts})
	}
	return places, failed
}

// atHome is a place of the person's home; none, if that is the workspace.
func (w *Workspace) atHome(below string) []agentfile.Place {
	home := w.in.Get("HOME")
	if !filepath.IsAbs(home) || home == w.in.Workspace {
		return nil
	}
	return []agentfile.Place{{Dir: home, Below: below, Origin: agentfile.User}}
}

// ReadSkill reads a file of a skill for a model, or its SKILL.md with what the folder has.
func (w *Workspace) ReadSkill(ctx context.Context, name, file string) (text string, used event.ArtifactChanged, err error) {
	all, err := w.Skills(ctx)
	if err != nil {
		return "", used, err
	}
	s, err := all.Find(name)
	if e, ok := errors.AsType[*belay.Error](err); ok {
		class := tool.NotFound
		if e.Code == belay.CodeBadManifest {
			class = tool.Conflict
		}
		return "", used, tool.Failf(class, "UNKNOWN_SKILL", "%s", e.Message).WithHint("the skills are listed in your instructions")
	}
	if err != nil {
		return "", used, err
	}
	used = event.ArtifactChanged{Kind: "skill", Op: "used", Name: s.Title(), Path: file, Digest: s.Digest, Origin: s.Origin}
	files := s.List()
	if file = path.Clean(file); file == "." || file == agentfile.SkillFile {
		text = "# Skill " + s.Title() + "\nfolder: " + filepath.Dir(s.Path) + "\n"
		if len(files) > 0 {
			text += "files: " + strings.Join(files, ", ") + "\n"
		}
		return text + "\n" + s.Instructions + "\n", used, nil
	}
	if !slices.Contains(files, file) {
		return "", used, tool.Failf(tool.NotFound, "NO_SUCH_FILE", "skill %s has no file %s", s.Title(), event.CutText(file, 200)).WithHint("it has %s", event.CutText(strings.Join(files, ", "), 1000))
	}
	data, err := s.Read(file)
	switch {
	case err != nil:
		return "", used, tool.Failf(tool.Conflict, "UNREADABLE", "%s can't be read: %v", file, err)
	case !utf8.Valid(data) || bytes.ContainsRune(data, 0):
		return "", used, tool.Failf(tool.Conflict, "BINARY_FILE", "%s is no text", file).WithHint("exec runs programs; its folder is %s", filepath.Dir(s.Path))
	}
	return string(data), used, nil
}
