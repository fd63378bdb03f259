package cli

import (
	"context"
	"path/filepath"
	procs "runtime"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/eval"
)

type agentsTestCmd struct {
	Name string `arg:"" help:"NAME, NAME@RANGE or ORIGIN:NAME."`
	Keep bool   `help:"Keep each workspace and store, and say where they are."`
}

// Run implements command.Command.
func (c *agentsTestCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	p, err := a.PlaceHere(ctx)
	if err != nil {
		return 0, err
	}
	cat, err := a.AgentFiles(ctx, p)
	if err != nil {
		return 0, err
	}
	agent, err := cat.Find(c.Name)
	if err != nil {
		return 0, err
	}
	all, err := testsOf(cat, agent)
	if err != nil {
		return 0, err
	}
	return played(ctx, a, all, procs.GOMAXPROCS(0), c.Keep, nil)
}

// testsOf are the scenarios of an agent's file. They are played where it, and those that it
// requires, are agents of the person. They run what the file says, so it must be trusted.
func testsOf(cat *agentfile.Catalog, agent *agentfile.Agent) ([]*eval.Scenario, error) {
	switch {
	case agent.Tests == 0:
		return nil, belay.Errorf(belay.CodeBadScenario, "agent %s has no tests", agent.Title()).At(agent.Path).WithHint("tests: in its file lists scenarios; belay agents new writes a file with one")
	case !agent.Trusted:
		return nil, belay.Errorf(belay.CodeUntrusted, "the file isn't trusted, and its tests run programs").At(agent.Path).WithHint("look at it, then belay trust %s", agent.Path)
	}
	content, _ := agent.Content()
	all, err := eval.ParseAt(agent.Path, content, agent.Name, "tests")
	if err != nil {
		return nil, err
	}
	needed, err := cat.Order(agent)
	if e, ok := err.(*belay.Error); ok { //nolint:errorlint // Order makes it
		return nil, belay.Errorf(belay.CodeBadManifest, "%s: %s", e.Code, e.Message).WithHint("%s", e.Hint)
	}
	home := map[string]string{}
	for _, n := range needed {
		text, _ := n.Content()
		home[filepath.Join(".config", "belay", "agents", n.Origin+"-"+filepath.Base(n.Path))] = string(text)
	}
	for _, s := range all {
		s.Home = home
		s.Settings.Flags = append(s.Settings.Flags, "--agent="+agent.Name)
	}
	return all, nil
}
