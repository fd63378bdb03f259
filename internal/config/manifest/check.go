package manifest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/secret"
)

// templates reads argv, stdin and recover.
func (r *reader) templates(c *Command) (err error) {
	if c.Argv, err = r.template(r.f.Argv, []any{"argv"}); err != nil {
		return err
	}
	if c.Stdin, err = r.text(r.f.Stdin, true, []any{"stdin"}); err != nil {
		return err
	}
	if r.f.Recover != nil {
		c.Recover, err = r.template(r.f.Recover.Argv, []any{"recover", "argv"})
	}
	return err
}

func (r *reader) template(list []any, at []any) (t Template, err error) {
	if len(list) == 0 {
		return nil, r.Fail(at, "%s is empty: there is nothing to run", at[len(at)-1]).WithHint("argv: [program, argument, \"{name}\"]")
	}
	guarded := false
	for i, x := range list {
		e, err := r.element(x, strictyaml.Under(at, i))
		if err != nil {
			return nil, err
		}
		e.guarded = guarded
		if len(e.words) == 1 && e.when == "" {
			if lit, ok := e.words[0].literal(); ok && lit == "--" && i > 0 {
				guarded = true
			}
		}
		t = append(t, e)
	}
	if prog, ok := t[0].words[0].literal(); !ok || prog == "" || t[0].when != "" || len(t[0].words) > 1 {
		return nil, r.Fail(strictyaml.Under(at, 0), "the program must be a plain text: no argument may choose it").WithHint("begin with the program's name or path")
	}
	return t, r.notCode(t, at)
}

// element is a text, a list of texts that come together, or {when, argv}.
func (r *reader) element(x any, at []any) (e element, err error) {
	words := []any{x}
	switch x := x.(type) {
	case []any:
		words = x
	case map[string]any:
		when, _ := x["when"].(string)
		inner, ok := x["argv"].([]any)
		if when == "" || !ok || len(x) != 2 {
			return e, r.Fail(at, "an object here is {when: ARGUMENT, argv: […]}")
		}
		if _, known := r.types[when]; !known {
			return e, r.unknown(when, at)
		}
		e.when, words = when, inner
		at = strictyaml.Under(at, "argv")
	}
	if len(words) == 0 {
		return e, r.Fail(at, "an empty list of words")
	}
	lists := 0
	for i, w := range words {
		here := at
		if len(words) > 1 || e.when != "" {
			here = strictyaml.Under(at, i)
		}
		s, ok := wordOf(w)
		if !ok {
			return e, r.Fail(here, "a word of the command line is a text").WithHint("write lists as one placeholder, {name}: it becomes one argument for each item")
		}
		t, err := r.text(s, false, here)
		if err != nil {
			return e, err
		}
		for _, name := range t.args() {
			if r.types[name].list {
				lists++
			}
		}
		if lists > 1 {
			return e, r.Fail(here, "two lists in one element").WithHint("give each a line of its own")
		}
		e.words = append(e.words, t)
	}
	return e, nil
}

// wordOf is a word as it is written: text, or a number that needs no quotes.
func wordOf(w any) (string, bool) {
	switch w := w.(type) {
	case string:
		return w, true
	case nil, bool, []any, map[string]any:
		return "", false
	default:
		return fmt.Sprint(w), true
	}
}

// text reads a text and holds its arguments against the schema.
func (r *reader) text(s string, whole bool, at []any) (Text, error) {
	t, err := parseText(s)
	if err != nil {
		return nil, r.Fail(at, "%v", err)
	}
	if strings.ContainsRune(s, 0) {
		return nil, r.Fail(at, "a NUL character")
	}
	for i, p := range t {
		switch a, known := r.types[p.arg]; {
		case p.arg == "":
		case p.arg == all && whole:
		case p.arg == all:
			return nil, r.Fail(at, "{*} is all arguments as JSON: it is allowed in stdin only").WithHint(`stdin: "{*}"`)
		case !known:
			return nil, r.unknown(p.arg, at)
		case a.kind == "object" || a.kind == "array":
			return nil, r.Fail(at, "argument %s is an object: no text of it can be made", p.arg).WithHint(`give the program all arguments as JSON: stdin: "{*}"`)
		case i == 1 && !whole && !a.closed && strings.Trim(t[0].text, "-") == "" && t[0].text != "":
			return nil, r.Fail(at, "argument %s would choose the option", p.arg).WithHint("list its values in the schema (enum), or write the option out")
		}
	}
	return t, nil
}

