package catalog

import (
	_ "embed" // the data
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/model/price"
)

//go:embed models.json
var data []byte

// Bounds of what a file may say.
const (
	maxModels = 1000
	maxTokens = 1_000_000_000
	maxUSD    = 1_000_000 // for a million tokens
	maxName   = 200
)

const hint = "docs/models.md describes the form"

// sheet is the form of the data and of every file.
type sheet struct {
	Source string  `json:"source" yaml:"source"` // said for readers of the file
	Date   string  `json:"date" yaml:"date"`
	Models []entry `json:"models" yaml:"models"`
}

// entry is a model as it is written. What is absent stays as it is.
type entry struct {
	Provider   string      `json:"provider" yaml:"provider"`
	Model      string      `json:"model" yaml:"model"`
	Aliases    []string    `json:"aliases" yaml:"aliases"`
	Default    bool        `json:"default" yaml:"default"`
	Like       string      `json:"like" yaml:"like"`
	Context    int64       `json:"context" yaml:"context"`
	Output     int64       `json:"output" yaml:"output"`
	Abilities  []string    `json:"abilities" yaml:"abilities"`
	Vocabulary string      `json:"vocabulary" yaml:"vocabulary"`
	Factor     json.Number `json:"factor" yaml:"factor"`
	Images     string      `json:"images" yaml:"images"`
	USD        *usd        `json:"usd_per_million" yaml:"usd_per_million"`
}

// usd are prices as vendors print them: dollars for a million tokens.
type usd struct {
	Dollars `yaml:",inline"`
	Long    []long `json:"long" yaml:"long"`
	Until   string `json:"until" yaml:"until"`
	Next    *usd   `json:"next" yaml:"next"`
}

type long struct {
	Over    int64 `json:"over" yaml:"over"`
	Dollars `yaml:",inline"`
}

// Dollars are the prices of one kind of request. The reader of YAML wants the name of
// what is inlined exported.
type Dollars struct {
	Input      json.Number `json:"input" yaml:"input"`
	Output     json.Number `json:"output" yaml:"output"`
	CacheRead  json.Number `json:"cache_read" yaml:"cache_read"`
	CacheWrite json.Number `json:"cache_write" yaml:"cache_write"`
}

