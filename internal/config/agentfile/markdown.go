package agentfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
)

// Keys of front matter that mean something, and those that are known to other programs
// and mean nothing here, with what to say about them.
var (
	frontKeys = []string{"name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "effort", "max_turns", "timeout_mins", "color", "background", "isolation", "skills", "mcpServers"}
	notTaken  = map[string]string{
		"hooks": "programs that judge calls belong into policy.yaml, under checkers, which a person trusts",
	}
)

// field is a key of the front matter with its lines.
type field struct {
	key   string
	line  int
	lines []string
}

// front takes a text apart: the keys before the second line of three hyphens, and the
// body. It is read line by line: a known key at the beginning of a line begins a field,
// which runs to the next. Other keys count as such where the whole is YAML, else they are
// text of the field before.
func front(text string, known func(key string) bool) (fields []field, body string, ok bool) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	lines := strings.Split(text, "\n")
	if strings.TrimRight(lines[0], " \t") != "---" {
		return nil, text, false
	}
	end := slices.IndexFunc(lines[1:], func(l string) bool { return strings.TrimRight(l, " \t") == "---" }) + 1
	if end == 0 {
		return nil, text, false
	}
	others := yamlKeys(strings.Join(lines[1:end], "\n"))
	for i, l := range lines[1:end] {
		key, rest, found := strings.Cut(l, ":")
		if found && (rest == "" || rest[0] == ' ' || rest[0] == '\t') && (known(key) || slices.Contains(others, key)) {
			fields = append(fields, field{key, i + 2, []string{strings.TrimSpace(rest)}})
			continue
		}
		if n := len(fields); n > 0 {
			fields[n-1].lines = append(fields[n-1].lines, l)
		}
	}
	return fields, strings.TrimSpace(strings.Join(lines[end+1:], "\n")), true
}

// yamlKeys are the keys of a text that is YAML.
func yamlKeys(text string) (keys []string) {
	root, err := yamlText("").Document([]byte(text))
	if err != nil {
		return nil
	}
	switch n := root.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			keys = append(keys, v.Key.GetToken().Value)
		}
	case *ast.MappingValueNode:
		keys = append(keys, n.Key.GetToken().Value)
	}
	return keys
}

// text is a field's value as one text.
func (f field) text() string {
	first := f.lines[0]
	rest := f.lines[1:]
	if first != "" && (first[0] == '|' || first[0] == '>') && len(strings.Trim(first, "|>+-0123456789")) == 0 {
		join := "\n"
		if first[0] == '>' {
			join = " "
		}
		return strings.TrimSpace(strings.Join(dedent(rest), join))
	}
	whole := first
	for _, l := range rest {
		if l = strings.TrimSpace(l); l != "" {
			whole += "\n" + l
		}
	}
	return unquote(strings.TrimSpace(whole))
}

// dedent takes the blanks away that all lines begin with.
func dedent(lines []string) (out []string) {
	least := -1
	for _, l := range lines {
		if t := strings.TrimLeft(l, " \t"); t != "" && (least < 0 || len(l)-len(t) < least) {
			least = len(l) - len(t)
		}
	}
	for _, l := range lines {
		out = append(out, strings.TrimRight(l[min(max(least, 0), len(l)):], " \t"))
	}
	return out
}

// unquote takes YAML's quotes and comments off.
func unquote(s string) string {
	if len(s) >= 2 {
		switch q := s[0]; {
		case q == '"' && s[len(s)-1] == '"':
			if t, err := strconv.Unquote(strings.ReplaceAll(s, "\n", " ")); err == nil {
				return t
			}
			return s[1 : len(s)-1]
		case q == '\'' && s[len(s)-1] == '\'':
			return strings.ReplaceAll(s[1:len(s)-1], "''", "'")
		}
	}
	if i := strings.Index(s, " #"); i >= 0 && !strings.Contains(s, "\n") {
		return strings.TrimSpace(s[:i])
	}
	return s
}

// list is a field's value as a list: with commas, in brackets, or an entry in a line.
func (f field) list() (out []string) {
	add := func(s string) {
		depth, from := 0, 0
		for i, r := range s + "," {
			switch {
			case r == '(':
				depth++
			case r == ')':
				depth--
			case r == ',' && depth <= 0:
				if w := unquote(strings.TrimSpace(s[from:min(i, len(s))])); w != "" {
					out = append(out, w)
				}
				from = i + 1
			}
		}
	}
	var flow []string
	for i, l := range f.lines {
		l = strings.TrimSpace(l)
		if entry, ok := strings.CutPrefix(l, "- "); ok && i > 0 {
			if w := unquote(strings.TrimSpace(entry)); w != "" {
				out = append(out, w)
			}
			continue
		}
		if l != "" && l[0] != '#' {
			flow = append(flow, l)
		}
	}
	whole := unquote(strings.TrimSpace(strings.Join(flow, " ")))
	if strings.HasPrefix(whole, "[") && strings.HasSuffix(whole, "]") {
		whole = whole[1 : len(whole)-1]
	}
	add(whole)
	return out
}

