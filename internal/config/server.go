package config

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/secret"
)

// serversFile is the file of a workspace that other clients read too.
const serversFile = ".mcp.json"

// Server is an MCP server that counts, with its variables filled in.
type Server struct {
	manifest.Server
	Text string            // it as the file says it, in one line
	Hide map[string]string // the values of it that are secrets, by a name
	Err  error             // why it can't be used; nil: it can
}

// Servers are the MCP servers of the person and the workspace, by name, and what of
// files doesn't count or should be otherwise. Values that are secrets are registered.
func (w *Workspace) Servers(ctx context.Context) (all []Server, ignored []Ignored, err error) {
	if w.filesErr != nil {
		return nil, nil, w.filesErr
	}
	taken := map[string]string{}
	add := func(some []manifest.Server) {
		for _, s := range some {
			key := strings.ToLower(ToolPrefix(s.Name))
			if by := takenBy(taken, key); by != "" {
				ignored = append(ignored, Ignored{Where: s.Where, What: "server " + s.Name, Why: "the name is taken: " + by + " has a server of this name, or of one that its tools' names can't be told from"})
				continue
			}
			taken[key] = s.Where
			one, more := w.in.expandServer(s)
			all, ignored = append(all, one), append(ignored, more...)
		}
	}
	for _, f := range w.files {
		switch {
		case f.counts:
			add(f.Servers)
		case len(f.Servers) > 0:
			ignored = append(ignored, Ignored{Where: f.path, Why: "its MCP servers don't count before it is trusted"})
		}
	}
	path, some, standing, err := w.in.foreignServers(ctx)
	switch {
	case err != nil:
		ignored = append(ignored, Ignored{Where: path, What: "the list of MCP servers", Why: mistake(err)})
	case path != "" && standing != Trusted:
		ignored = append(ignored, Ignored{Where: path, Why: whyIgnored(standing)})
	default:
		add(some)
	}
	slices.SortFunc(all, func(x, y Server) int { return cmp.Compare(x.Name, y.Name) })
	return all, ignored, nil
}

// takenBy is the file that has a server whose tools could be called as those of another
// one: a tool b__c of the server a is called as the tool c of a server a__b.
func takenBy(taken map[string]string, prefix string) string {
	if by := taken[prefix]; by != "" {
		return by
	}
	for other, by := range taken {
		if strings.HasPrefix(prefix, other) || strings.HasPrefix(other, prefix) {
			return by
		}
	}
	return ""
}

// mistake is an error about a file, in one line.
func mistake(err error) string {
	if e, ok := errors.AsType[*belay.Error](err); ok {
		return strings.TrimSpace(e.Where + " " + e.Message)
	}
	return err.Error()
}

// toolPrefix is what the names of all servers' tools begin with.
const toolPrefix = "mcp__"

// OfServer reports whether a tool of this name is an MCP server's.
func OfServer(name string) bool { return strings.HasPrefix(name, toolPrefix) }

// ToolPrefix is what the names of a server's tools begin with.
func ToolPrefix(server string) string { return toolPrefix + SayableName(server) + "__" }

// SayableName is a name with what a tool's name can't have replaced.
func SayableName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// foreignServers reads the workspace's file for all clients; no path: there is none.
func (in Input) foreignServers(ctx context.Context) (path string, all []manifest.Server, s Standing, err error) {
	if in.Workspace == "" {
		return "", nil, Unknown, nil
	}
	root, err := files.OpenRoot(in.Workspace)
	if err != nil {
		return "", nil, Unknown, nil //nolint:nilerr // the run says it better
	}
	defer root.Close()
	if info, err := root.Lstat(serversFile); err != nil || info.IsDir() { // a boundary that stands puts a folder there
		return "", nil, Unknown, nil //nolint:nilerr // there is none
	}
	path, content, s, err := in.judged(ctx, root, serversFile, belay.CodeBadConfig)
	if err == nil && s == Trusted {
		all, err = manifest.ReadServers(path, content)
	}
	return path, all, s, err
}

// expandServer fills in the variables of a server. What can't be is the server's Err.
func (in Input) expandServer(s manifest.Server) (out Server, ignored []Ignored) {
	e := expansion{in: in, where: s.Where}
	out = Server{Text: s.String(), Hide: map[string]string{}}
	s.Command, s.Cwd, s.URL = e.text(s.Command), e.text(s.Cwd), e.text(s.URL)
	for i, arg := range s.Args {
		s.Args = slices.Clone(s.Args)
		s.Args[i] = e.text(arg)
	}
	fill := func(values map[string]string) map[string]string {
		filled := make(map[string]string, len(values))
		for name, text := range values {
			e.where = cmp.Or(s.Places[name], s.Where)
			v, isSecret := e.value(name, text)
			filled[name] = v
			if isSecret && v != "" {
				in.Secrets.Add(name, v)
				out.Hide[name] = v
			}
			if isSecret && v == text {
				ignored = append(ignored, Ignored{Where: e.where, What: name + " as a secret in a file", Why: "anyone who reads the file has it; write secret:" + name + " after belay secret set " + name})
			}
		}
		return filled
	}
	s.Env, s.Headers = fill(s.Env), fill(s.Headers)
	for i, dir := range s.Bounds.Write {
		s.Bounds.Write = slices.Clone(s.Bounds.Write)
		s.Bounds.Write[i] = in.pathFrom(e.text(dir))
	}
	if s.Cwd != "" {
		s.Cwd = in.pathFrom(s.Cwd)
	}
	out.Server, out.Err = s, e.err
	return out, ignored
}

// pathFrom is a path of a server: from the home directory, or from the workspace.
func (in Input) pathFrom(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(in.Get("HOME"), rest)
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(in.Workspace, p)
}

// expansion fills variables in and keeps the first mistake.
type expansion struct {
	in    Input
	where string
	err   error
}

// variable is ${NAME} or ${NAME:-default}.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// text is a text with its variables.
func (e *expansion) text(s string) string {
	return variable.ReplaceAllStringFunc(s, func(m string) string {
		part := variable.FindStringSubmatch(m)
		v := e.in.Get(part[1])
		if secret.IsName(part[1]) && v != "" {
			e.in.Secrets.Add(part[1], v)
		}
		switch {
		case v != "":
			return v
		case part[2] != "":
			return part[3]
		case e.err == nil:
			e.err = belay.Errorf(belay.CodeBadConfig, "the variable %s is not set", part[1]).At(e.where).WithHint("set %s, or write ${%s:-default}", part[1], part[1])
		}
		return ""
	})
}

// value is a text of a field that may be a reference to a secret, or end in one, and
// whether it holds a secret.
func (e *expansion) value(name, text string) (v string, isSecret bool) {
	before, last := "", text
	if i := strings.LastIndexByte(text, ' '); i >= 0 {
		before, last = text[:i+1], text[i+1:]
	}
	r, ok := manifest.ParseReference(last)
	if !ok {
		v = e.text(text)
		return v, holdsSecret(name) && v != ""
	}
	r.Where = e.where
	v, err := e.in.Resolve(r)
	if err != nil && e.err == nil {
		e.err = err
	}
	return before + v, true
}

// holdsSecret reports whether a variable or a header of this name holds a secret.
func holdsSecret(name string) bool {
	return secret.IsName(strings.ReplaceAll(name, "-", "_")) || strings.EqualFold(name, "authorization")
}

func describeServers(servers []manifest.Server) (all []Entry) {
	for _, s := range servers {
		all = append(all, Entry{"server " + s.Name, s.String()})
	}
	return all
}