// embedded reads the program's own data. It takes encoding/json, which is ten
// times as fast as what gives mistakes their place; a test reads it both ways.
func embedded() (*Catalog, error) {
	var s sheet
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, belay.Errorf(belay.CodeInternal, "the embedded catalogue can't be read: %v", err)
	}
	c := &Catalog{date: s.Date, models: make([]Model, 0, len(s.Models))}
	at := place{Reader: &strictyaml.Reader{Text: strictyaml.Text{Name: "embedded " + s.Date, Code: belay.CodeInternal}}}
	for _, e := range s.Models {
		if err := c.take(e, at); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// read takes a file over what is known.
func (c *Catalog) read(f File) error {
	t := strictyaml.Text{Name: f.Name, Noun: "list of models", Code: belay.CodeBadConfig, Hint: hint}
	if len(strings.TrimSpace(string(f.Data))) == 0 {
		return nil
	}
	root, err := t.Document(f.Data)
	if err != nil {
		return err
	}
	if _, ok := root.(*ast.MappingNode); !ok {
		return t.ErrorAt(root, nil, "want the field models with a list of models")
	}
	var s sheet
	if err := t.Decode(root, &s); err != nil {
		return err
	}
	at := place{Reader: &strictyaml.Reader{Text: t, Root: root}}.in("models")
	if len(s.Models) > maxModels {
		return at.wrong("%d models; %d are the most", len(s.Models), maxModels).WithHint("keep those that you use")
	}
	seen := map[string]bool{}
	for i, e := range s.Models {
		if err := c.take(e, at.in(i)); err != nil {
			return err
		}
		key := strings.ToLower(e.Provider + "\n" + e.Model)
		if seen[key] {
			return at.in(i, "model").wrong("%s of %s is here twice", e.Model, e.Provider).WithHint("make one of the two")
		}
		seen[key] = true
	}
	return nil
}

// place is an entry or a part of it.
type place struct {
	*strictyaml.Reader
	path []any
}

func (p place) in(path ...any) place { return place{p.Reader, strictyaml.Under(p.path, path...)} }

func (p place) wrong(format string, args ...any) *belay.Error { return p.Fail(p.path, format, args...) }

// take puts an entry over the model of its name, or adds it.
func (c *Catalog) take(e entry, p place) error {
	if err := e.check(p); err != nil {
		return err
	}
	at := slices.IndexFunc(c.models, func(m Model) bool {
		return m.Provider == strings.ToLower(e.Provider) && strings.EqualFold(m.Name, e.Model)
	})
	m := Model{Provider: strings.ToLower(e.Provider), Name: e.Model, From: map[string]string{}}
	if at >= 0 {
		m = c.models[at]
		m.From = maps.Clone(m.From)
	}
	if e.Like != "" {
		like, ok := c.Lookup(e.Like)
		if !ok {
			return p.in("like").wrong("no model is called %q", e.Like).WithHint("belay models list has them; an entry can only be like one above it")
		}
		like.Provider, like.Name, like.Aliases, like.Default, like.Prices = m.Provider, m.Name, m.Aliases, m.Default, m.Prices
		delete(like.From, "aliases")
		delete(like.From, "default")
		m = like
	}
	if err := e.over(&m, p); err != nil {
		return err
	}
	if e.Default { // the last word replaces the one before
		for i := range c.models {
			c.models[i].Default = c.models[i].Default && c.models[i].Provider != m.Provider
		}
	}
	if at >= 0 {
		c.models[at] = m
	} else {
		c.models = append(c.models, m)
	}
	return nil
}

// over sets the fields that an entry has.
func (e entry) over(m *Model, p place) error {
	set := func(given bool, field, written string) bool {
		if given {
			m.From[field] = p.At(strictyaml.Under(p.path, written)...)
		}
		return given
	}
	if set(len(e.Aliases) > 0, "aliases", "aliases") {
		m.Aliases = e.Aliases
	}
	if set(e.Default, "default", "default") {
		m.Default = true
	}
	if set(e.Context > 0, "context", "context") {
		m.Context = e.Context
	}
	if set(e.Output > 0, "output", "output") {
		m.Output = e.Output
	}
	if set(e.Abilities != nil, "abilities", "abilities") {
		m.Abilities = make([]Ability, len(e.Abilities))
		for i, a := range e.Abilities {
			m.Abilities[i] = Ability(a)
		}
	}
	if set(e.Vocabulary != "", "vocabulary", "vocabulary") {
		m.Vocabulary = e.Vocabulary
	}
	if set(e.Factor != "", "factor", "factor") {
		m.Factor, _ = strconv.ParseFloat(string(e.Factor), 64) // checked
	}
	if set(e.Images != "", "images", "images") {
		m.Pictures = e.Images
	}
	if set(e.USD != nil, "prices", "usd_per_million") {
		prices, err := e.USD.prices(p.in("usd_per_million"))
		if err != nil {
			return err
		}
		m.Prices = prices
	}
	return nil
}

// check finds what is wrong with the fields but the prices.
func (e entry) check(p place) error {
	for _, f := range []struct{ name, value string }{{"provider", e.Provider}, {"model", e.Model}} {
		if f.value == "" || len(f.value) > maxName || strings.ContainsFunc(f.value, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return p.in(f.name).wrong("a model needs a %s: one word of at most %d bytes, have %q", f.name, maxName, short(f.value))
		}
	}
	for i, a := range e.Aliases {
		if a == "" || len(a) > maxName {
			return p.in("aliases", i).wrong("an alias is a name")
		}
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"context", e.Context}, {"output", e.Output}} {
		if f.value < 0 || f.value > maxTokens {
			return p.in(f.name).wrong("%d is no number of tokens: from 1 to %d", f.value, maxTokens).WithHint("leave it out if it isn't known")
		}
	}
	for i, a := range e.Abilities {
		if !slices.Contains(abilities, Ability(a)) {
			return p.in("abilities", i).wrong("there is no ability %q", short(a)).WithHint("%s", "one of "+words(abilities))
		}
	}
	if e.Vocabulary != "" && !slices.Contains(vocabularies, e.Vocabulary) {
		return p.in("vocabulary").wrong("there is no vocabulary %q", short(e.Vocabulary)).WithHint("%s", "one of "+words(vocabularies))
	}
	if e.Images != "" && !slices.Contains(pictureRules, e.Images) {
		return p.in("images").wrong("there is no rule %q for pictures", short(e.Images)).WithHint("%s", "one of "+words(pictureRules))
	}
	if e.Factor != "" {
		if f, err := strconv.ParseFloat(string(e.Factor), 64); err != nil || !(f >= 0.1 && f <= 10) {
			return p.in("factor").wrong("%q is no factor from 0.1 to 10", short(string(e.Factor)))
		}
	}
	return nil
}

