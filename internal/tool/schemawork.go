package tool

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of what holding a value against a schema takes.
const (
	maxWork = 20_000    // schemas that the value itself is held against
	maxSum  = 200_000   // all that it consists of together
	maxHeld = 5_000_000 // a value with all its parts, each against some
)

// work finds out how much a schema makes of holding one value against it: the library
// follows references for as long as they lead on.
type work struct {
	names   map[string]*jsonschema.Schema   // by what references call them: BASE#POINTER, BASE#ANCHOR
	dynamic map[string][]*jsonschema.Schema // by dynamic anchor
	base    map[*jsonschema.Schema]*url.URL
	cost    map[*jsonschema.Schema]int // 0: it is being counted
	held    map[*jsonschema.Schema]map[*jsonschema.Schema]float64
}

// finite refuses a schema that would be followed for ever, or nearly, by whatever value. One
// that refers to itself for parts of a value isn't: values end. grows is not nil if it may
// hold a part against more schemas than the whole, so that what it takes is for each value
// to be seen.
func finite(root *jsonschema.Schema) (grows *work, err error) {
	w := &work{map[string]*jsonschema.Schema{}, map[string][]*jsonschema.Schema{}, map[*jsonschema.Schema]*url.URL{}, map[*jsonschema.Schema]int{}, map[*jsonschema.Schema]map[*jsonschema.Schema]float64{}}
	if err := w.name(root, &url.URL{}, nil); err != nil {
		return nil, err
	}
	sum := 0
	for s := range w.base {
		n, err := w.of(s)
		if err != nil {
			return nil, err
		}
		if sum += n; sum > maxSum {
			return nil, fmt.Errorf("the schema and its parts hold one value each against more than %d schemas", maxSum)
		}
	}
	for s := range w.base { // all of them: values are seen at the same time later
		n := 0.0
		for q, times := range w.against(s) {
			if hasParts(q) {
				n += times
			}
		}
		if n > 1 {
			grows = w
		}
	}
	return grows, nil
}

func hasParts(s *jsonschema.Schema) bool {
	return s.Items != nil || s.AdditionalItems != nil || s.Contains != nil || s.UnevaluatedItems != nil || s.AdditionalProperties != nil || s.UnevaluatedProperties != nil ||
		len(s.PrefixItems)+len(s.ItemsArray)+len(s.Properties)+len(s.PatternProperties) > 0
}

// against are the schemas that a value is held against with one, and how often.
func (w *work) against(s *jsonschema.Schema) map[*jsonschema.Schema]float64 {
	if w.held[s] == nil {
		all := map[*jsonschema.Schema]float64{s: 1}
		same, _ := w.same(s) //nolint:errcheck // it was read before
		for _, p := range same {
			for q, n := range w.against(p) {
				all[q] += n
			}
		}
		w.held[s] = all
	}
	return w.held[s]
}

// bears reports whether holding a value against some schemas, so often each, takes no more
// than is left.
func (w *work) bears(value any, schemas map[*jsonschema.Schema]float64, left *float64) bool {
	here := map[*jsonschema.Schema]float64{}
	for s, n := range schemas {
		for q, m := range w.against(s) {
			here[q] += n * m
		}
	}
	for _, n := range here {
		*left -= n
	}
	part := func(v any, of func(*jsonschema.Schema) []*jsonschema.Schema) bool {
		below := map[*jsonschema.Schema]float64{}
		for s, n := range here {
			for _, p := range of(s) {
				if p != nil {
					below[p] += n
				}
			}
		}
		*left -= float64(len(here))
		return *left >= 0 && (len(below) == 0 || w.bears(v, below, left))
	}
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			if !part(v, func(s *jsonschema.Schema) []*jsonschema.Schema {
				return append(slices.Collect(maps.Values(s.PatternProperties)), s.Properties[name], s.AdditionalProperties, s.UnevaluatedProperties)
			}) {
				return false
			}
		}
	case []any:
		for i, v := range value {
			if !part(v, func(s *jsonschema.Schema) []*jsonschema.Schema {
				all := []*jsonschema.Schema{s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems}
				for _, list := range [][]*jsonschema.Schema{s.PrefixItems, s.ItemsArray} {
					if i < len(list) {
						all = append(all, list[i])
					}
				}
				return all
			}) {
				return false
			}
		}
	}
	return *left >= 0
}