func (r *reader) unknown(name string, at []any) error {
	names := strings.Join(slices.Sorted(maps.Keys(r.types)), ", ")
	if names == "" {
		return r.Fail(at, "there is no argument %s: args declares none", name).WithHint("declare it under args, or write {{ for the character")
	}
	return r.Fail(at, "there is no argument %s; args has %s", name, names).WithHint("check the spelling, or declare it under args")
}

// evaluators are programs that run what follows an option as code.
var evaluators = map[string]string{
	"sh": "c", "bash": "c", "dash": "c", "zsh": "c", "ksh": "c", "ash": "c", "fish": "c", "busybox": "c", "pwsh": "c", "python": "c", "python2": "c", "python3": "c",
	"perl": "eE", "ruby": "e", "node": "ep", "deno": "", "php": "rBRE", "lua": "e", "osascript": "e",
}

// notCode refuses a template in which a value becomes code: sh -c "{x}" is the
// shell that a template does without.
func (r *reader) notCode(t Template, at []any) error {
	flags, evaluates, script := "", false, false
	for i, e := range t {
		for _, w := range e.words {
			lit, plain := w.literal()
			if script && !plain {
				return r.Fail(strictyaml.Under(at, i), "a value would become code of the program before it").WithHint(`write the code out and give values as arguments: [sh, -c, 'grep -e "$1" file', sh, "{pattern}"]`)
			}
			script = false
			if !plain {
				continue
			}
			if f, ok := evaluators[path.Base(lit)]; ok {
				flags, evaluates = f, true
			} else if lit == "--eval" || lit == "--command" || lit == "eval" {
				script = evaluates
			} else if flags != "" && len(lit) > 1 && lit[0] == '-' && lit[1] != '-' && strings.ContainsAny(lit[1:], flags) {
				script = true
			}
		}
	}
	return nil
}

// environment reads what the program gets to know.
func (r *reader) environment(c *Command) error {
	for i, name := range r.f.Env.Pass {
		if !match.Variable.Match(name) {
			return r.Fail([]any{"env", "pass", i}, "%q is not the name of a variable", name).WithHint("env: {pass: [HOME]}")
		}
	}
	c.Pass = r.f.Env.Pass
	for _, name := range slices.Sorted(maps.Keys(r.f.Env.Set)) {
		if !match.Variable.Match(name) {
			return r.Fail([]any{"env", "set", name}, "%q is not the name of a variable", name).WithHint("env: {set: {CI: \"1\"}}")
		}
		if secret.IsName(name) {
			return r.Fail([]any{"env", "set", name}, "%s is the name of a secret, and this file is no place for one", name).WithHint("set it in your environment and let it through: env: {pass: [%s]}", name)
		}
		t, err := r.text(r.f.Env.Set[name], true, []any{"env", "set", name})
		if err != nil {
			return err
		}
		if c.Set == nil {
			c.Set = map[string]Text{}
		}
		c.Set[name] = t
	}
	return nil
}

// safety holds dash against the schema, and looks for arguments that nothing uses.
func (r *reader) safety(c *Command) error {
	for i, name := range r.f.Dash {
		if _, ok := r.types[name]; !ok {
			return r.Fail([]any{"dash", i}, "there is no argument %s", name)
		}
	}
	c.Dash = r.f.Dash
	used := map[string]bool{r.f.Path: true}
	texts := []Text{c.Stdin}
	for _, e := range c.Argv {
		texts = append(texts, e.words...)
		used[e.when] = true
	}
	for _, t := range c.Set {
		texts = append(texts, t)
	}
	for _, t := range texts {
		for _, name := range t.args() {
			used[name] = true
		}
	}
	if used[all] {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.types)) {
		if !used[name] {
			return r.Fail([]any{"args", "properties", name}, "argument %s is declared and never used", name).WithHint("put {%s} into argv, stdin or env, or leave the argument out", name)
		}
	}
	return nil
}