func short(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

func words[T ~string](list []T) string {
	var b strings.Builder
	for i, w := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// prices are exact: dollars become millionths without a fraction in between.
func (u *usd) prices(p place) (*price.List, error) {
	r, err := u.rates(p)
	if err != nil {
		return nil, err
	}
	out := &price.List{Rates: r, Until: u.Until}
	last := int64(0)
	for i, l := range u.Long {
		if l.Over <= last || l.Over > maxTokens {
			return nil, p.in("long", i, "over").wrong("over is a number of tokens, and each is larger than the one before it; have %d", l.Over)
		}
		last = l.Over
		r, err := l.rates(p.in("long", i))
		if err != nil {
			return nil, err
		}
		out.Long = append(out.Long, price.Tier{Over: l.Over, Rates: r})
	}
	if _, err := time.Parse(time.DateOnly, u.Until); u.Until != "" && err != nil {
		return nil, p.in("until").wrong("%q is no day", short(u.Until)).WithHint("such as 2026-12-31, the last on which the prices hold")
	}
	if u.Next == nil {
		return out, nil
	}
	if u.Until == "" {
		return nil, p.in("next").wrong("next needs a last day before it").WithHint("add until: 2026-12-31")
	}
	if out.Next, err = u.Next.prices(p.in("next")); err != nil {
		return nil, err
	}
	if out.Next.Until != "" && out.Next.Until <= out.Until {
		return nil, p.in("next", "until").wrong("it ends on %s, before it begins", out.Next.Until)
	}
	return out, nil
}

func (d Dollars) rates(p place) (r price.Rates, err error) {
	for _, f := range []struct {
		name  string
		value json.Number
		must  bool
		to    func(int64)
	}{
		{"input", d.Input, true, func(v int64) { r.Input = v }},
		{"output", d.Output, true, func(v int64) { r.Output = v }},
		{"cache_read", d.CacheRead, false, func(v int64) { r.CacheRead = &v }},
		{"cache_write", d.CacheWrite, false, func(v int64) { r.CacheWrite = &v }},
	} {
		if f.value == "" && !f.must {
			continue
		}
		v, ok := micro(string(f.value))
		if !ok {
			return r, p.in(f.name).wrong("%s is dollars for a million tokens, such as 2.50; have %q", f.name, short(string(f.value))).WithHint("at most six digits behind the point; 0 if it costs nothing; leave usd_per_million out if it isn't known")
		}
		f.to(v)
	}
	return r, nil
}

// micro is a decimal number of dollars in millionths.
func micro(s string) (int64, bool) {
	if f, err := strconv.ParseFloat(s, 64); err == nil && strings.Contains(s, "e") { // how the reader of YAML writes a small number
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	whole, part, _ := strings.Cut(s, ".")
	if whole == "" || len(part) > 6 {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+part+strings.Repeat("0", 6-len(part)), 10, 63)
	return int64(n), err == nil && n <= maxUSD*1_000_000
}
