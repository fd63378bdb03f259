package mcp

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Encode writes definitions as they are kept: by kind and name, so that equal ones are
// the same bytes.
func Encode(defs []Definition) ([]byte, error) {
	defs = slices.Clone(defs)
	slices.SortFunc(defs, func(a, b Definition) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return json.Marshal(defs)
}

// Decode reads what Encode wrote.
func Decode(content []byte) (defs []Definition, err error) {
	err = json.Unmarshal(content, &defs)
	return defs, err
}

// Compared are the definitions that a server was accepted with, held against those it
// was seen with.
type Compared struct {
	Offered []Definition // accepted, and still the same
	Pinned  []Definition // that count as accepted from now on: with tools that are new
	Changed []string     // names of tools and prompts that are defined otherwise, or gone
}

// Compare holds definitions against those that were accepted.
func Compare(accepted, seen []Definition) (c Compared) {
	find := func(defs []Definition, of Definition) *Definition {
		if i := slices.IndexFunc(defs, func(d Definition) bool { return d.Kind == of.Kind && d.Name == of.Name }); i >= 0 {
			return &defs[i]
		}
		return nil
	}
	for _, was := range accepted {
		c.Pinned = append(c.Pinned, was)
		if is := find(seen, was); is != nil && is.Digest() == was.Digest() {
			c.Offered = append(c.Offered, was)
		} else {
			c.Changed = append(c.Changed, was.Name)
		}
	}
	for _, is := range seen {
		if find(accepted, is) == nil {
			c.Pinned, c.Offered = append(c.Pinned, is), append(c.Offered, is)
		}
	}
	return c
}
