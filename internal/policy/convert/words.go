package convert

import (
	"bytes"
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/policy/shell"
)

// What an allow of commands asks for besides its words. The source would ask
// about a line with a redirection, a substitution or a variable, and about a
// program behind another one or from another folder.
const (
	odd       = `[<>\x60]|\$\(|(^|[\s;&|(){}!])([A-Za-z_]\w*(\[[^\]]*\])?\+?=|(time|coproc|function)\s)`
	asWritten = `size(wrapped) == 0 && !program.contains('/') && !args.command.matches(r'` + odd + `')`
	// Where the source compares texts the words must be the text: no quotes, and
	// one blank between two.
	wordByWord = `size(wrapped) == 0 && !program.contains('/') && !args.command.matches(r'` + odd + `|["\x27\\]|\s\s')`
	noRedirect = `!args.command.matches(r'[<>]')`
)

// notAll is why an allow of every command is stricter.
const notAll = "it covers no command that can't be analysed or that could leave its boundary"

// start is where in a line a command can begin, and what may stand before it.
// It finds more places than there are: it is for asks and denies only.
const start = `(?:^|[;&|(){}\n\x60!"']|\b(?:then|do|else)\s)\s*(?:(?:\w+=\S*|time|timeout|nice|nohup|stdbuf|xargs|-\S+|\d\S*)\s+)*`

// end is where a command's words can end.
const end = `(?:$|[\s;&|(){}<>"'\x60\\])`

// goesOn is where the last word of an open prefix can end: before what is no
// letter, so that test means test:unit and rm doesn't mean rmdir.
const goesOn = `(?:$|[^\w-])`

// plainWords are the words of a command that means its text: no quotes,
// variables, globs or anything else that a shell reads as more than a letter.
func plainWords(s string) ([]string, bool) {
	words := strings.Fields(s)
	plain := len(words) > 0 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" ._-/:@%+,=", r))
	})
	return words, plain && !strings.Contains(words[0], "=") && !strings.ContainsAny(words[0], ":%")
}

// spaced is a text as a regular expression in which any space fits any space, also
// between words in quotes.
func spaced(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	return strings.Join(words, `["']?\s+["']?`)
}

// prefix carries a rule over commands that begin with some words, or returns why it
// can't. whole says that nothing may follow them, open that the last word may go on.
func (d *draft) prefix(s *source, line string, whole, open bool) (why string) {
	words, plain := plainWords(line)
	switch {
	case s.says == policy.Allow:
		return d.allowPrefix(s, words, plain, whole)
	case len(words) == 0:
		return "it names no command"
	}
	tail := end
	if open {
		tail = goesOn
	} else if whole {
		tail = `\s*(?:$|[;&|(){}\n"'\x60]|\d?[<>])`
	}
	if plain {
		m := &policy.CommandMatch{Program: []string{base(words[0])}, Prefix: words[1:]}
		if whole || open {
			joined := "^" + regexp.QuoteMeta(strings.Join(append([]string{base(words[0])}, words[1:]...), " "))
			if whole {
				joined += "$"
			} else {
				joined += goesOn
			}
			m = &policy.CommandMatch{Matches: joined}
		}
		var match []policy.Example
		if !hidden(words[0]) {
			match = example(strings.Join(words, " "))
		}
		d.add(s, policy.Match{Tool: exec, Command: m}, match, nil)
	}
	d.add(s, policy.Match{Tool: exec, Args: []policy.ArgMatch{{Path: "command", Matches: start + spaced(line) + tail}}}, argsExample(strings.Join(words, " ")), nil)
	if plain && hidden(words[0]) {
		d.add(s, policy.Match{Tool: exec, Args: []policy.ArgMatch{{Path: "argv.0", Matches: `(^|/)` + regexp.QuoteMeta(base(words[0])) + `$`}}}, nil, nil)
	}
	return ""
}

