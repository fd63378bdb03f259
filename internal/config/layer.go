package config

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/core/budget"
	"github.com/belay-run/belay/internal/policy"
)

// configName is the file's name in the folders of the machine, a person and a
// workspace.
const configName = "belay.yaml"

// maxConfig bounds a configuration file.
const maxConfig = 256 << 10

// file is a configuration file that is there.
type file struct {
	manifest.File
	path   string
	inside bool // the workspace
	counts bool // all of it: it is the user's or the machine's, or is trusted at its current content
}

// readFiles reads the configuration files, the weakest first.
func (in Input) readFiles(ctx context.Context) (files []file, err error) {
	paths := []string{filepath.Join(systemDir, configName)}
	if dir := in.ConfigDir(); dir != "" {
		paths = append(paths, filepath.Join(dir, configName))
	}
	own := len(paths)
	if in.Workspace != "" {
		paths = append(paths, filepath.Join(in.Workspace, ".belay", configName))
	}
	for i, path := range paths {
		content, err := contentOf(path, maxConfig, belay.CodeBadConfig)
		if err != nil {
			return nil, err
		}
		if content == nil {
			continue
		}
		f := file{path: path, inside: i >= own, counts: i < own}
		if f.File, err = parseFile(path, content); err != nil {
			return nil, err
		}
		if !f.counts && len(f.Settings)+len(f.Providers)+len(f.Servers) > 0 {
			standing, err := in.standing(ctx, ".belay/"+configName, content)
			if err != nil {
				return nil, err
			}
			f.counts = standing == Trusted
		}
		files = append(files, f)
	}
	return files, in.redact(files)
}

// parseFile reads what a configuration file says.
func parseFile(path string, content []byte) (manifest.File, error) {
	known := manifest.Known{Protocols: Protocols()}
	for _, s := range settings {
		switch {
		case s.Once:
		case s.List:
			known.Lists = append(known.Lists, s.Name)
		default:
			known.Names = append(known.Names, s.Name)
		}
	}
	return manifest.ReadConfig(path, content, known)
}

// Entry is something that a file says.
type Entry struct {
	Name string // its kind and its name
	Text string // of any length
}

// Describe lists what counts when a file of a workspace is trusted. A file with a
// mistake is an error.
func Describe(path string, content []byte) (all []Entry, err error) {
	switch {
	case filepath.Base(path) == agentfile.SkillFile:
		s := agentfile.ParseSkill(path, content)
		all = append(all, Entry{"skill " + s.Name, cmp.Or(s.Description, "it may be read by its name")})
	case strings.Contains(filepath.ToSlash(path), "/agents/"):
		a := agentfile.Parse(path, content)
		for _, f := range a.Findings {
			if f.Level == agentfile.Error {
				return nil, belay.Errorf(belay.CodeBadManifest, "%s", f.Message).At(f.Where).WithHint("%s", f.Hint)
			}
		}
		all = append(all, Entry{"agent " + a.Title(), cmp.Or(a.Description, "it may be started by its name")})
	case filepath.Base(filepath.Dir(path)) == manifestDir:
		tools, err := manifest.Parse(path, content)
		if err != nil {
			return nil, err
		}
		for _, c := range tools {
			all = append(all, Entry{"tool " + c.Spec.Name, c.Argv.String()})
		}
	case filepath.Base(path) == serversFile:
		servers, err := manifest.ReadServers(path, content)
		if err != nil {
			return nil, err
		}
		all = describeServers(servers)
	case filepath.Base(path) == policyName:
		var l rulefile.Layers
		if err := l.Add(path, content, policy.TierWorkspace, false); err != nil {
			return nil, err
		}
		for _, i := range l.Ignored() {
			all = append(all, Entry{i.What, "it widens permissions"})
		}
	case filepath.Base(path) == configName:
		c, err := parseFile(path, content)
		if err != nil {
			return nil, err
		}
		for _, s := range c.Settings {
			all = append(all, Entry{"setting " + s.Name, s.Value + strings.Join(s.List, ", ")})
		}
		for _, p := range c.Providers {
			all = append(all, Entry{"provider " + p.Name, ServiceOf(p).String()})
		}
		all = append(all, describeServers(c.Servers)...)
	}
	return all, nil
}

// Given are settings as somebody gave them, by name: one text, several of a list,
// any of a setting that is on.
type Given map[string][]string

// Get is the text of a setting; empty: it isn't given.
func (g Given) Get(name string) string {
	if len(g[name]) == 0 {
		return ""
	}
	return g[name][0]
}

