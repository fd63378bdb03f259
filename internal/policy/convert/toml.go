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
	"github.com/belay-run/belay/internal/lib/match"
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

// tomlSigns are what nests in TOML, and texts and comments, in which nothing does.
var tomlSigns = match.Lazy(`#[^\n]*|"""(?s:\\.|[^\\])*?"""|'''(?s:.)*?'''|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[][{}]`)

// tooDeep is the line on which brackets are nested too deep, or 0. The parser
// calls itself for each.
func tooDeep(content []byte) int {
	depth := 0
	for _, at := range tomlSigns.Get().FindAllIndex(content, -1) {
		switch content[at[0]] {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxNesting {
			return 1 + bytes.Count(content[:at[0]], []byte("\n"))
		}
	}
	return 0
}
