package config

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/testkit/oddfile"
)

// TestNothingInAWorkspaceIsWaitedFor: whatever stands in place of a file or folder that
// settings, rules, tools, servers, agents, skills, templates and instructions are read
// from, reading all of them ends, and takes nothing from it.
// Guarantee: T115.
func TestNothingInAWorkspaceIsWaitedFor(t *testing.T) {
	names := []string{"", ".belay", ".belay/belay.yaml", ".belay/policy.yaml", ".belay/tools", ".belay/tools/a.yaml", ".mcp.json", ".belay/agents", ".belay/agents/a.md", ".claude/agents",
		".claude/agents/a/b.yaml", ".agents/skills", ".belay/skills/a", ".belay/skills/a/SKILL.md", ".belay/skills/b/more.txt", ".belay/templates", ".belay/templates/a.yaml",
		"AGENTS.md", "CLAUDE.md", "sub", "sub/AGENTS.md", "notes.md", ".git"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			in, write := folder(t, map[string]string{"ws/AGENTS.md": "See @notes.md.\n", "ws/sub/main.go": "package main\n",
				"ws/.belay/skills/b/SKILL.md": "---\nname: b\ndescription: d\n---\nRead more.txt.\n"})
			write("ws/notes.md", "notes\n")
			ws := in.Workspace
			in.Trust = func(context.Context) (*TrustBook, error) { return &TrustBook{}, nil }
			oddfile.Each(t, filepath.Join(ws, filepath.FromSlash(name)), func(t *testing.T, _ string) {
				all := readAll(t, in)
				if len(all) > 1<<20 {
					t.Errorf("%d bytes were taken", len(all))
				}
			})
		})
	}
}

// readAll reads what a turn and the commands for a workspace read of it, and returns the
// texts.
func readAll(t *testing.T, in Input) (all string) {
	ctx, ws := t.Context(), in.Workspace
	w := Resolve(ctx, in)
	_ = w.Check()
	_ = steps(w)
	_, _, _ = w.Servers(ctx)
	_ = Governed(ws)
	_ = w.AgentStamp(ctx)
	if agents, err := w.Agents(ctx, filepath.Join(ws, "sub")); err == nil {
		w.HoldAgents(ctx, agents)
	}
	if skills, err := w.Skills(ctx); err == nil {
		for _, s := range skills.All {
			_ = s.List()
			if text, err := s.Read("more.txt"); err == nil {
				all += string(text)
			}
		}
	}
	_ = agentfile.OpenSkills([]agentfile.Place{{Dir: filepath.Join(ws, "sub"), Origin: agentfile.Given}})
	_, _ = in.Templates(ws)
	taken, _ := w.Instructions()
	more, _ := ReadInstructions(ws, append(InstructionsAbove(ws, []string{"sub/main.go"}), "notes.md"))
	for _, i := range append(taken, more...) {
		all += i.Text
	}
	_, _ = CheckWorkspace(ws)
	_ = RepositoryOf(filepath.Join(ws, "sub"))
	return all
}
