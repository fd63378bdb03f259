package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/config/trust"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/tool"
)

// systemConfig is the configuration of a machine.
const systemConfig = "/etc/belay/belay.yaml"

// configName is the file's name in the folders of a person and a workspace.
const configName = "belay.yaml"

// maxConfig bounds a configuration file.
const maxConfig = 256 << 10

// given is one value and where it came from.
type given struct {
	value string
	list  []string
	from  string // a flag, a variable, file:line:column; empty: the default
}

// configFile is a configuration file that is there.
type configFile struct {
	manifest.File
	path   string
	counts bool // all of it: it is the user's or the machine's, or is trusted at its current content
}

// configFiles reads the configuration files of a workspace, the weakest first.
// They are read once per process: a run is decided by what was there.
func (a *app) configFiles(ctx context.Context, ws string) ([]configFile, error) {
	a.mu.Lock()
	files, ok := a.configs[ws]
	a.mu.Unlock()
	if ok {
		return files, nil
	}
	files, err := a.readConfigs(ctx, ws)
	a.mu.Lock()
	defer a.mu.Unlock()
	if was, ok := a.usable[ws]; ok && belay.CodeOf(err) == belay.CodeBadConfig { // a file that is being written mustn't stop a server
		return was, nil
	}
	if err != nil {
		return nil, err
	}
	if a.configs == nil {
		a.configs = map[string][]configFile{}
	}
	a.configs[ws] = files
	if a.held {
		if a.usable == nil {
			a.usable = map[string][]configFile{}
		}
		a.usable[ws] = files
	}
	return files, nil
}

// readConfigs reads the files of a workspace, the weakest first.
func (a *app) readConfigs(ctx context.Context, ws string) (files []configFile, err error) {
	paths := []string{systemConfig}
	if dir := a.configDir(); dir != "" {
		paths = append(paths, filepath.Join(dir, configName))
	}
	own := len(paths)
	if ws != "" {
		paths = append(paths, filepath.Join(ws, ".belay", configName))
	}
	for i, path := range paths {
		f, content, err := readConfig(path)
		if err != nil {
			return nil, err
		}
		if f.path == "" {
			continue
		}
		if f.counts = i < own; !f.counts && len(f.Settings)+len(f.Providers) > 0 {
			book, err := a.book(ctx)
			if err != nil {
				return nil, err
			}
			f.counts = a.trustOf(book, ws, ".belay/"+configName, content) == trust.Trusted
		}
		files = append(files, f)
	}
	return files, nil
}

// readConfig reads one file; one that isn't there has no path.
func readConfig(path string) (configFile, []byte, error) {
	b, err := readfile.UpTo(path, maxConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return configFile{}, nil, nil
	case err != nil:
		return configFile{}, nil, belay.Errorf(belay.CodeBadConfig, "it can't be read: %s", readfile.Reason(err)).At(path).WithHint("repair the file or move it away")
	}
	f, err := parseConfig(path, b)
	return configFile{File: f, path: path}, b, err
}

// parseConfig reads what a file says.
func parseConfig(path string, content []byte) (manifest.File, error) {
	known := manifest.Known{Lists: []string{"allow"}}
	for _, s := range (&Config{}).settings() {
		if !s.once {
			known.Names = append(known.Names, s.name())
		}
	}
	for _, p := range protocols {
		known.Protocols = append(known.Protocols, p.name)
	}
	return manifest.ReadConfig(path, content, known)
}

// layers are the settings of a place by name; the first that is set wins: flag,
// environment, workspace, user, machine. A workspace's file is untrusted until
// its content is confirmed: before that it may only narrow what the layers below
// it say; what would widen or redirect is ignored and reported.
type layers struct {
	set       map[string]given
	ignored   []given // value is what is ignored, list the reason
	providers []manifest.Provider
}

// layered collects the settings of a new session.
func (a *app) layered(ctx context.Context, c Config) (*layers, error) {
	l := &layers{set: map[string]given{}}
	ws, err := a.workspace()
	if err != nil {
		ws = "" // a command that needs one reports it
	}
	files, err := a.configFiles(ctx, ws)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		l.file(f)
	}
	l.environment(a, c)
	l.flags(c)
	return l, nil
}

// file takes what counts of a configuration file.
func (l *layers) file(f configFile) {
	var counts []manifest.Setting
	for _, s := range f.Settings {
		if !f.counts {
			if why := l.narrows(s); why != "" {
				l.ignored = append(l.ignored, given{value: s.Name, list: []string{why}, from: s.Where})
				continue
			}
		}
		counts = append(counts, s)
	}
	for _, s := range counts {
		if s.Name == "provider" {
			l.another(s.Value)
		}
	}
	for _, s := range counts {
		l.set[s.Name] = given{s.Value, s.List, s.Where}
	}
	for _, p := range f.Providers {
		if !f.counts {
			l.ignored = append(l.ignored, given{value: "provider " + p.Name, list: []string{untrusted}, from: p.Where})
			continue
		}
		l.providers = append(slices.DeleteFunc(l.providers, func(o manifest.Provider) bool { return o.Name == p.Name }), p)
	}
}

// another is called when a layer names a provider: the model and the address
// that weaker layers name belong to theirs. A key must not be sent to another
// provider's address.
func (l *layers) another(provider string) {
	if have := l.set["provider"].value; have != "" && have != provider {
		delete(l.set, "model")
		delete(l.set, "base-url")
	}
}

