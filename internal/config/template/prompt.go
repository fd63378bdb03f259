package template

import (
	"strings"
)

// part is a piece of a prompt: text, a variable's value, or parts that are
// included only if a variable has a value that isn't false.
type part struct {
	text string
	name string // of a variable; empty: text
	unless,
	block bool
	inner []part
}

// tag is {{name}}, {{#name}}, {{^name}} or {{/name}}.
var tag = pattern(`\{\{([#^/]?)\s*([^{}]*?)\s*\}\}`)

// prompt checks the text and takes it apart.
func (p *parser) prompt(text string) {
	at := []any{"prompt"}
	if strings.TrimSpace(text) == "" {
		p.fail("prompt: what is to be done", at, "the template has no prompt")
		return
	}
	type open struct {
		name  string
		parts []part
	}
	stack := []open{{}}
	add := func(x part) { stack[len(stack)-1].parts = append(stack[len(stack)-1].parts, x) }
	used := map[string]bool{}
	from := 0
	for _, m := range tag().FindAllStringSubmatchIndex(text, -1) {
		add(part{text: text[from:m[0]]})
		from = m[1]
		sign, name := text[m[2]:m[3]], text[m[4]:m[5]]
		if p.t.variable(name) == nil {
			p.fail("declare it under variables, or write the braces in another way", at, "the prompt has {{%s%s}} and there is no such variable", sign, name)
			return
		}
		used[name] = true
		switch sign {
		case "":
			add(part{name: name})
		case "#", "^":
			stack = append(stack, open{name: sign + name})
		case "/":
			top := stack[len(stack)-1]
			if len(stack) == 1 || top.name[1:] != name {
				p.fail("close what was opened last", at, "{{/%s}} closes nothing", name)
				return
			}
			stack = stack[:len(stack)-1]
			add(part{name: name, block: true, unless: top.name[0] == '^', inner: top.parts})
		}
	}
	add(part{text: text[from:]})
	if len(stack) > 1 {
		name := stack[len(stack)-1].name
		p.fail("add {{/"+name[1:]+"}}", at, "{{%s}} is never closed", name)
		return
	}
	for _, v := range p.t.Variables {
		if !used[v.Name] {
			p.fail("use it or remove it", []any{"variables", v.Name}, "the prompt never uses %s", v.Name)
			return
		}
	}
	p.t.parts = stack[0].parts
}

func (t *Template) variable(name string) *Variable {
	for i := range t.Variables {
		if t.Variables[i].Name == name {
			return &t.Variables[i]
		}
	}
	return nil
}

// write renders parts.
func (t *Template) write(b *strings.Builder, parts []part, values map[string]string) {
	for _, x := range parts {
		v, has := values[x.name]
		switch {
		case x.name == "":
			b.WriteString(x.text)
		case x.block:
			if (has && v != "" && v != "false") != x.unless {
				t.write(b, x.inner, values)
			}
		case t.variable(x.name).Type == List:
			b.WriteString(points(v))
		default:
			b.WriteString(v)
		}
	}
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

var blank = pattern(`\n{3,}`)

// tidy takes out the empty lines that absent parts leave behind.
func tidy(s string) string { return strings.TrimSpace(blank().ReplaceAllString(s, "\n\n")) }
