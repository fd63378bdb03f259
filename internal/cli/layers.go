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
	"github.com/belay-run/belay/internal/manifest"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/trust"
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

// layers are the settings of a place by name, the first that is set: flag,
// environment, workspace, person, machine. A workspace's file is a stranger's
// until somebody trusts it: it may narrow what the layers below it say, and what
// would widen or redirect is ignored and named.
type layers struct {
	set     map[string]given
	ignored []given // value is what is ignored, list the reason
	files   []string
	trusts  func(path string, content []byte) (bool, error) // whether a workspace's file counts as it is
}

// layered collects the settings of a new session.
func (a *app) layered(ctx context.Context, c Config) (*layers, error) {
	l := &layers{set: map[string]given{}}
	if err := l.file(systemConfig, nil); err != nil {
		return nil, err
	}
	if dir := a.configDir(); dir != "" {
		if err := l.file(filepath.Join(dir, configName), nil); err != nil {
			return nil, err
		}
	}
	if ws, err := a.workspace(); err == nil {
		l.trusts = func(path string, content []byte) (bool, error) {
			book, err := a.book(ctx)
			return err == nil && book.Check(path, content) == trust.Trusted, err
		}
		if err := l.file(filepath.Join(ws, ".belay", configName), l.narrows); err != nil {
			return nil, err
		}
	}
	l.environment(a, c)
	l.flags(c)
	return l, nil
}

// file takes a configuration file, if there is one. may tells why a value
// doesn't count; nil takes all.
func (l *layers) file(path string, may func(manifest.Setting) string) error {
	b, err := readUpTo(path, maxConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return belay.Errorf(belay.CodeBadConfig, "it can't be read: %s", reason(err)).At(path).WithHint("repair the file or move it away")
	}
	var names []string
	for _, s := range (&Config{}).settings() {
		if !s.once {
			names = append(names, s.name())
		}
	}
	settings, err := manifest.ReadConfig(path, b, names, []string{"allow"})
	if err != nil {
		return err
	}
	l.files = append(l.files, path)
	if may != nil && len(settings) > 0 {
		ok, err := l.trusts(path, b)
		if err != nil {
			return err
		}
		if ok {
			may = nil
		}
	}
	for _, s := range settings {
		if may != nil {
			if why := may(s); why != "" {
				l.ignored = append(l.ignored, given{value: s.Name, list: []string{why}, from: s.Where})
				continue
			}
		}
		l.set[s.Name] = given{s.Value, s.List, s.Where}
	}
	return nil
}

// environment takes the variables. A script given as a flag stands for a
// provider: the environment has no say then, nor have files.
func (l *layers) environment(a *app, c Config) {
	if c.Script != "" || c.Provider != "" {
		delete(l.set, "provider")
	}
	for _, s := range c.settings() {
		v := a.env(s.env)
		if v == "" || (c.Script != "" || c.Provider != "") && (s.flag == "--script" || s.flag == "--provider") {
			continue
		}
		if s.flag == "--script" && l.set["provider"].from != "BELAY_PROVIDER" {
			delete(l.set, "provider")
		}
		l.set[s.name()] = given{value: v, from: s.env}
	}
	if v := a.env("BELAY_ALLOW"); v != "" {
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

// strictness orders modes: a narrower one comes later.
var strictness = []string{string(belay.ModeAcceptEdits), string(belay.ModeDefault), string(belay.ModeNever), string(belay.ModePlan)}

// untrusted is why a value of a workspace's file doesn't count.
const untrusted = "it would widen or redirect what others set, and nobody trusts the file as it is (belay trust)"

// narrows tells why a value of a workspace's file doesn't count; empty: it
// narrows what is set without it.
func (l *layers) narrows(s manifest.Setting) string {
	narrower := false
	have := l.set[s.Name].value
	switch s.Name {
	case "mode":
		narrower = slices.Index(strictness, s.Value) >= slices.Index(strictness, cmp.Or(have, string(belay.ModeDefault)))
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
	case "instructions":
		narrower = s.Value == "none"
	}
	if narrower {
		return ""
	}
	return untrusted
}

// fewer tells whether a limit is at most another; 0 is none.
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
