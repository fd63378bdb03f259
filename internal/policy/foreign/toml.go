package foreign

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/pattern"
)

// geminiRule is one rule of a policy file, as it is written.
type geminiRule struct {
	ToolName         any      `toml:"toolName"` // a text or a list of them
	Subagent         *string  `toml:"subagent"`
	McpName          *string  `toml:"mcpName"`
	ArgsPattern      string   `toml:"argsPattern"`
	CommandPrefix    any      `toml:"commandPrefix"` // likewise
	CommandRegex     string   `toml:"commandRegex"`
	Decision         string   `toml:"decision"`
	Priority         *int64   `toml:"priority"`
	Modes            []string `toml:"modes"`
	Interactive      *bool    `toml:"interactive"`
	ToolAnnotations  any      `toml:"toolAnnotations"`
	AllowRedirection bool     `toml:"allow_redirection"`
	DenyMessage      string   `toml:"deny_message"`
	SafetyChecker    any      `toml:"safety_checker"`

	line    int
	place   int      // in the file
	unknown []string // keys that nobody here knows
}

// geminiFile is a policy file.
type geminiFile struct {
	Rule          []geminiRule `toml:"rule"`
	SafetyChecker []any        `toml:"safety_checker"`

	unknown []unknownKey
}

type unknownKey struct {
	name string
	line int
}

// readTOML reads a policy file. Keys that are unknown are kept beside: what they
// would restrict isn't.
func readTOML(content []byte, name string) (*geminiFile, error) {
	if line := tooDeep(content); line > 0 {
		return nil, mistake(name, line, "more than %d levels of nesting", maxNesting)
	}
	var f geminiFile
	err := toml.NewDecoder(bytes.NewReader(content)).DisallowUnknownFields().Decode(&f)
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		for _, e := range unknown.Errors {
			line, _ := e.Position()
			f.unknown = append(f.unknown, unknownKey{strings.Join(e.Key(), "."), line})
		}
	} else if err != nil {
		return nil, tomlMistake(err, name)
	}
	f.places(content)
	return &f, nil
}

func tomlMistake(err error, name string) *belay.Error {
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := e.Position()
		return mistake(name, line, "this isn't a policy in TOML: %s", strings.TrimPrefix(e.Error(), "toml: "))
	}
	return mistake(name, 0, "this isn't a policy in TOML: %s", strings.TrimPrefix(err.Error(), "toml: "))
}

var ruleHead = pattern.New(`(?m)^[ \t]*\[\[[ \t]*"?rule"?[ \t]*\]\]`)

// places finds the lines of rules, and which rule an unknown key belongs to. If
// the heads can't be told from text that looks like them, no rule has a line, and
// an unknown key belongs to every one.
func (f *geminiFile) places(content []byte) {
	heads := ruleHead.Get().FindAllIndex(content, -1)
	known := len(heads) == len(f.Rule)
	line, seen := 1, 0
	for i := range f.Rule {
		f.Rule[i].place = i + 1
		if known {
			line += bytes.Count(content[seen:heads[i][1]], []byte("\n"))
			seen = heads[i][1]
			f.Rule[i].line = line
		}
	}
	var rest []unknownKey
	for _, u := range f.unknown {
		key, below := strings.CutPrefix(u.name, "rule.")
		if !below {
			rest = append(rest, u)
			continue
		}
		for i := range f.Rule {
			if !known || f.Rule[i].line < u.line && (i+1 == len(f.Rule) || u.line < f.Rule[i+1].line) {
				f.Rule[i].unknown = append(f.Rule[i].unknown, key)
			}
		}
	}
	f.unknown = rest
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

// textList is a value that is a text or a list of them.
func textList(v any) (list []string, ok bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return []string{v}, true
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, false
			}
			list = append(list, s)
		}
		return list, true
	}
	return nil, false
}
