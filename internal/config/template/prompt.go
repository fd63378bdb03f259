package template

import (
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
)

// piece is a piece of a prompt: text, and the tag behind it, if there is one. A
// tag is a variable's value, or begins or ends what is included only if a
// variable has a value that isn't false.
type piece struct {
	text string
	sign string // # ^ / or empty
	name string // of a variable; empty: there is no tag
}

// tag is {{name}}, {{#name}}, {{^name}} or {{/name}}.
var tag = match.Lazy(`\{\{([#^/]?)\s*([^{}]*?)\s*\}\}`)

// split takes a prompt apart.
func split(text string) []piece {
	var out []piece
	from := 0
	for _, m := range tag.Get().FindAllStringSubmatchIndex(text, -1) {
		out = append(out, piece{text[from:m[0]], text[m[2]:m[3]], text[m[4]:m[5]]})
		from = m[1]
	}
	return append(out, piece{text: text[from:]})
}

// prompt checks the text and takes it apart.
func (p *parser) prompt(text string) {
	at := []any{"prompt"}
	if strings.TrimSpace(text) == "" {
		p.Fail(at, "the template has no prompt").WithHint("prompt: what is to be done")
		return
	}
	p.t.prompt = split(text)
	var open []piece
	used := map[string]bool{}
	for _, x := range p.t.prompt[:len(p.t.prompt)-1] {
		if p.t.variable(x.name) == nil {
			p.Fail(at, "the prompt has {{%s%s}} and there is no such variable", x.sign, x.name).WithHint("declare it under variables, or write the braces in another way")
			return
		}
		used[x.name] = true
		n := len(open)
		switch {
		case x.sign == "#" || x.sign == "^":
			open = append(open, x)
		case x.sign == "/" && (n == 0 || open[n-1].name != x.name):
			p.Fail(at, "{{/%s}} closes nothing", x.name).WithHint("close what was opened last")
			return
		case x.sign == "/":
			open = open[:n-1]
		}
	}
	if n := len(open); n > 0 {
		p.Fail(at, "{{%s%s}} is never closed", open[n-1].sign, open[n-1].name).WithHint("add {{/%s}}", open[n-1].name)
		return
	}
	for _, v := range p.t.Variables {
		if !used[v.Name] {
			p.Fail([]any{"variables", v.Name}, "the prompt never uses %s", v.Name).WithHint("use it or remove it")
			return
		}
	}
}

func (t *Template) variable(name string) *Variable {
	for i := range t.Variables {
		if t.Variables[i].Name == name {
			return &t.Variables[i]
		}
	}
	return nil
}

// fill writes the prompt with values.
func (t *Template) fill(values map[string]string) string {
	var b strings.Builder
	out := 0 // how many blocks are open from the first one that is left out
	for _, x := range t.prompt {
		if out == 0 {
			b.WriteString(x.text)
		}
		v := values[x.name]
		no := v == "" || v == "false"
		switch {
		case x.sign == "/":
			out = max(out-1, 0)
		case x.sign != "" && (out > 0 || no == (x.sign == "#")):
			out++
		case x.sign != "" || x.name == "" || out > 0:
		case t.variable(x.name).Type == List:
			b.WriteString(points(v))
		default:
			b.WriteString(v)
		}
	}
	return tidy(b.String())
}

// points is a list's lines as points.
func points(s string) string {
	var lines []string
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, "- "+l)
		}
	}
	return strings.Join(lines, "\n")
}

var blank = match.Lazy(`\n{3,}`)

// tidy takes out the empty lines that absent parts leave behind.
func tidy(s string) string { return strings.TrimSpace(blank.Get().ReplaceAllString(s, "\n\n")) }