func (d *draft) allowPrefix(s *source, words []string, plain, whole bool) (why string) {
	switch {
	case !plain:
		return "its words mean more to a shell than they say"
	case strings.Contains(words[0], "/"):
		return "a program is allowed by its name, not by a path that the workspace could fill"
	case hidden(words[0]):
		return words[0] + " runs other programs, which are judged themselves"
	}
	line := strings.Join(words, " ")
	m := &policy.CommandMatch{Program: words[:1], Prefix: words[1:]}
	not := example("sudo " + line)
	if whole {
		m.Matches = "^" + regexp.QuoteMeta(line) + "$"
		not = append(not, example(line+" more")...)
	}
	match := example(line)
	if c := shell.Classify(line, place).Class; c.Rank() >= shell.EscapeAttempt.Rank() {
		match = nil
		s.why = append(s.why, "the command is "+string(c)+", which an allow doesn't cover")
	}
	d.add(s, policy.Match{Tool: exec, Command: m, If: asWritten}, match, not)
	return ""
}

var (
	exec  = []string{"exec"}
	place = shell.Options{Workspace: "/workspace", Dir: "/workspace", Home: "/home/user"}
)

func base(program string) string { return program[strings.LastIndexByte(program, '/')+1:] }

// hidden reports whether a program is seen through: its commands are judged, and
// no command of its name may be among them.
func hidden(program string) bool {
	for _, argv := range [][]string{{program, "true"}, {program, "5", "true"}, {program, "-c", "true"}, {program, "x", "true"}} {
		for _, c := range shell.ClassifyArgv(argv, place).Commands {
			if slices.ContainsFunc(c.Wrapped, func(w string) bool { return base(w) == base(program) }) {
				return true
			}
		}
	}
	return false
}

func example(line string) []policy.Example {
	return []policy.Example{{Command: line, Args: commandArgs(line)}}
}

func argsExample(line string) []policy.Example { return []policy.Example{{Args: commandArgs(line)}} }

func commandArgs(line string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(struct { // a text can always be written
		Command string `json:"command"`
	}{line})
	return bytes.TrimSpace(b.Bytes())
}

// pattern carries a rule over commands whose words fit a regular expression.
// allow is for one simple command, joined by blanks; text finds it in a line.
func (d *draft) pattern(s *source, joined, line string) {
	m := policy.Match{Tool: exec, Command: &policy.CommandMatch{Matches: joined}}
	if s.says == policy.Allow {
		m.If = wordByWord
	}
	if why := unfit(m); why != "" {
		d.drop(s, why)
		return
	}
	if s.says == policy.Allow {
		d.finish(s, m, nil, nil)
		return
	}
	inLine := policy.Match{Tool: exec, Args: []policy.ArgMatch{{Path: "command", Matches: line}}}
	if why := unfit(inLine); why != "" {
		d.drop(s, why)
		return
	}
	d.add(s, m, nil, nil)
	d.finish(s, inLine, nil, nil)
}

// unfit returns why rules can't hold a match, or nothing.
func unfit(m policy.Match) string {
	m.If = ""
	_, err := policy.Compile(policy.Document{Version: policy.FormatVersion, Rules: []policy.Rule{{ID: "x", Match: m, Verdict: policy.Deny}}})
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "rule x: ")
}

// otherRegexp finds what means one thing in JavaScript and another one in RE2.
var otherRegexp = match.Lazy(`\[:|\\[AzQEpPaCZ]|\\x\{|\\u|\\c|\(\?[imsUP-]|\[\^?\]|\\k<`)

// regexpOf checks a JavaScript regular expression that is held against JSON. It
// returns why it can't be carried over, or nothing.
func regexpOf(text string) string {
	if _, err := syntax.Parse(text, syntax.Perl); err != nil {
		return "its regular expression needs what RE2 hasn't (" + strings.TrimPrefix(err.Error(), "error parsing regexp: ") + ")"
	}
	switch {
	case otherRegexp.Get().MatchString(text):
		return "its regular expression means something else in RE2"
	case strings.Contains(text, `"`) || strings.Contains(text, `\\`):
		return "its regular expression looks at how JSON is spelled"
	}
	return ""
}

// alternates reports whether a regular expression has a | outside of groups.
func alternates(text string) bool {
	depth, class := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			return true
		}
	}
	return false
}
