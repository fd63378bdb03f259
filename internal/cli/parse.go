package cli

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/lib/spelling"
	"github.com/belay-run/belay/internal/model/direct"
	"github.com/belay-run/belay/internal/tool"
)

// parse collects the first mistake.
type parse struct {
	origin map[string]string
	err    error
}

func (p *parse) bad(flag string, code belay.Code, hint, format string, args ...any) {
	if p.err != nil {
		return
	}
	where := flag
	if env := p.origin[flag]; env != "" {
		where = env
	}
	p.err = belay.Errorf(code, format, args...).At(where).WithHint("%s", hint)
}

func (p *parse) mode(v string) belay.Mode {
	return belay.Mode(p.oneOf("--mode", v, asText(belay.Modes)...))
}

func (p *parse) oneOf(flag, v string, allowed ...string) string {
	if !slices.Contains(allowed, v) {
		p.bad(flag, belay.CodeUsage, flag+"="+cmp.Or(spelling.Nearest(v, allowed), allowed[0]), "%q is none of %s", v, strings.Join(allowed, ", "))
	}
	return v
}

func (p *parse) snapshot(v string) string {
	if v == "" {
		return ""
	}
	return p.oneOf("--snapshot", v, "git", "none")
}

func (p *parse) instructions(v string) string {
	if v == "" {
		return ""
	}
	return p.oneOf("--instructions", v, "auto", "none")
}

func (p *parse) number(flag, v string) int {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 1_000_000_000 {
		p.bad(flag, belay.CodeUsage, flag+"=0 is no limit", "%q is not a number from 0", v)
	}
	return n
}

func (p *parse) duration(flag, v string, least time.Duration) belay.Duration {
	if v == "0" && least == 0 {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < least || d > 10*365*24*time.Hour {
		hint := flag + "=30m"
		if least == 0 {
			hint += "; 0 is no limit"
		}
		p.bad(flag, belay.CodeUsage, hint, "%q is not a length of time such as 90s, 30m or 2h", v)
	}
	return belay.Duration(d)
}

// tools is a choice of tools; each term must name something.
func (p *parse) tools(specs []belay.ToolSpec, list string) []string {
	terms := strings.Split(list, ",")
	for i := range terms {
		terms[i] = strings.TrimSpace(terms[i])
	}
	if err := tool.CheckTerms(terms, specs); err != nil {
		e, _ := errors.AsType[*belay.Error](err)
		p.bad("--tools", e.Code, e.Hint, "%s", e.Message)
	}
	return terms
}

// allow adds tools to those allowed; each must exist. A group or a pattern means
// the tools that it matches now, not later ones.
func (p *parse) allow(specs []belay.ToolSpec, have, more []string) []string {
	out := slices.Clone(have)
	specs = slices.DeleteFunc(slices.Clone(specs), func(s belay.ToolSpec) bool { return s.Handled != "" })
	for _, name := range more {
		name = strings.TrimSpace(name)
		found := []string{name}
		if strings.Contains(name, "*") || strings.HasPrefix(name, "group:") {
			found = tool.Expand(name, specs)
		} else if !slices.ContainsFunc(specs, func(s belay.ToolSpec) bool { return s.Name == name }) {
			found = nil
		}
		if len(found) == 0 {
			names := tool.Names(specs)
			p.bad("--allow", belay.CodeUsage, spelling.Hint(name, names, "belay tool list"), "there is no tool %q; the tools are %s", name, strings.Join(names, ", "))
		}
		for _, n := range found {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// provider settles who serves the model. A script is named by its absolute
// path, so that a resume from anywhere finds it.
func (p *parse) provider(a *app, r *resolved, c Config) {
	if c.Script != "" && c.Provider != "" {
		p.bad("--script", belay.CodeUsage, "leave --provider out", "a script is a provider of its own; --provider %s names another", c.Provider)
		return
	}
	if c.Provider != "" && c.Provider != r.Provider {
		r.Provider, r.BaseURL, r.Model = c.Provider, "", c.Model
	}
	if c.Script != "" {
		r.Provider = scriptedPrefix + a.abs(c.Script)
	}
	if r.Provider == direct.Name {
		return
	}
	if name, ok := strings.CutPrefix(r.Provider, scriptedPrefix); ok && p.err == nil {
		r.Provider, r.BaseURL = scriptedPrefix+a.abs(name), ""
		if _, err := a.provider(r.Settings); err != nil {
			p.err = err
		}
		return
	}
	if r.Provider == "" {
		names, hint := a.candidates()
		p.bad("--provider", belay.CodeNoProvider, hint, "no provider is named%s", names)
		return
	}
	p.server(a, r, c)
}

// candidates are the providers that could be used when none is named. None is
// taken unasked: it costs money.
func (a *app) candidates() (names, hint string) {
	hint = "belay run --script FILE TEXT, or belay demo"
	all := a.found(nil)
	if len(all) == 0 {
		return "", hint
	}
	var said []string
	for _, f := range all {
		said = append(said, f.What)
	}
	return " (" + strings.Join(said, "; ") + ")", all[0].Try
}

// server settles where a provider is reached and which model it serves. A model
// and an address that were given for another provider don't count.
func (p *parse) server(a *app, r *resolved, c Config) {
	if p.err != nil {
		return
	}
	s, err := a.service(r.Provider)
	if err != nil {
		p.fail("--provider", err)
		return
	}
	if v, from := s.address(a.Environ); v != "" {
		a.says(s.name, v)
		if c.BaseURL == "" && r.BaseURL == "" {
			r.BaseURL, r.baseFrom = v, from
		}
	}
	if c.BaseURL != "" {
		a.says(s.name, c.BaseURL)
		r.BaseURL = c.BaseURL
	}
	if _, err := netdial.ParseBase(cmp.Or(r.BaseURL, s.base)); err != nil {
		switch {
		case r.baseFrom != "":
			p.fail(r.baseFrom, err)
		case r.BaseURL == "":
			p.fail(s.where, err)
		default:
			p.bad("--base-url", belay.CodeUsage, "--base-url http://127.0.0.1:8080/v1", "%s", readfile.Reason(err))
		}
		return
	}
	if r.Model = cmp.Or(r.Model, s.model); r.Model == "" {
		p.bad("--model", belay.CodeUsage, "--model NAME", "%s needs the name of a model", r.Provider)
		return
	}
	if _, err := a.provider(r.Settings); err != nil {
		p.fail("--provider", err)
	}
}

// fail takes an error as it is, with a place if it has none.
func (p *parse) fail(where string, err error) {
	e, ok := errors.AsType[*belay.Error](err)
	if !ok || p.err != nil {
		p.err = cmp.Or(p.err, err)
		return
	}
	at := *e
	if at.Where == "" {
		if at.Where = where; p.origin[where] != "" {
			at.Where = p.origin[where]
		}
	}
	p.err = &at
}

// maxSchema bounds a schema: it is part of the rules that every turn names.
const maxSchema = 256 << 10

func (p *parse) schema(a *app, file string) []byte {
	b, err := readfile.UpTo(a.abs(file), maxSchema)
	if err == nil {
		err = effect.CheckSchema(b)
	}
	if err != nil {
		p.bad("--output-schema", belay.CodeUsage, "name a JSON file with a JSON Schema", "%s: %s", file, readfile.Reason(err))
	}
	return b
}
