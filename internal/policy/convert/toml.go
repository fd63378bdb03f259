package convert

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/belay-run/belay"
)

// readTOML reads a file as JSON is read: names count as they are spelled, and
// each value knows its line.
func readTOML(name string, content []byte) (*node, error) {
	var lines map[string]int
	deep := tooDeep(content)
	if deep == 0 {
		lines, deep = tomlLines(content)
	}
	if deep > 0 {
		return nil, mistake(name, deep, "more than %d levels of nesting", maxNesting)
	}
	var values map[string]any
	if err := toml.Unmarshal(content, &values); err != nil {
		return nil, tomlMistake(err, name)
	}
	return tomlNode(values, "", 1, lines), nil
}

func tomlMistake(err error, name string) *belay.Error {
	line := 0
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ = e.Position()
	}
	return mistake(name, line, "this isn't a policy in TOML: %s", strings.TrimPrefix(err.Error(), "toml: "))
}

// tomlNode is a value that was read. at is its place, as tomlLines has it.
func tomlNode(value any, at string, line int, lines map[string]int) *node {
	if l, ok := lines[at]; ok {
		line = l
	}
	n := &node{line: line}
	switch v := value.(type) {
	case map[string]any:
		n.kind, n.names = object, slices.Sorted(maps.Keys(v))
		for _, name := range n.names {
			n.items = append(n.items, tomlNode(v[name], at+"\x00"+name, line, lines))
		}
	case []any:
		n.kind = array
		for i, e := range v {
			n.items = append(n.items, tomlNode(e, at+"\x00"+strconv.Itoa(i), line, lines))
		}
	case bool:
		n.kind, n.yes = boolean, v
	case string:
		n.kind, n.text = text, v
	case int64:
		n.kind, n.text = number, strconv.FormatInt(v, 10)
	default: // a fraction or a time: nothing here wants one
		n.kind, n.text = number, fmt.Sprint(v)
	}
	return n
}

// tomlLines are the lines of keys and tables by their places. What isn't TOML
// ends it early: the decoder says what is wrong. deep is the line of a key that
// has too many parts.
func tomlLines(content []byte) (lines map[string]int, deep int) {
	var p unstable.Parser
	p.Reset(content)
	lines = map[string]int{}
	tables := map[string]int{} // how often a list of tables got one more
	here, line, seen := "", 1, 0
	mark := func(place string) {
		if _, ok := lines[place]; !ok {
			lines[place] = line
		}
	}
	for p.NextExpression() {
		e, at := p.Expression(), ""
		if e.Kind != unstable.KeyValue && e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		if e.Kind == unstable.KeyValue {
			at = here
		}
		parts, key := 0, e.Key()
		for ; key.Next(); parts++ {
			k := key.Node()
			line += bytes.Count(content[seen:k.Raw.Offset], []byte("\n"))
			if seen = int(k.Raw.Offset); parts > maxNesting {
				return nil, line
			}
			if at += "\x00" + string(k.Data); e.Kind == unstable.ArrayTable && key.IsLast() {
				tables[at]++
			}
			mark(at)
			if n := tables[at]; n > 0 {
				at += "\x00" + strconv.Itoa(n-1)
				mark(at)
			}
		}
		if e.Kind != unstable.KeyValue {
			here = at
		}
	}
	return lines, 0
}

// tooDeep is the line on which brackets are nested too deep, or 0. The parser
// calls itself for each.
func tooDeep(content []byte) int {
	depth, line := 0, 1
	for i := 0; i < len(content); i++ {
		switch c := content[i]; c {
		case '\n':
			line++
		case '#':
			for i+1 < len(content) && content[i+1] != '\n' {
				i++
			}
		case '"', '\'':
			end := quotedEnd(content, i)
			line += bytes.Count(content[i:end], []byte("\n"))
			i = end - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxNesting {
			return line
		}
	}
	return 0
}

// quotedEnd is where a TOML text ends that begins at i.
func quotedEnd(content []byte, i int) int {
	quote := content[i : i+1]
	if triple := bytes.Repeat(quote, 3); bytes.HasPrefix(content[i:], triple) {
		for j := i + 3; j < len(content); j++ {
			if content[j] == '\\' && quote[0] == '"' {
				j++
			} else if bytes.HasPrefix(content[j:], triple) {
				return j + 3
			}
		}
		return len(content)
	}
	for j := i + 1; j < len(content) && content[j] != '\n'; j++ {
		if content[j] == '\\' && quote[0] == '"' {
			j++
		} else if content[j] == quote[0] {
			return j + 1
		}
	}
	return i + 1
}
