package manifest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// SetSetting is the text of a configuration file with another value for a setting, and
// with the setting taken out where value is nil. All other lines stay as they are,
// comments among them.
func SetSetting(name string, data []byte, setting string, value any) ([]byte, error) {
	e, err := readEdited(name, data)
	if err != nil {
		return nil, err
	}
	return e.text(e.put(e.root, len(e.lines), "", setting, value))
}

// SetServer is the text of a configuration file with an MCP server of a name, and
// without it where s is nil. All other lines stay as they are, comments among them.
func SetServer(name string, data []byte, server string, s *Server) ([]byte, error) {
	e, err := readEdited(name, data)
	if err != nil {
		return nil, err
	}
	var value any
	if s != nil {
		value = s.fields()
	}
	at := slices.IndexFunc(e.values(), func(v *ast.MappingValueNode) bool { return v.Key.GetToken().Value == serversName })
	if at < 0 {
		e.end()
		e.lines = append(e.lines, serversName+":\n")
		return e.text(e.put(nil, len(e.lines), "  ", server, value))
	}
	m, ok := e.root.Values[at].Value.(*ast.MappingNode)
	if !ok || m.IsFlowStyle || len(m.Values) == 0 {
		return nil, e.inOneLine(e.root.Values[at].Value)
	}
	if value == nil && len(m.Values) == 1 && m.Values[0].Key.GetToken().Value == server {
		return e.text(e.put(e.root, len(e.lines), "", serversName, nil))
	}
	_, to := linesOf(e.root, e.lines, serversName)
	return e.text(e.put(m, to, strings.Repeat(" ", m.Values[0].Key.GetToken().Position.Column-1), server, value))
}

// edited is a configuration file that is changed line by line.
type edited struct {
	strictyaml.Text
	lines []string
	root  *ast.MappingNode // nil: there is nothing in it
}

func readEdited(name string, data []byte) (*edited, error) {
	e := &edited{Text: strictyaml.Text{Name: name, Noun: "configuration", Code: belay.CodeBadConfig, Hint: configReference}, lines: slices.Collect(strings.Lines(string(data)))}
	if blank(data) {
		return e, nil
	}
	root, err := e.Document(data)
	if err != nil {
		return nil, err
	}
	var ok bool
	if e.root, ok = root.(*ast.MappingNode); !ok || e.root.IsFlowStyle {
		return nil, e.inOneLine(root)
	}
	return e, nil
}

func (e *edited) inOneLine(n ast.Node) error {
	return e.ErrorAt(n, nil, "the settings aren't written one below the other, so none can be changed in place").WithHint("belay config edit")
}

func (e *edited) values() []*ast.MappingValueNode {
	if e.root == nil {
		return nil
	}
	return e.root.Values
}

// put writes a value into a mapping whose lines end before a line, or takes it out.
func (e *edited) put(m *ast.MappingNode, end int, indent, key string, value any) error {
	from, to := end, end
	if m != nil {
		from, to = linesOf(m, e.lines[:end], key)
	}
	var line []string
	if value != nil {
		written, err := written(key, value)
		if err != nil {
			return err
		}
		if to == from+1 {
			written += commentOf(e.lines[from])
		}
		line = []string{indent + written + "\n"}
	}
	if from == len(e.lines) && line != nil {
		e.end()
	}
	e.lines = slices.Replace(e.lines, from, to, line...)
	return nil
}

// end ends the last line.
func (e *edited) end() {
	if n := len(e.lines); n > 0 && !strings.HasSuffix(e.lines[n-1], "\n") {
		e.lines[n-1] += "\n"
	}
}

func (e *edited) text(err error) ([]byte, error) { return []byte(strings.Join(e.lines, "")), err }

// blank reports whether a text has comments at most.
func blank(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// linesOf are the lines of a setting: from its name up to the next one's, without the
// comments and empty lines before that. Of one that isn't there, they are the end.
func linesOf(m *ast.MappingNode, lines []string, setting string) (from, to int) {
	for i, v := range m.Values {
		if v.Key.GetToken().Value != setting {
			continue
		}
		from, to = v.Key.GetToken().Position.Line-1, len(lines)
		if i+1 < len(m.Values) {
			to = m.Values[i+1].Key.GetToken().Position.Line - 1
		}
		for to > from+1 {
			last := strings.TrimSpace(lines[to-1])
			if last != "" && last[0] != '#' && last != "..." {
				break
			}
			to--
		}
		return from, to
	}
	return len(lines), len(lines)
}

// written is a setting on one line.
func written(setting string, value any) (string, error) {
	options := []yaml.EncodeOption{yaml.Flow(true)}
	if text, ok := value.(string); ok {
		value = plain(text)
	}
	var b bytes.Buffer
	if err := yaml.NewEncoder(&b, options...).Encode(value); err != nil {
		return "", belay.Errorf(belay.CodeBadConfig, "%s can't be written as YAML: %v", setting, err).WithHint("belay config edit")
	}
	return setting + ": " + strings.TrimSpace(b.String()), nil
}

// plain is a text as the value that is written without quotes, if it is one: 5 or true.
func plain(text string) any {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	switch v.(type) {
	case bool, uint64, int64:
		if b, err := yaml.Marshal(v); err == nil && strings.TrimSpace(string(b)) == text {
			return v
		}
	}
	return text
}

// commentOf is the comment behind a setting on its line, with the blanks before it.
func commentOf(line string) string {
	f, err := parser.ParseBytes([]byte(line), parser.ParseComments)
	if err != nil || len(f.Docs) == 0 {
		return ""
	}
	var text string
	ast.Walk(walker(func(n ast.Node) {
		if c := n.GetComment(); c != nil && text == "" {
			text = c.String()
		}
	}), f.Docs[0].Body)
	if text == "" {
		return ""
	}
	return " " + text
}

// walker visits nodes.
type walker func(ast.Node)

// Visit implements ast.Visitor.
func (w walker) Visit(n ast.Node) ast.Visitor {
	w(n)
	return w
}
