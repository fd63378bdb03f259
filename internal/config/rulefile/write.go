package rulefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
)

// Write is rules as a file that can be pasted: reading it gives the same rules
// again, but for tier and place, which are the file's.
func Write(rules []policy.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: %d\nrules:\n", policy.FormatVersion)
	b.WriteString(WriteRules(rules))
	return b.String()
}

// WriteRules is Write without the head: the entries of a file's list of rules.
func WriteRules(rules []policy.Rule) string {
	var b strings.Builder
	for i := range rules {
		writeRule(&b, &rules[i])
	}
	return b.String()
}

func writeRule(b *strings.Builder, r *policy.Rule) {
	fmt.Fprintf(b, "  - id: %s\n", scalar(r.ID))
	if r.Priority != 0 {
		fmt.Fprintf(b, "    priority: %d\n", r.Priority)
	}
	fmt.Fprintf(b, "    verdict: %s\n", r.Verdict)
	for _, f := range []struct{ name, value string }{{"reason", r.Reason}, {"code", r.Code}, {"hint", r.Hint}, {"boundary", r.Boundary}, {"degrade", string(r.Degrade)}} {
		if f.value != "" {
			fmt.Fprintf(b, "    %s: %s\n", f.name, scalar(f.value))
		}
	}
	if len(r.Tags) > 0 {
		fmt.Fprintf(b, "    tags: %s\n", list(reflect.ValueOf(r.Tags)))
	}
	if when := flow(reflect.ValueOf(r.Match)); when != "{}" {
		fmt.Fprintf(b, "    when: %s\n", when)
	}
	writeExamples(b, "examples", r.Examples.Match)
	writeExamples(b, "not_examples", r.Examples.NoMatch)
}

func writeExamples(b *strings.Builder, name string, examples []policy.Example) {
	if len(examples) == 0 {
		return
	}
	fmt.Fprintf(b, "    %s:\n", name)
	for i := range examples {
		fmt.Fprintf(b, "      - %s\n", flow(reflect.ValueOf(examples[i])))
	}
}

// flow is a struct as a mapping on one line, of the fields that are set.
func flow(v reflect.Value) string {
	var entries []string
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag
		if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
			continue
		}
		name := tag.Get("yaml")
		if name == "" || name == "-" { // what isn't read by its tag has the same name all the same
			name, _, _ = strings.Cut(tag.Get("json"), ",")
		}
		entries = append(entries, name+": "+value(f))
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

func value(v reflect.Value) string {
	switch kind := v.Kind(); {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		return string(bytes.TrimSpace(v.Bytes()))
	case kind == reflect.String:
		return scalar(v.String())
	case kind == reflect.Struct:
		return flow(v)
	case kind == reflect.Pointer && v.Elem().Kind() == reflect.Struct:
		return flow(v.Elem())
	case kind == reflect.Slice && v.Len() == 1 && v.Index(0).Kind() == reflect.String:
		return value(v.Index(0)) // a list of one may be written as a word
	case kind == reflect.Slice:
		return list(v)
	}
	return encoded(v.Interface())
}

func list(v reflect.Value) string {
	out := make([]string, v.Len())
	for i := range out {
		out[i] = value(v.Index(i))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// bare is what YAML reads as the same text without quotes, wherever it stands.
var bare = match.Lazy(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// scalar is a text as YAML: JSON's form is one that both agree on.
func scalar(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return encoded(s)
	}
	if bare.Match(s) {
		return s
	}
	return encoded(s)
}

func encoded(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return `""` // no value of a rule is one that JSON can't hold
	}
	return strings.TrimSpace(b.String())
}
