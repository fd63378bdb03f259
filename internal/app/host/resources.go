package host

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/template"
	"github.com/belay-run/belay/internal/mcp"
	"github.com/belay-run/belay/internal/tool"
)

// mention is @SERVER:URI in a text.
var mention = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|\s)@([A-Za-z0-9][A-Za-z0-9_.-]*):([A-Za-z][A-Za-z0-9+.-]*:\S+)`)
})

// Mentioned sends along the resources of MCP servers that a text names as @SERVER:URI.
// A name that no server has is a word.
func (h *Host) Mentioned(ctx context.Context, ws string, g *app.Given) error {
	named := mention().FindAllStringSubmatch(g.Text, -1)
	if len(named) == 0 {
		return nil
	}
	p, err := h.At(ctx, ws)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, m := range named {
		uri := strings.TrimRight(m[2], `.,;:!?"'`)
		name := m[1] + ":" + uri
		s, err := serverOf(ctx, p, m[1])
		if err != nil {
			return err
		}
		if s == nil || seen[name] {
			continue
		}
		seen[name] = true
		box, err := h.boxOf(p, s)
		if err != nil {
			return err
		}
		parts, err := h.servers.ReadResource(ctx, &s.Server, p.Path(), box, uri)
		if err == nil && len(parts) == 0 {
			err = tool.Failf(tool.NotFound, mcp.CodeRefused, "MCP server %s has nothing there", s.Name)
		}
		if err != nil {
			return unattached("@"+name, s.Name, err)
		}
		if err := attach(g, s.Name, name, parts); err != nil {
			return err
		}
	}
	return nil
}

// serverOf is a server of the workspace by its name; nil: there is none.
func serverOf(ctx context.Context, p *app.Place, name string) (*config.Server, error) {
	servers, _, err := p.Servers(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(servers, func(s config.Server) bool { return s.Name == name })
	if i < 0 {
		return nil, nil
	}
	return &servers[i], servers[i].Err
}

// attach sends along what a server gave.
func attach(g *app.Given, server, name string, parts []mcp.Part) error {
	for _, part := range parts {
		content := part.Content
		if content == nil {
			content = []byte(part.Text)
		}
		if part.Name != "" {
			name = server + ":" + part.Name
		}
		a, err := app.NewAttachment(name, content)
		if err != nil {
			return err
		}
		g.Attached = append(g.Attached, a)
	}
	g.From = append(g.From, "mcp:"+server)
	if len(g.Attached) > app.MaxAttached {
		return belay.Errorf(belay.CodeTooLarge, "%d files and resources are attached; %d are the most", len(g.Attached), app.MaxAttached).WithHint("name the others without @: the agent can read them")
	}
	return nil
}

// unattached is the error of what a server doesn't give a person.
func unattached(what, server string, err error) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	code := belay.CodeUsage
	if e.Class == tool.NotFound {
		code = belay.CodeNotFound
	}
	return belay.Errorf(code, "%s: %s", e.Code, e.Message).At(what).WithHint("%s", cmp.Or(e.Hint, "belay mcp test "+server+" shows what the server says"))
}

// Prompts are the prompts of a workspace's MCP servers, as templates: by what was accepted
// of them.
func (h *Host) Prompts(ctx context.Context, ws string) (all []*template.Template, err error) {
	p, err := h.At(ctx, ws)
	if err != nil {
		return nil, err
	}
	err = h.prompts(ctx, p, func(s *config.Server, d mcp.Definition) {
		all = append(all, promptTemplate(s.Name, &d))
	})
	return all, err
}

// prompts calls do with each prompt that may be used.
func (h *Host) prompts(ctx context.Context, p *app.Place, do func(*config.Server, mcp.Definition)) error {
	servers, _, err := p.Servers(ctx)
	if err != nil || len(servers) == 0 {
		return err
	}
	book, err := h.book(ctx)
	if err != nil || book == nil {
		return err
	}
	st, release, err := h.borrow(ctx)
	if err != nil {
		return err
	}
	defer release()
	for _, s := range servers {
		c, err := compared(ctx, st, book, &s)
		if err != nil {
			return err
		}
		for _, d := range mcp.Prompts(c.Offered) {
			do(&s, d)
		}
	}
	return nil
}

// promptTemplate is a prompt as a template. Its server makes the text.
func promptTemplate(server string, d *mcp.Definition) *template.Template {
	t := &template.Template{Name: d.Name, Domain: "mcp", Kind: "prompt", Description: cmp.Or(d.Description, d.Title), Origin: server, Remote: true, Digest: d.Digest()}
	for _, a := range d.Arguments {
		t.Variables = append(t.Variables, template.Variable{Name: a.Name, Type: template.Text, Description: a.Description, Required: a.Required})
	}
	return t
}

// Prompt has an MCP server fill one of its prompts, with what the prompt brings besides
// its text.
func (h *Host) Prompt(ctx context.Context, ws string, t *template.Template, values map[string]string) (g app.Given, err error) {
	p, err := h.At(ctx, ws)
	if err != nil {
		return g, err
	}
	var of *config.Server
	var is mcp.Definition
	err = h.prompts(ctx, p, func(s *config.Server, d mcp.Definition) {
		if s.Name == t.Origin && d.Name == t.Name {
			of, is = s, d
		}
	})
	if err != nil {
		return g, err
	}
	name := t.Origin + ":" + t.Name
	if of == nil {
		return g, belay.Errorf(belay.CodeNotFound, "the MCP server doesn't offer this prompt").At(name).WithHint("belay mcp show %s", t.Origin)
	}
	box, err := h.boxOf(p, of)
	if err != nil {
		return g, err
	}
	text, more, err := h.servers.ReadPrompt(ctx, &of.Server, p.Path(), box, is, values)
	if err != nil {
		return g, unattached(name, of.Name, err)
	}
	g.Text = text
	return g, attach(&g, of.Name, name, more)
}
