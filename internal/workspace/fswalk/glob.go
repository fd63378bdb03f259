package fswalk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxAlternatives bounds the alternatives of braces.
const maxAlternatives = 256

// Glob is a pattern for paths: * and ? within a name, [a-z] and [!a-z], ** for
// any number of folders, {a,b} for alternatives, \ before a character that
// means itself. A pattern without a slash is held against names, wherever they
// are; a slash at its beginning or inside ties it to the start.
type Glob struct {
	text string
	any  []pathPattern // one for each way to read the braces
}

// NewGlob reads a pattern.
func NewGlob(pattern string) (*Glob, error) {
	all, err := braces(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	g := &Glob{text: pattern}
	for _, one := range all {
		p, ok := readPattern(one, false)
		if !ok {
			return nil, fmt.Errorf("pattern %q: a [ isn't closed, or \\ is at the end", pattern)
		}
		g.any = append(g.any, p)
	}
	return g, nil
}

// String is the pattern as it was given.
func (g *Glob) String() string { return g.text }

// Match reports whether a path fits; it is relative to where the pattern counts from.
func (g *Glob) Match(p string) bool {
	return slices.ContainsFunc(g.any, func(one pathPattern) bool { return one.match(p) })
}

// Below reports whether something below a folder may fit.
func (g *Glob) Below(folder string) bool {
	return slices.ContainsFunc(g.any, func(one pathPattern) bool { return one.below(folder) })
}

// Hidden reports whether the pattern asks for names that begin with a dot.
func (g *Glob) Hidden() bool {
	return slices.ContainsFunc(g.any, func(one pathPattern) bool {
		return strings.HasPrefix(one.text, ".") || strings.Contains(one.text, "/.")
	})
}

var errBraces = errors.New("braces have too many alternatives")

// braces writes out the alternatives of braces. One that isn't closed means
// itself.
func braces(s string) ([]string, error) {
	open, shut, commas := findBraces(s)
	if shut < 0 {
		return []string{s}, nil
	}
	rest, err := braces(s[shut+1:])
	if err != nil {
		return nil, err
	}
	var all []string
	from := open + 1
	for _, to := range append(commas, shut) {
		middle, err := braces(s[from:to])
		if err != nil {
			return nil, err
		}
		for _, m := range middle {
			for _, r := range rest {
				if all = append(all, s[:open]+m+r); len(all) > maxAlternatives {
					return nil, errBraces
				}
			}
		}
		from = to + 1
	}
	return all, nil
}

// findBraces finds the first pair of braces with a comma in it.
func findBraces(s string) (open, shut int, commas []int) {
	for open = 0; open < len(s); open++ {
		switch s[open] {
		case '\\':
			open++
		case '{':
			if shut, commas = closing(s, open); shut >= 0 && len(commas) > 0 {
				return open, shut, commas
			}
			commas = nil
		}
	}
	return 0, -1, nil
}

func closing(s string, open int) (shut int, commas []int) {
	depth := 0
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				return i, commas
			}
		}
	}
	return -1, nil
}