// GivenIn reads the settings of a request over HTTP.
func GivenIn(request []byte) (Given, error) {
	var fields map[string]any
	if err := json.Unmarshal(request, &fields); err != nil {
		return nil, err
	}
	g := Given{}
	for _, s := range settings {
		switch v := fields[s.JSON].(type) {
		case string:
			g[s.Name] = []string{v}
		case bool:
			if v {
				g[s.Name] = []string{"true"}
			}
		case []any:
			for _, x := range v {
				if text, ok := x.(string); ok {
					g[s.Name] = append(g[s.Name], text)
				}
			}
		}
	}
	return g, nil
}

// Where a value comes from.
const (
	FromDefault     = "default"
	FromFile        = "file"
	FromEnvironment = "environment"
	FromFlag        = "flag"
)

// given is one value and where it came from.
type given struct {
	text   string
	list   []string
	source string
	from   string // a flag, a variable, file:line:column
}

// Layers are the settings of a place by name; the first that is set wins: flag,
// environment, workspace, user, machine. A workspace's file is untrusted until
// its content is confirmed: before that it may only narrow what the layers below
// it say; what would widen or redirect is ignored.
type Layers struct {
	w         *Workspace
	set       map[string]given
	ignored   []Ignored
	providers []manifest.Provider
}

// Layers lays the settings of a new session over each other: those of files, of
// the environment, and those that are given.
func (w *Workspace) Layers(g Given) (*Layers, error) {
	if w.filesErr != nil {
		return nil, w.filesErr
	}
	l := &Layers{w: w, set: map[string]given{}}
	for _, f := range w.files {
		l.file(f)
	}
	l.environment(w.in, g)
	l.given(g)
	return l, nil
}

// Ignored is what files say that doesn't count.
func (l *Layers) Ignored() []Ignored { return l.ignored }

// Set puts a value over all others; an empty one takes them away.
func (l *Layers) Set(name, value string) {
	delete(l.set, name)
	if value != "" {
		l.set[name] = given{text: value}
	}
}

// file takes what counts of a configuration file.
func (l *Layers) file(f file) {
	var counts []manifest.Setting
	for _, s := range f.Settings {
		row, have := setting(s.Name), l.set[s.Name].text
		narrows := f.counts
		switch {
		case row.Own && f.inside:
			l.ignored = append(l.ignored, Ignored{Where: s.Where, What: s.Name, Why: "only the user's file and the machine's set it"})
			continue
		case narrows:
		case row.least != nil:
			s.Value = row.least(s.Value, have)
			narrows = s.Value != ""
		default:
			narrows = row.narrows != nil && row.narrows(l, s.Value, cmp.Or(have, row.Default))
		}
		if !narrows {
			l.ignored = append(l.ignored, Ignored{Where: s.Where, What: s.Name, Why: untrusted})
			continue
		}
		counts = append(counts, s)
	}
	for _, s := range counts {
		if s.Name == "provider" {
			l.another(s.Value)
		}
	}
	for _, s := range counts {
		l.set[s.Name] = given{s.Value, s.List, FromFile, s.Where}
	}
	if f.inside && len(f.Quotas) > 0 {
		l.ignored = append(l.ignored, Ignored{Where: f.Quotas[0].Where, What: "quotas", Why: "only the user's file and the machine's have quotas"})
	}
	if f.inside && f.Redact.Where != "" {
		l.ignored = append(l.ignored, Ignored{Where: f.Redact.Where, What: "redact", Why: "only the user's file and the machine's say what isn't redacted"})
	}
	for _, p := range f.Providers {
		if !f.counts {
			l.ignored = append(l.ignored, Ignored{Where: p.Where, What: "provider " + p.Name, Why: untrusted})
			continue
		}
		l.providers = append(slices.DeleteFunc(l.providers, func(o manifest.Provider) bool { return o.Name == p.Name }), p)
	}
}

// another is called when a layer names a provider: the model and the address
// that weaker layers name belong to theirs. A key must not be sent to another
// provider's address.
func (l *Layers) another(provider string) {
	if have := l.set["provider"].text; have != "" && have != provider {
		delete(l.set, "model")
		delete(l.set, "base-url")
	}
}

