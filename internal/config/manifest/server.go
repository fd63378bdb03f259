package manifest

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// Server is an MCP server as a file describes it: a program that speaks the protocol
// on its standard streams, or an address.
type Server struct {
	Name  string // by which rules call it
	File  string // that describes it
	Where string // file:line:column

	Type    string            // stdio, http, sse
	Command string            // of stdio: a path, or a name on the PATH
	Args    []string          // of stdio
	Env     map[string]string // of stdio: variables besides PATH and HOME
	Cwd     string            // of stdio; empty is the workspace
	URL     string            // of http and sse
	Headers map[string]string // of http and sse
	Timeout time.Duration     // of a call; 0 is the runtime's

	Bounds     belay.ToolBounds // of stdio
	Tools      []string         // names in which * stands for anything; - before one takes it away; none are all
	Load       string           // auto, always, search; empty is auto
	TrustHints bool             // what it says of its tools' effects is believed
	Sampling   string           // deny, ask; empty is deny
	Idle       time.Duration    // it ends when nothing used it for so long; 0 is the runtime's

	Places map[string]string // of the values of Env and Headers, by name: file:line:column
}

// Remote reports whether it is reached over the network.
func (s *Server) Remote() bool { return s.Type != "stdio" }

// String is the server in one line: its command line or its address, the names of its
// variables or headers with where their values come from, and what it may besides.
func (s *Server) String() string {
	words := []string{s.URL}
	named, what := s.Headers, "headers "
	if !s.Remote() {
		words = append([]string{s.Command}, s.Args...)
		named, what = s.Env, "variables "
	}
	text := strings.Join(words, " ")
	if len(named) > 0 {
		text += ", " + what + withSources(named)
	}
	if s.Cwd != "" {
		text += ", in " + s.Cwd
	}
	if b := s.Bounds; b.Boundary != "" || b.Network != "" || len(b.Write) > 0 {
		text += ", boundary " + strings.Join(slices.DeleteFunc([]string{b.Boundary, b.Network, strings.Join(b.Write, " ")}, func(w string) bool { return w == "" }), ", ")
	}
	if s.TrustHints {
		text += ", what it says of its tools' effects is believed"
	}
	if s.Sampling == "ask" {
		text += ", it may ask for answers of your model"
	}
	return text
}

