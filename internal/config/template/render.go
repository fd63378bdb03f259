package template

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// maxValue bounds one value, in bytes.
const maxValue = 256 << 10

// Render fills the template. exists reports whether a path names a file of the
// workspace; nil takes every path. A missing, unknown or unfit value is a
// belay.Error with CodeUsage whose Where is the variable.
func (t *Template) Render(given map[string]string, exists func(path string) bool) (string, error) {
	for name := range given {
		if t.variable(name) == nil {
			return "", belay.Errorf(belay.CodeUsage, "the template %s has no variable %s", t.Name, name).At(name).WithHint("%s", t.usage())
		}
	}
	values := map[string]string{}
	for _, v := range t.Variables {
		s, ok := given[v.Name]
		switch {
		case !ok && v.Default != nil:
			s = *v.Default
		case !ok && v.Required:
			return "", belay.Errorf(belay.CodeUsage, "the template %s needs a value", t.Name).At(v.Name).WithHint("--var %s=VALUE; %s", v.Name, t.usage())
		case !ok:
			continue
		}
		if err := v.check(s, exists); err != nil {
			return "", belay.Errorf(belay.CodeUsage, "%s", err).At(v.Name).WithHint("%s", t.usage())
		}
		values[v.Name] = s
	}
	return t.fill(values), nil
}

// usage names the variables.
func (t *Template) usage() string {
	var names []string
	for _, v := range t.Variables {
		s := v.Name + ": " + v.Type
		if v.Required {
			s += ", required"
		}
		names = append(names, s)
	}
	if len(names) == 0 {
		return "it takes no variables"
	}
	return "its variables: " + strings.Join(names, "; ")
}

// check holds a value against the variable's type.
func (v *Variable) check(s string, exists func(string) bool) error {
	switch {
	case len(s) > maxValue:
		return fmt.Errorf("the value has %d bytes; %d are the most", len(s), maxValue)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return fmt.Errorf("the value is not UTF-8 text")
	case v.Required && strings.TrimSpace(s) == "":
		return fmt.Errorf("the value is empty")
	}
	switch v.Type {
	case Line, Choice, Path:
		if strings.ContainsAny(s, "\r\n") {
			return fmt.Errorf("the value has more than one line")
		}
	}
	switch v.Type {
	case Integer:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		return v.within(float64(n), s)
	case Number:
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Errorf("%q is not a number", s)
		}
		return v.within(n, s)
	case Boolean:
		if s != "true" && s != "false" {
			return fmt.Errorf("%q is neither true nor false", s)
		}
	case Choice:
		if !slices.Contains(v.Choices, s) {
			return fmt.Errorf("%q is none of %s", s, strings.Join(v.Choices, ", "))
		}
	case Path:
		if exists != nil && !exists(s) {
			return fmt.Errorf("%q is no file of the workspace", s)
		}
	}
	return nil
}

func (v *Variable) within(n float64, s string) error {
	if v.Min != nil && n < *v.Min || v.Max != nil && n > *v.Max {
		return fmt.Errorf("%s is not within %s", s, v.bounds())
	}
	return nil
}

func (v *Variable) bounds() string {
	b := ""
	if v.Min != nil {
		b = strconv.FormatFloat(*v.Min, 'g', -1, 64)
	}
	b += " … "
	if v.Max != nil {
		b += strconv.FormatFloat(*v.Max, 'g', -1, 64)
	}
	return strings.TrimSpace(b)
}
