// Package catalog knows models: how much they read and write, what they can do,
// what they cost. It is data that the program carries, and files that people
// write over it. It promises that every value names where it comes from, that
// what isn't known is absent and never guessed, and that a mistake in a file
// names its line and column. It reads no file and reaches no network: the caller
// supplies the text.
//
// read.go reads files, lookup.go finds a model by the names it has; package
// budget says what a request costs.
package catalog

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/model/price"
)

// Ability is something that not every model can do. One that a model doesn't
// list is taken as missing.
type Ability string

const (
	Images     Ability = "images"            // takes pictures
	Files      Ability = "files"             // takes documents such as PDF
	ImagesOut  Ability = "images_out"        // answers with pictures
	Reasoning  Ability = "reasoning"         // thinks before it answers
	Parallel   Ability = "parallel_tools"    // several calls in an answer
	Structured Ability = "structured_output" // answers that fit a schema
	ForcedTool Ability = "forced_tool"       // can be made to call a certain tool
)

var abilities = []Ability{Images, Files, ImagesOut, Reasoning, Parallel, Structured, ForcedTool}

// Vocabularies and rules for pictures that package tokens counts by.
var (
	vocabularies = []string{"o200k_base", "cl100k_base"}
	pictureRules = []string{"patches32", "tiles512", "tiles512_mini", "patches28", "patches28_large", "flat1120", "tiles768"}
)

// Open is the provider of models whose weights are published. Any server may
// offer them; they have no price.
const Open = "open"

// Model is what is known of a model. A zero field is not known.
type Model struct {
	Provider   string      `json:"provider"`             // whose it is: openai, anthropic, google, open, or as a file says
	Name       string      `json:"model"`                // as its provider calls it
	Aliases    []string    `json:"aliases,omitempty"`    // other names of the same
	Default    bool        `json:"default,omitempty"`    // its provider's model where none is named; one of each provider at most
	Context    int64       `json:"context,omitempty"`    // tokens of a request and its answer together
	Output     int64       `json:"output,omitempty"`     // tokens of an answer at most
	Abilities  []Ability   `json:"abilities,omitempty"`  //
	Vocabulary string      `json:"vocabulary,omitempty"` // by which its tokens are counted
	Factor     float64     `json:"factor,omitempty"`     // its tokens by those of the vocabulary; 0 is 1
	Pictures   string      `json:"images,omitempty"`     // the rule by which pictures are counted
	Prices     *price.List `json:"prices,omitempty"`     // nil: what it costs is not known

	// From is the origin of each field, by its name above: "embedded", with the
	// date of the data, or file:line:column.
	From map[string]string `json:"from,omitempty"`
}

// Can reports whether a model is known to have an ability.
func (m Model) Can(a Ability) bool { return slices.Contains(m.Abilities, a) }

// Catalog is a set of models. It doesn't change, so it can be shared.
type Catalog struct {
	models []Model
	date   string
}

// File is a text that adds models or replaces fields of those there are.
type File struct {
	Name string // names it in errors and in Model.From
	Data []byte
}

// New is the embedded catalogue with files over it, the last with the last word.
// A mistake in a file is a belay.Error with CodeBadConfig and its line and column.
func New(files ...File) (*Catalog, error) {
	c, err := embedded()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := c.read(f); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Date is the day of the embedded data, such as 2026-11-21.
func (c *Catalog) Date() string { return c.date }

// Models are all models, those of a provider together, in the order of the data
// and then of the files. An empty provider is all of them.
func (c *Catalog) Models(provider string) []Model {
	var out []Model
	for _, p := range c.providers() {
		for _, m := range c.models {
			if m.Provider == p && (provider == "" || p == provider) {
				out = append(out, m)
			}
		}
	}
	return out
}

// Default is the model of a provider that is used where none is named. Not every
// provider has one.
func (c *Catalog) Default(provider string) (Model, bool) {
	i := slices.IndexFunc(c.models, func(m Model) bool { return m.Default && m.Provider == provider })
	if i < 0 {
		return Model{}, false
	}
	return c.models[i], true
}

func (c *Catalog) providers() []string {
	var out []string
	for _, m := range c.models {
		if !slices.Contains(out, m.Provider) {
			out = append(out, m.Provider)
		}
	}
	return out
}

// Show is the model that a person means by a name, with its prices: as a
// provider of the catalogue serves it, or as "provider/name" says. An error is a
// belay.Error with CodeNotFound that names some that are there.
func (c *Catalog) Show(name string) (Model, error) {
	provider, rest, named := strings.Cut(name, "/")
	if m := c.find(strings.ToLower(provider), strings.ToLower(rest)); named && m != nil {
		return *m, nil
	}
	for _, p := range c.providers() {
		if m := c.find(p, strings.ToLower(name)); m != nil {
			return *m, nil
		}
	}
	var names []string
	for _, p := range c.providers() {
		for _, m := range c.Models(p) {
			names = append(names, m.Name)
		}
	}
	return Model{}, belay.Errorf(belay.CodeNotFound, "the catalogue has no model %q", name).
		WithHint("%s", match.Hint(name, names, "belay models list; docs/models.md says how to add one"))
}
