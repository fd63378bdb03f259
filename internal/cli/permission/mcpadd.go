package permission

import (
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
)

type mcpAddCmd struct {
	Env     map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A variable of the program: a text, or secret:NAME, env:NAME, file:PATH."`
	Header  map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A header that is sent along, as in Authorization='Bearer secret:NAME'."`
	Network string            `enum:",full" default:"" placeholder:"full" help:"Let the program reach the network: full."`
	Write   []string          `placeholder:"DIR" sep:"none" help:"A folder that it may write besides the workspace."`
	Type    string            `enum:",stdio,http,sse" default:"" placeholder:"TYPE" help:"stdio, http or sse; it follows from what is given."`
	Name    string            `arg:"" help:"What the server is called in rules."`
	What    []string          `arg:"" help:"Its address, or after -- its program and the arguments."`
}

// Help describes the command, with what its flags don't say.
func (*mcpAddCmd) Help() string {
	return "As in belay mcp add files -- mcp-server-filesystem . and belay mcp add docs https://docs.example.com/mcp --header Authorization='Bearer secret:DOCS_TOKEN'. " +
		"The file's fields that have no flag are in docs/mcp.md."
}

// Run implements command.Command.
func (c *mcpAddCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	var s config.Server
	s.Name, s.Type, s.Server.Env, s.Headers, s.Bounds.Network = c.Name, c.Type, c.Env, c.Header, c.Network
	if len(c.What) == 1 && (strings.HasPrefix(c.What[0], "https://") || strings.HasPrefix(c.What[0], "http://")) {
		s.URL = c.What[0]
	} else {
		s.Command, s.Args = c.What[0], c.What[1:]
	}
	if s.URL != "" && len(c.Env) > 0 || s.URL == "" && len(c.Header) > 0 {
		return 0, belay.Errorf(belay.CodeUsage, "variables are for a program, and headers for an address").At(c.Name).WithHint("belay mcp add --help")
	}
	for _, dir := range c.Write {
		s.Bounds.Write = append(s.Bounds.Write, a.Environment().Abs(dir))
	}
	if err := a.Environment().AddServer(ctx, s); err != nil {
		return 0, err
	}
	return serverFile(a, c.Name, "%s is in %s; belay mcp test %[1]s tries it")
}

type mcpRemoveCmd struct {
	Name string `arg:"" help:"The server."`
}

// Run implements command.Command.
func (c *mcpRemoveCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if err := a.Environment().RemoveServer(ctx, c.Name); err != nil {
		return 0, err
	}
	return serverFile(a, c.Name, "%s is not in %s any more")
}

// serverFile says what became of a server in the person's file.
func serverFile(a *command.Program, name, format string) (int, error) {
	path, err := a.Environment().UserFile()
	if err != nil {
		return 0, err
	}
	return a.SayBeside(struct {
		Name string `json:"name"`
		File string `json:"file"`
	}{name, path}, format, term.Line(name), term.Line(path))
}