// environment takes the variables. A script given as a flag replaces the
// provider: environment and files don't count then.
func (l *layers) environment(a *app, c Config) {
	if v := a.Getenv("BELAY_PROVIDER"); v != "" && c.Script == "" && c.Provider == "" {
		l.another(v)
	}
	if c.Provider != "" {
		l.another(c.Provider)
	}
	if c.Script != "" || c.Provider != "" {
		delete(l.set, "provider")
	}
	for _, s := range c.settings() {
		v := a.Getenv(s.env)
		if v == "" || (c.Script != "" || c.Provider != "") && (s.flag == "--script" || s.flag == "--provider") {
			continue
		}
		if s.flag == "--script" && l.set["provider"].from != "BELAY_PROVIDER" {
			delete(l.set, "provider")
		}
		l.set[s.name()] = given{value: v, from: s.env}
	}
	if v := a.Getenv("BELAY_ALLOW"); v != "" {
		l.set["allow"] = given{list: strings.Split(v, ","), from: "BELAY_ALLOW"}
	}
}

func (l *layers) flags(c Config) {
	for _, s := range c.settings() {
		if *s.value != "" {
			l.set[s.name()] = given{value: *s.value, from: s.flag}
		}
	}
	if len(c.Allow) > 0 {
		l.set["allow"] = given{list: c.Allow, from: "--allow"}
	}
}

// config is what the layers say, and where an error in it would be.
func (l *layers) config() (Config, map[string]string) {
	var c Config
	origin := map[string]string{}
	for _, s := range c.settings() {
		if v, ok := l.set[s.name()]; ok {
			*s.value = v.value
			origin[s.flag] = v.from
		}
	}
	if v, ok := l.set["allow"]; ok {
		c.Allow = v.list
		origin["--allow"] = v.from
	}
	return c, origin
}

// wider lists, for each mode, those that allow at least as much. Modes of which
// neither is in the other's list can't be compared.
var wider = map[belay.Mode][]belay.Mode{
	belay.ModePlan:        belay.Modes,
	belay.ModeNever:       {belay.ModeNever, belay.ModeDefault, belay.ModeAcceptEdits, belay.ModeAuto, belay.ModeOnRequest, belay.ModeOnFailure, belay.ModeBypass},
	belay.ModeUntrusted:   {belay.ModeUntrusted, belay.ModeDefault, belay.ModeAcceptEdits, belay.ModeAuto, belay.ModeOnRequest, belay.ModeOnFailure, belay.ModeBypass},
	belay.ModeDefault:     {belay.ModeDefault, belay.ModeAcceptEdits, belay.ModeAuto, belay.ModeOnRequest, belay.ModeOnFailure, belay.ModeBypass},
	belay.ModeAcceptEdits: {belay.ModeAcceptEdits, belay.ModeAuto, belay.ModeOnRequest, belay.ModeOnFailure, belay.ModeBypass},
	belay.ModeOnRequest:   {belay.ModeOnRequest, belay.ModeOnFailure, belay.ModeBypass},
	belay.ModeOnFailure:   {belay.ModeOnFailure, belay.ModeBypass},
	belay.ModeAuto:        {belay.ModeAuto, belay.ModeBypass},
	belay.ModeBypass:      {belay.ModeBypass},
}

// untrusted is why a value of a workspace's file doesn't count.
const untrusted = "it would widen or redirect settings, and the file isn't trusted (belay trust)"

// narrows returns why a value of a workspace's file doesn't count; empty: it
// narrows what is set without it.
func (l *layers) narrows(s manifest.Setting) string {
	narrower := false
	have := l.set[s.Name].value
	switch s.Name {
	case "mode":
		narrower = slices.Contains(wider[belay.Mode(s.Value)], belay.Mode(cmp.Or(have, string(belay.ModeDefault))))
	case "max-steps":
		narrower = fewer(s.Value, cmp.Or(have, strconv.Itoa(belay.DefaultLimits.Steps)))
	case "max-calls":
		narrower = fewer(s.Value, cmp.Or(have, strconv.Itoa(belay.DefaultLimits.Calls)))
	case "max-time":
		narrower = shorter(s.Value, cmp.Or(have, belay.DefaultLimits.Time.String()))
	case "ask-timeout":
		narrower = shorter(s.Value, cmp.Or(have, "24h"))
	case "approvals":
		narrower = s.Value == string(belay.ApprovalsDeny)
	case "completion":
		narrower = s.Value == string(belay.CompletionRequired)
	case "tools":
		narrower = tool.Narrows(strings.Split(s.Value, ","), strings.Split(have, ","))
	case "effort":
		narrower = s.Value == "low"
	case "instructions":
		narrower = s.Value == "none"
	case "boundary":
		narrower = narrowsBoundary(s.Value, have)
	case "queue", "queue-cap", "queue-drop":
		narrower = l.narrowsQueue(s.Name, s.Value)
	}
	if narrower {
		return ""
	}
	return untrusted
}

// fewer reports whether a limit is at most another; 0 is none.
func fewer(a, b string) bool {
	x, errA := strconv.Atoi(a)
	y, errB := strconv.Atoi(b)
	return errA == nil && errB == nil && x > 0 && (y == 0 || x <= y)
}

// shorter is fewer for lengths of time.
func shorter(a, b string) bool {
	x, errA := time.ParseDuration(a)
	y, errB := time.ParseDuration(b)
	return errA == nil && x > 0 && (b == "0" || errB == nil && (y == 0 || x <= y))
}