// name notes what references call a schema and those in it. at are its places so far.
func (w *work) name(s *jsonschema.Schema, base *url.URL, at []string) error {
	if s == nil {
		return nil
	}
	if s.ID != "" || at == nil {
		to, err := base.Parse(s.ID)
		if err != nil {
			return err
		}
		own := *to
		own.Fragment, own.RawFragment = "", ""
		base, at = &own, append(at, own.String()+"#")
	}
	w.base[s] = base
	for _, a := range at {
		w.names[a] = s
	}
	for _, anchor := range []string{s.Anchor, s.DynamicAnchor} {
		if anchor != "" {
			w.names[base.String()+"#"+anchor] = s
		}
	}
	if s.DynamicAnchor != "" {
		w.dynamic[s.DynamicAnchor] = append(w.dynamic[s.DynamicAnchor], s)
	}
	return eachPart(s, func(where string, p *jsonschema.Schema, _ bool) error {
		below := make([]string, len(at))
		for i, a := range at {
			below[i] = a + where
		}
		return w.name(p, base, below)
	})
}

// of is how many schemas a value is held against that is held against one.
func (w *work) of(s *jsonschema.Schema) (n int, err error) {
	if n, known := w.cost[s]; known && n == 0 {
		return 0, errors.New("the schema refers to itself for one and the same value")
	} else if known {
		return n, nil
	}
	w.cost[s], n = 0, 1
	add := func(p *jsonschema.Schema) error {
		m, err := w.of(p)
		if n += m; err == nil && n > maxWork {
			err = fmt.Errorf("the schema holds one value against more than %d schemas", maxWork)
		}
		return err
	}
	same, err := w.same(s)
	if err != nil {
		return 0, err
	}
	for _, p := range same {
		if err := add(p); err != nil {
			return 0, err
		}
	}
	w.cost[s] = n
	return n, nil
}

// same are the schemas that a value is held against because it is held against one.
func (w *work) same(s *jsonschema.Schema) (all []*jsonschema.Schema, err error) {
	eachPart(s, func(_ string, p *jsonschema.Schema, same bool) error { //nolint:errcheck // the function returns none
		if same && p != nil {
			all = append(all, p)
		}
		return nil
	})
	for _, ref := range []string{s.Ref, s.DynamicRef} {
		if ref == "" {
			continue
		}
		to, err := w.base[s].Parse(ref)
		if err != nil {
			return nil, err
		}
		name := to.Fragment
		to.Fragment, to.RawFragment = "", ""
		target := w.names[to.String()+"#"+name]
		if target == nil {
			return nil, fmt.Errorf("the schema refers to %s, which can't be followed", ref)
		}
		all = append(all, target)
		for _, p := range w.dynamic[name] {
			if ref == s.DynamicRef && p != target {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// eachPart visits the schemas that a schema consists of, with their places in it. same says
// that they are held against the value itself, and not against parts of it.
func eachPart(s *jsonschema.Schema, visit func(where string, p *jsonschema.Schema, same bool) error) error {
	for _, one := range []struct {
		where string
		p     *jsonschema.Schema
		same  bool
	}{
		{"not", s.Not, true}, {"if", s.If, true}, {"then", s.Then, true}, {"else", s.Else, true}, {"items", s.Items, false}, {"additionalItems", s.AdditionalItems, false}, {"contains", s.Contains, false},
		{"unevaluatedItems", s.UnevaluatedItems, false}, {"additionalProperties", s.AdditionalProperties, false}, {"propertyNames", s.PropertyNames, false},
		{"unevaluatedProperties", s.UnevaluatedProperties, false}, {"contentSchema", s.ContentSchema, false},
	} {
		if one.p != nil {
			if err := visit("/"+one.where, one.p, one.same); err != nil {
				return err
			}
		}
	}
	for _, list := range []struct {
		where string
		all   []*jsonschema.Schema
		same  bool
	}{{"allOf", s.AllOf, true}, {"anyOf", s.AnyOf, true}, {"oneOf", s.OneOf, true}, {"prefixItems", s.PrefixItems, false}, {"items", s.ItemsArray, false}} {
		for i, p := range list.all {
			if err := visit(fmt.Sprintf("/%s/%d", list.where, i), p, list.same); err != nil {
				return err
			}
		}
	}
	for _, named := range []struct {
		where string
		all   map[string]*jsonschema.Schema
		same  bool
	}{
		{"$defs", s.Defs, false}, {"definitions", s.Definitions, false}, {"properties", s.Properties, false}, {"patternProperties", s.PatternProperties, false},
		{"dependentSchemas", s.DependentSchemas, true}, {"dependencies", s.DependencySchemas, true},
	} {
		for name, p := range named.all {
			if err := visit("/"+named.where+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), p, named.same); err != nil {
				return err
			}
		}
	}
	return nil
}