// environment takes the variables. A script that is given replaces the provider:
// environment and files don't count then.
func (l *Layers) environment(e Input, g Given) {
	script, provider := g.Get("script"), g.Get("provider")
	if v := e.Get("BELAY_PROVIDER"); v != "" && script == "" && provider == "" {
		l.another(v)
	}
	if provider != "" {
		l.another(provider)
	}
	if script != "" || provider != "" {
		delete(l.set, "provider")
	}
	for _, s := range settings {
		v := e.Get(s.Env())
		if v == "" || s.Switch() || s.Own || (script != "" || provider != "") && (s.Name == "script" || s.Name == "provider") {
			continue
		}
		if s.Name == "script" && l.set["provider"].from != "BELAY_PROVIDER" {
			delete(l.set, "provider")
		}
		set := given{text: v, source: FromEnvironment, from: s.Env()}
		if s.List {
			set.text, set.list = "", strings.Split(v, ",")
		}
		l.set[s.Name] = set
	}
}

// given takes what was given.
func (l *Layers) given(g Given) {
	for _, s := range settings {
		set := given{text: g.Get(s.Name), source: FromFlag, from: "--" + s.Name}
		if s.List {
			set.text, set.list = "", g[s.Name]
		}
		if set.text != "" || len(set.list) > 0 {
			l.set[s.Name] = set
		}
	}
}

// Row is a setting as it counts, as JSON.
type Row struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // flag, environment, file, default
	From   string `json:"from,omitempty"`
}

// CheckedRows are the rows of the settings that count.
func (l *Layers) CheckedRows() ([]Row, error) {
	s, err := l.Unmodelled()
	return l.Rows(s), err
}

// Unmodelled is Checked for what needs no model: a provider or its key may be missing.
func (l *Layers) Unmodelled() (Settings, error) {
	s, err := l.Checked()
	switch belay.CodeOf(err) {
	case belay.CodeNoProvider, belay.CodeNoKey, belay.CodeBadSecrets:
		err = nil
	}
	return s, err
}

// Rows lists every setting that has a source, with the value that counts.
func (l *Layers) Rows(s Settings) []Row {
	var rows []Row
	for _, row := range settings {
		if row.Switch() {
			continue
		}
		v := l.set[row.Name]
		r := Row{row.Name, v.text, cmp.Or(v.source, FromDefault), v.from}
		if row.show != nil {
			r.Value = row.show(&s)
		}
		if row.Name == "base-url" && r.From == "" && s.baseFrom != "" {
			r.From, r.Source = s.baseFrom, FromEnvironment
		}
		rows = append(rows, r)
	}
	for _, p := range l.providers {
		rows = append(rows, Row{"providers." + p.Name, ServiceOf(p).String(), FromFile, p.Where})
	}
	return rows
}

// untrusted is why a value of a workspace's file doesn't count.
const untrusted = "it would widen or redirect settings, and the file isn't trusted (belay trust)"

// narrowsBoundary reports whether a boundary allows no more than what is set
// without it, by its name alone.
func narrowsBoundary(_ *Layers, name, have string) bool {
	return name == belay.BoundaryReadOnly || name == belay.BoundaryWorkspace && have == belay.BoundaryFull
}

// narrowsQueueCap: of what a file may say about turns that wait only what refuses
// more of those that come counts. It can't choose to end, join or take back a turn
// that was accepted, and with another policy fewer places end more of them.
func narrowsQueueCap(l *Layers, v, have string) bool {
	drop := cmp.Or(l.set["queue-drop"].text, string(belay.DropNew))
	return drop == string(belay.DropNew) && fewer(l, v, have)
}

// fewer reports whether a limit is at most another; 0 is none.
func fewer(_ *Layers, a, b string) bool {
	x, errA := strconv.Atoi(a)
	y, errB := strconv.Atoi(b)
	return errA == nil && errB == nil && x > 0 && (y == 0 || x <= y)
}

// least is the smaller one of two limits by kind, so that none is raised or goes;
// empty: that is what there is.
func least(v, have string) string {
	l, err := budget.Parse(v)
	if err != nil || l.Raise {
		return ""
	}
	old, err := budget.Parse(have)
	if err != nil { // there is none, or what there is will be refused
		return v
	}
	for _, k := range belay.BudgetKinds() {
		switch n, was := l.Of(k), *old.Of(k); {
		case *n == 0:
			*n = was
		case was > 0:
			*n = min(*n, was)
		}
	}
	if l.Amounts == old.Amounts {
		return ""
	}
	return l.String()
}

// shorter is fewer for lengths of time.
func shorter(_ *Layers, a, b string) bool {
	x, errA := time.ParseDuration(a)
	y, errB := time.ParseDuration(b)
	return errA == nil && x > 0 && (b == "0" || errB == nil && (y == 0 || x <= y))
}
