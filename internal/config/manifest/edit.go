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
	t := strictyaml.Text{Name: name, Noun: "configuration", Code: belay.CodeBadConfig, Hint: configReference}
	var m *ast.MappingNode
	if !blank(data) {
		root, err := t.Document(data)
		if err != nil {
			return nil, err
		}
		var ok bool
		if m, ok = root.(*ast.MappingNode); !ok || m.IsFlowStyle {
			return nil, t.ErrorAt(root, nil, "the settings aren't written one below the other, so none can be changed in place").WithHint("belay config edit")
		}
	}
	lines := slices.Collect(strings.Lines(string(data)))
	from, to := len(lines), len(lines)
	if m != nil {
		from, to = linesOf(m, lines, setting)
	}
	var line []string
	if value != nil {
		written, err := written(setting, value)
		if err != nil {
			return nil, err
		}
		if to == from+1 {
			written += commentOf(lines[from])
		}
		line = []string{written + "\n"}
	}
	if from > 0 && from == len(lines) && line != nil && !strings.HasSuffix(lines[from-1], "\n") {
		lines[from-1] += "\n"
	}
	return []byte(strings.Join(slices.Replace(lines, from, to, line...), "")), nil
}

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