// readMarkdown reads a file with front matter; its body is the instructions. It is never
// refused for not being YAML.
func (a *Agent) readMarkdown(data []byte) {
	a.Format = Markdown
	fields, body, ok := front(string(data), func(key string) bool { return slices.Contains(frontKeys, key) || notTaken[key] != "" })
	if !ok {
		a.Name = baseName(a.Path)
		a.find(Error, CodeNoAgent, a.Path+":1:1", "begin the file with ---, name: NAME, description: TEXT, ---", "the file has no front matter")
		return
	}
	a.Instructions = body
	values, seen := map[string]field{}, map[string]bool{}
	for _, f := range fields {
		where := fmt.Sprintf("%s:%d:1", a.Path, f.line)
		switch why := notTaken[f.key]; {
		case seen[f.key]:
			a.find(Warning, CodeBadFile, where, "leave one of them out", "%s is there twice; the first one counts", f.key)
		case why != "":
			a.find(Warning, CodeNotTaken, where, "it can stay for the other program", "%s isn't taken from the file: %s", f.key, why)
		case slices.Contains(frontKeys, f.key):
			values[f.key] = f
		default:
			a.Unknown = append(a.Unknown, short(f.key, 80))
		}
		seen[f.key] = true
	}
	if len(a.Unknown) > 0 {
		a.find(Note, CodeUnknownKey, "", "docs/agent-files.md lists those that count", "keys that mean nothing here: %s", strings.Join(a.Unknown, ", "))
	}
	place := func(key string) string {
		if f, ok := values[key]; ok {
			return fmt.Sprintf("%s:%d:1", a.Path, f.line)
		}
		return a.Path + ":1:1"
	}
	text := func(key string) string {
		if f, ok := values[key]; ok {
			return f.text()
		}
		return ""
	}
	a.places = map[string]string{"tools": place("tools"), "model": place("model")}
	a.named(text("name"), "", place("name"), "")
	if a.Description = text("description"); a.Description == "" {
		a.find(Warning, CodeBadFile, place("description"), "description: when to use it", "without a description no other agent knows when to start it")
	}
	if f, ok := values["tools"]; ok {
		if words := f.list(); !slices.Contains(words, "*") { // which is as if it weren't there
			a.foreignTools(words, place("tools"))
		}
	}
	if f, ok := values["disallowedTools"]; ok {
		for _, w := range f.list() {
			term, programs, known := toolTerm(w)
			switch {
			case !known || term == "":
			case len(programs) > 0:
				a.Forbidden = append(a.Forbidden, programs...)
			default:
				a.Without = append(a.Without, term)
			}
		}
	}
	if f, ok := values["skills"]; ok {
		a.Skills = f.list()
	}
	if f, ok := values["mcpServers"]; ok {
		a.servers(f, place("mcpServers"))
	}
	a.front(text, place)
	if body == "" {
		a.find(Error, CodeBadFile, a.Path, "write what the agent is to know and do below the front matter", "the agent has no instructions")
	}
}

// servers reads the names of MCP servers; one may stand before a definition, which isn't
// taken.
func (a *Agent) servers(f field, where string) {
	var entries []any
	defined := false
	text := strings.Join(f.lines, "\n")
	if yaml.Unmarshal([]byte(text), &entries) != nil {
		var one map[string]any
		if yaml.Unmarshal([]byte(text), &one) == nil && len(one) > 0 {
			entries = []any{one}
		} else {
			for _, name := range f.list() {
				entries = append(entries, name)
			}
		}
	}
	for _, e := range entries {
		switch e := e.(type) {
		case string:
			a.Servers = append(a.Servers, e)
		case map[string]any:
			defined = true
			a.Servers = append(a.Servers, sorted(e)...)
		}
	}
	if defined {
		a.find(Warning, CodeNotTaken, where, "belay mcp add, or .mcp.json", "what mcpServers says of a server isn't taken from the file: the agent may use the server if the workspace has it")
	}
}

// front reads the keys that are one word.
func (a *Agent) front(text, place func(string) string) {
	if m := text("model"); m != "inherit" {
		a.Model = m
	}
	switch e := strings.ToLower(text("effort")); e {
	case "xhigh", "max":
		a.Effort = "high"
		a.find(Note, CodeUnknownWord, place("effort"), "effort: high", "effort %s is taken for high", e)
	default:
		a.Effort = a.oneOf("effort", e, place("effort"), "low", "medium", "high")
	}
	switch m := text("permissionMode"); m {
	case "":
	case "default", "plan":
		a.Mode = belay.Mode(m)
	case "acceptEdits":
		a.Mode = belay.ModeAcceptEdits
	case "bypassPermissions":
		a.find(Warning, CodeNotTaken, place("permissionMode"), "who starts it chooses the mode: --mode MODE", "bypassPermissions doesn't count: a file never widens what may be done")
	default:
		a.find(Warning, CodeUnknownWord, place("permissionMode"), "default, acceptEdits or plan", "there is no permissionMode %q", short(m, 40))
	}
	a.Background = text("background") == "true"
	a.Isolation = a.oneOf("isolation", text("isolation"), place("isolation"), "none", Worktree)
	for _, key := range []string{"maxTurns", "max_turns"} {
		if t := text(key); t != "" {
			if err := a.limit("steps", t); err != nil {
				a.find(Error, CodeBadLimit, place(key), "a whole number above 0", "%v", err)
			}
		}
	}
	if t := text("timeout_mins"); t != "" {
		if err := a.limit("time", t+"m"); err != nil {
			a.find(Error, CodeBadLimit, place("timeout_mins"), "a number of minutes", "%q is no number of minutes above 0", short(t, 40))
		}
	}
}