// withSources are names with where their values come from: variables, secrets, files. A
// value that stands in the file isn't shown.
func withSources(values map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var from []string
		for rest := values[name]; ; {
			_, after, ok := strings.Cut(rest, "${")
			if !ok {
				break
			}
			inside, _, _ := strings.Cut(after, "}")
			variable, _, _ := strings.Cut(inside, ":-")
			from, rest = append(from, "${"+variable+"}"), after
		}
		text := values[name]
		if r, ok := ParseReference(text[strings.LastIndexByte(text, ' ')+1:]); ok {
			from = append(from, r.Kind+":"+r.Name)
		}
		if len(from) > 0 {
			name += "=" + strings.Join(from, "+")
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

const (
	serversName = "mcp-servers"
	serverHint  = "mcp-servers: {github: {command: github-mcp-server, args: [stdio]}}; docs/mcp.md lists the fields"
	// MaxServers bounds the servers of a file.
	MaxServers = 100
)

// serverName is what a server may be called.
var serverName = match.Lazy(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

// serverFields are a server's fields as files spell them.
type serverFields struct {
	Type    string            `yaml:"type"`
	Command string            `yaml:"command"`
	Args    []string          `yaml:"args"`
	Env     map[string]string `yaml:"env"`
	Cwd     string            `yaml:"cwd"`
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	Timeout any               `yaml:"timeout"`

	Boundary   string   `yaml:"boundary"`
	Network    string   `yaml:"network"`
	Write      []string `yaml:"write"`
	Tools      []string `yaml:"tools"`
	Load       string   `yaml:"load"`
	TrustHints bool     `yaml:"trust-hints"`
	Sampling   string   `yaml:"sampling"`
	Idle       string   `yaml:"idle"`
}

// foreignFields are fields of other clients' files: what they say means nothing here.
var foreignFields = []string{"disabled", "autoApprove", "alwaysAllow", "description", "oauth", "trust", "envFile", "dev", "gallery", "version", "includeTools", "excludeTools"}

// ReadServers reads the servers of an .mcp.json, below mcpServers.
func ReadServers(name string, data []byte) ([]Server, error) {
	t := strictyaml.Text{Name: name, Noun: "list of MCP servers", Code: belay.CodeBadConfig, Hint: "docs/mcp.md describes the file"}
	root, err := t.Document(data)
	if err != nil {
		return nil, err
	}
	n := strictyaml.At(root, "mcpServers")
	if n == nil {
		return nil, t.ErrorAt(root, nil, "there is no field mcpServers").WithHint(`{"mcpServers": {"github": {"command": "github-mcp-server", "args": ["stdio"]}}}`)
	}
	return servers(t, n, true)
}

// servers reads servers by name; a foreign file may have fields of other clients.
func servers(t strictyaml.Text, n ast.Node, foreign bool) ([]Server, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, t.ErrorAt(n, nil, "want servers by name here").WithHint(serverHint)
	}
	if len(m.Values) > MaxServers {
		return nil, t.ErrorAt(n, nil, "%d servers are too many; %d are the most", len(m.Values), MaxServers)
	}
	var out []Server
	for _, v := range m.Values {
		one, err := server(t, v, foreign)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func server(t strictyaml.Text, v *ast.MappingValueNode, foreign bool) (Server, error) {
	key := v.Key.GetToken()
	s := Server{Name: key.Value, File: t.Name, Where: t.Where(key), Places: map[string]string{}}
	if !serverName.Match(s.Name) {
		return s, t.Errorf(key, "%q can't be the name of a server", s.Name).WithHint("at most 40 letters, digits, hyphens, underscores and dots")
	}
	m, ok := v.Value.(*ast.MappingNode)
	if !ok {
		return s, t.Errorf(key, "want the server's fields here").WithHint(serverHint)
	}
	if foreign {
		own := *m
		own.Values = slices.DeleteFunc(slices.Clone(m.Values), func(f *ast.MappingValueNode) bool {
			return slices.Contains(foreignFields, f.Key.GetToken().Value)
		})
		m = &own
	}
	var f serverFields
	if err := t.Decode(m, &f); err != nil {
		return s, err
	}
	s.Type, s.Command, s.Args, s.Env, s.Cwd, s.URL, s.Headers = f.Type, f.Command, f.Args, f.Env, f.Cwd, f.URL, f.Headers
	s.Bounds = belay.ToolBounds{Boundary: f.Boundary, Network: f.Network, Write: f.Write}
	s.Tools, s.Load, s.TrustHints, s.Sampling = f.Tools, f.Load, f.TrustHints, f.Sampling
	for _, field := range []string{"env", "headers"} {
		if n, ok := strictyaml.At(m, field).(*ast.MappingNode); ok {
			for _, v := range n.Values {
				s.Places[v.Key.GetToken().Value] = t.Where(v.Key.GetToken())
			}
		}
	}
	r := strictyaml.Reader{Text: t, Root: m}
	s.check(&r, f)
	return s, r.Err
}

// check fills in what follows from other fields, and refuses what doesn't go together.
func (s *Server) check(r *strictyaml.Reader, f serverFields) {
	if s.Type == "" {
		if s.Type = "stdio"; s.URL != "" {
			s.Type = "http"
		}
	}
	switch s.Type {
	case "streamable-http", "streamableHttp":
		s.Type = "http"
	case "stdio", "http", "sse":
	default:
		r.Fail([]any{"type"}, "a server is of type stdio, http or sse, not %q", s.Type)
	}
	switch {
	case s.Remote() && (s.URL == "" || s.Command != ""):
		r.Fail([]any{"type"}, "a server of type %s has a url and no command", s.Type)
	case !s.Remote() && (s.Command == "" || s.URL != ""):
		r.Fail([]any{"type"}, "a server of type stdio has a command and no url")
	case s.Remote() && (s.Bounds.Boundary != "" || s.Bounds.Network != "" || len(s.Bounds.Write) > 0):
		r.Fail([]any{"boundary"}, "a server that isn't started here has no boundary").WithHint("leave boundary, network and write out")
	}
	one := func(field, value string, of ...string) {
		if value != "" && !slices.Contains(of, value) {
			r.Fail([]any{field}, "%q is none of %s", value, strings.Join(of, ", "))
		}
	}
	one("network", s.Bounds.Network, "full", "none")
	one("load", s.Load, "auto", "always", "search")
	one("sampling", s.Sampling, "deny", "ask")
	if s.Bounds.Network == "none" {
		s.Bounds.Network = ""
	}
	s.Idle = r.Duration([]any{"idle"}, f.Idle, time.Second, 24*time.Hour)
	switch v := f.Timeout.(type) {
	case nil:
	case string:
		s.Timeout = r.Duration([]any{"timeout"}, v, time.Second, time.Hour)
	case uint64: // milliseconds, as other clients write it
		if s.Timeout = time.Duration(min(v, 1<<40)) * time.Millisecond; s.Timeout < time.Second || s.Timeout > time.Hour {
			r.Fail([]any{"timeout"}, "a timeout of %d milliseconds isn't between 1s and 1h", v).WithHint("timeout: 60s")
		}
	default:
		r.Fail([]any{"timeout"}, "want a length of time here").WithHint("timeout: 60s")
	}
}

// Same reports whether two servers are described in the same way by fields.
func (s *Server) Same(o *Server) bool { return reflect.DeepEqual(s.fields(), o.fields()) }

// fields are what a command line says of the server, as a file has it.
func (s *Server) fields() yaml.MapSlice {
	var out yaml.MapSlice
	add := func(name string, value any, empty bool) {
		if !empty {
			out = append(out, yaml.MapItem{Key: name, Value: value})
		}
	}
	add("type", s.Type, s.Type == "" || s.Type == "stdio" && s.URL == "" || s.Type == "http" && s.URL != "")
	add("command", s.Command, s.Command == "")
	add("args", s.Args, len(s.Args) == 0)
	add("env", s.Env, len(s.Env) == 0)
	add("url", s.URL, s.URL == "")
	add("headers", s.Headers, len(s.Headers) == 0)
	add("network", s.Bounds.Network, s.Bounds.Network == "")
	add("write", s.Bounds.Write, len(s.Bounds.Write) == 0)
	return out
}
