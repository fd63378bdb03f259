package work

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/template"
	"github.com/belay-run/belay/internal/lib/files"
)

// TemplatesCmd is the command "belay templates".
type TemplatesCmd struct {
	List   templateListCmd   `cmd:"" default:"withargs" help:"List the templates for prompts."`
	Show   templateShowCmd   `cmd:"" help:"Show a template: its variables and its digest."`
	Render templateRenderCmd `cmd:"" help:"Print the prompt that a template makes of values."`
}

// templatesHere are those of this workspace.
func templatesHere(ctx context.Context, a *command.Program) (*template.Catalog, error) {
	ws, err := a.WorkspaceDir()
	if err != nil {
		return nil, err
	}
	return templates(ctx, a, ws)
}

// templates are those of the program, the person and the workspace, and the prompts of MCP
// servers.
func templates(ctx context.Context, a *command.Program, ws string) (*template.Catalog, error) {
	c, err := a.Environment().Templates(ws)
	if err != nil {
		return nil, err
	}
	for _, bad := range c.Bad {
		fmt.Fprintf(a.Err, "left out: %s\n", term.Line(bad.Error()))
	}
	prompts, err := a.Prompts(ctx, ws)
	if err != nil {
		fmt.Fprintf(a.Err, "left out: the prompts of MCP servers: %s\n", term.Line(err.Error()))
	}
	c.All = append(c.All, prompts...)
	return c, nil
}

type templateListCmd struct {
	Domain string `placeholder:"NAME" help:"Only those about this: code, docs, operations …"`
	Kind   string `placeholder:"NAME" help:"Only those for this: fix, review, test …"`
}

// listed is a template as JSON.
type listed struct {
	Name        string              `json:"name"`
	Version     string              `json:"version"`
	Domain      string              `json:"domain"`
	Kind        string              `json:"kind"`
	Description string              `json:"description,omitempty"`
	Origin      string              `json:"origin"`
	Path        string              `json:"path,omitempty"`
	Digest      belay.Digest        `json:"digest"`
	Variables   []template.Variable `json:"variables,omitempty"`
}

func asListed(t *template.Template) listed {
	return listed{t.Name, t.Version, t.Domain, t.Kind, t.Description, t.Origin, t.Path, t.Digest, t.Variables}
}

func (c *templateListCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	cat, err := templatesHere(ctx, a)
	if err != nil {
		return 0, err
	}
	var rows []listed
	for _, x := range cat.All {
		if (c.Domain == "" || x.Domain == c.Domain) && (c.Kind == "" || x.Kind == c.Kind) {
			rows = append(rows, asListed(x))
		}
	}
	return term.PrintRows(&a.Env, rows, "", "TEMPLATE\tVERSION\tDOMAIN/KIND\tORIGIN\tWHAT IT IS FOR", func(x listed) []any {
		return []any{x.Name, x.Version, x.Domain + "/" + x.Kind, x.Origin, term.Short(x.Description, 80)}
	})
}

type templateShowCmd struct {
	Name string `arg:"" help:"Its name, DOMAIN/KIND, or ORIGIN:NAME; with @VERSION only that one."`
}

func (c *templateShowCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	cat, err := templatesHere(ctx, a)
	if err != nil {
		return 0, err
	}
	t, err := cat.Find(c.Name)
	if err != nil {
		return 0, err
	}
	return a.Show(asListed(t), func() {
		fmt.Fprintf(a.Out, "%s %s (%s/%s, %s)\n%s\n%s\n", t.Name, t.Version, t.Domain, t.Kind, t.Origin, term.Text(t.Description), t.Digest)
		for _, v := range t.Variables {
			fmt.Fprintf(a.Out, "  %-14s %-8s %s\n", v.Name, v.Type, describe(v))
		}
	})
}

// describe is what a person must know to fill a variable.
func describe(v template.Variable) string {
	var notes []string
	switch {
	case v.Required:
		notes = append(notes, "required")
	case v.Default != nil:
		notes = append(notes, "default "+*v.Default)
	}
	if len(v.Choices) > 0 {
		notes = append(notes, strings.Join(v.Choices, " | "))
	}
	s := v.Description
	if len(notes) > 0 {
		s = strings.TrimSpace(s + " (" + strings.Join(notes, "; ") + ")")
	}
	return term.Line(s)
}

// Filled names a template and the values for it.
type Filled struct {
	Template string   `placeholder:"NAME" help:"Make the text from a template; belay templates lists them."`
	Var      []string `placeholder:"NAME=VALUE" sep:"none" help:"A value for the template; NAME=@FILE reads it from a file. May be repeated."`
}

// fill makes the text of a template. The template is recorded with the task.
func fill(ctx context.Context, a *command.Program, c Filled, ws string) (g app.Given, ref *belay.TemplateRef, err error) {
	cat, err := templates(ctx, a, ws)
	if err != nil {
		return g, nil, err
	}
	t, err := cat.Find(c.Template)
	if err != nil {
		return g, nil, err
	}
	values := map[string]string{}
	for _, s := range c.Var {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return g, nil, belay.Errorf(belay.CodeUsage, "%q has no value", s).At("--var").WithHint("--var NAME=VALUE")
		}
		if file, ok := strings.CutPrefix(value, "@"); ok {
			b, err := files.ReadGiven(a.Environment().Abs(file), app.MaxText)
			if err != nil {
				return g, nil, belay.Errorf(belay.CodeUsage, "%s: %s", file, files.Reason(err)).At("--var " + name).WithHint("name a text file, or write the value out")
			}
			value = strings.TrimSuffix(string(b), "\n")
		}
		if _, twice := values[name]; twice {
			return g, nil, belay.Errorf(belay.CodeUsage, "%s has two values", name).At("--var").WithHint("leave one of them out")
		}
		values[name] = value
	}
	g.Text, err = t.Render(values, inWorkspace(ws))
	if err == nil && t.Remote {
		g, err = a.Prompt(ctx, ws, t, values)
	}
	if err != nil {
		return g, nil, err
	}
	return g, &belay.TemplateRef{Name: t.Name, Version: t.Version, Origin: t.Origin, Digest: t.Digest}, nil
}

// inWorkspace reports whether a path names a file of the workspace.
func inWorkspace(ws string) func(string) bool {
	return func(path string) bool {
		root, err := files.OpenRoot(ws)
		if err != nil {
			return false
		}
		defer root.Close()
		_, err = root.Stat(path)
		return err == nil
	}
}

type templateRenderCmd struct {
	Name string   `arg:"" help:"The template."`
	Var  []string `placeholder:"NAME=VALUE" sep:"none" help:"A value; NAME=@FILE reads it from a file. May be repeated."`
}

func (c *templateRenderCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	ws, err := a.WorkspaceDir()
	if err != nil {
		return 0, err
	}
	rendered, ref, err := fill(ctx, a, Filled{c.Name, c.Var}, ws)
	if err != nil {
		return 0, err
	}
	return a.Say(struct {
		Template *belay.TemplateRef `json:"template"`
		Text     string             `json:"text"`
	}{ref, rendered.Text}, "%s", term.Text(rendered.Text))
}
