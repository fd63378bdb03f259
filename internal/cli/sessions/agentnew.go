package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/lib/files"
)

type agentsNewCmd struct {
	Name   string `arg:"" help:"What it is called: lower-case letters, digits and hyphens."`
	Format string `enum:"yaml,md" default:"yaml" help:"yaml is Belay's own, md what other programs read too."`
	Like   string `placeholder:"NAME" help:"Copy this agent's file."`
}

// What the files of new agents hold.
const (
	newYAML = `name: %s
version: 0.1.0
description: Says when to use it; other agents choose by this.
instructions: |
  You read files of this workspace and answer questions about them.
tools: [read, list, glob, grep]
limits: {steps: 30, time: 10m}
tests:
  - id: reads-a-file
    prompt: How many ducks are there?
    setup: {files: {ducks.txt: "two ducks\n"}}
    script:
      steps:
        - calls: [{tool: read, args: {path: ducks.txt}}]
        - calls: [{tool: complete_task, args: {summary: Two.}}]
    expect:
      - outcome: completed
`
	newMarkdown = `---
name: %s
description: Says when to use it; other agents choose by this.
tools: Read, LS, Glob, Grep
maxTurns: 30
---

You read files of this workspace and answer questions about them.
`
)

var (
	newName  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	nameLine = regexp.MustCompile(`(?m)^([ \t]*name:).*$`)
)

// Run implements command.Command.
func (c *agentsNewCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if len(c.Name) > 64 || !newName.MatchString(c.Name) {
		return 0, belay.Errorf(belay.CodeUsage, "%q can't be a name", c.Name).At("NAME").WithHint("lower-case letters, digits and hyphens, at most 64, such as code-review")
	}
	text, ext, err := c.text(ctx, a)
	if err != nil {
		return 0, err
	}
	ws, err := a.WorkspaceDir()
	if err != nil {
		return 0, err
	}
	rel := filepath.Join(".belay", "agents", c.Name+ext)
	root, err := files.OpenRoot(ws)
	if err == nil {
		defer root.Close()
		err = writeNew(root, rel, text)
	}
	if errors.Is(err, fs.ErrExist) {
		return 0, belay.Errorf(belay.CodeExists, "it exists already").At(rel).WithHint("give the new agent another name, or edit that file")
	}
	if err != nil {
		return 0, belay.Errorf(belay.CodeNotWritten, "the file can't be written: %s", files.Reason(err)).At(rel).WithHint("make .belay/agents a folder that you can write")
	}
	return a.Show(map[string]string{"path": filepath.Join(ws, rel)}, func() {
		fmt.Fprintf(a.Out, "made %s\n", rel)
		fmt.Fprintf(a.Err, "try: edit it, then belay agents check %s, then belay run --agent %s TEXT\n", rel, c.Name)
	})
}

// text is what the new file holds, with the ending of its name.
func (c *agentsNewCmd) text(ctx context.Context, a *command.Program) (text, ext string, err error) {
	switch {
	case c.Like == "" && c.Format == "md":
		return fmt.Sprintf(newMarkdown, c.Name), ".md", nil
	case c.Like == "":
		return fmt.Sprintf(newYAML, c.Name), ".yaml", nil
	}
	all, err := agentFiles(ctx, a, agents.Wanted{Agent: c.Like})
	if err != nil {
		return "", "", err
	}
	if all[0].Path == "" {
		return "", "", belay.Errorf(belay.CodeUsage, "%s is built in: it has no file", all[0].Name).At("--like").WithHint("belay agents show %s shows what it is told", all[0].Name)
	}
	raw, err := files.ReadUpTo(all[0].Path, agentfile.MaxBytes)
	if err != nil {
		return "", "", belay.Errorf(belay.CodeBadManifest, "it can't be read: %s", files.Reason(err)).At(all[0].Path).WithHint("name an agent whose file you can read")
	}
	text = string(raw)
	if at := nameLine.FindStringSubmatchIndex(text); at != nil {
		text = text[:at[3]] + " " + c.Name + text[at[1]:]
	}
	return text, filepath.Ext(all[0].Path), nil
}

func writeNew(root *os.Root, rel, text string) error {
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
