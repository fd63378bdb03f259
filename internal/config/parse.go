package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/budget"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/tool"
)

// Settings are a session's settings, held against what is possible.
type Settings struct {
	belay.Settings
	Schema   []byte        // of the output; nil is none
	Quotas   []belay.Quota // that work under the settings spends from
	Web      Web           // of the web tools; it belongs to the place, not to the session
	CacheMB  int           // of the process; 0: belay.DefaultCacheMB
	Notify   string        // how a conversation tells that it waits; empty: NotifyAuto
	baseFrom string        // the variable that names the address; empty: none does
}

// SettingError is an error about a setting that was given in a request: its where
// and its hint name no flags.
type SettingError struct {
	Setting string // its name in requests
	Err     *belay.Error
}

// Error implements error.
func (e *SettingError) Error() string { return e.Err.Error() }

// Unwrap returns the error behind it.
func (e *SettingError) Unwrap() error { return e.Err }

// flag is how errors call a setting.
func (in Input) flag(name string) string {
	if in.Flags {
		return "--" + name
	}
	return name
}

// about is an error about a setting, which is from somewhere, or was given.
func (in Input) about(s *Setting, from string, err *belay.Error) error {
	switch {
	case from != "":
		return err.At(from)
	case in.Flags:
		return err.At("--" + s.Name)
	}
	return &SettingError{s.field(), err}
}

// Defaults are the settings of a session that sets none.
func (in Input) Defaults() belay.Settings {
	s := belay.Settings{Mode: belay.ModeDefault, Approvals: belay.ApprovalsDeny, Completion: belay.CompletionRequired, Limits: belay.DefaultLimits, Shell: in.Shell}
	if in.Interactive {
		s.Approvals = belay.ApprovalsAsk
	}
	return s
}

// Settings are those of a new session. The mode and the boundary are held against
// the rules, before anything is made.
func (l *Layers) Settings() (Settings, error) {
	s, err := l.Checked()
	if err != nil || s.Mode != belay.ModeBypass && s.Boundary == "" {
		return s, err
	}
	r, err := l.w.Rules()
	if err != nil {
		return s, err
	}
	return s, r.Permit(s.Settings, l.set["boundary"].from)
}

// Checked is Settings without the rules.
func (l *Layers) Checked() (Settings, error) { return l.over(l.w.in.Defaults()) }

// Over are a session's settings with what is given now over them.
func (w *Workspace) Over(have belay.Settings, g Given) (Settings, error) {
	l := &Layers{w: w, set: map[string]given{}}
	l.given(g)
	return l.over(have)
}

// over is the one place where settings are checked.
func (l *Layers) over(base belay.Settings) (Settings, error) {
	p := parser{w: l.w, in: l.w.in, set: l.set, out: Settings{Settings: base}}
	p.all()
	p.fallback()
	p.schema()
	p.provider() // the last one: what is shown of the others doesn't need it
	if p.err == nil {
		p.out.Quotas, p.err = l.w.Quotas()
	}
	return p.out, p.err
}

// Queueing is how threads take turns, with settings of the queue over it. flags are
// their names where these aren't the settings'.
func Queueing(q belay.Queueing, g Given, flags map[string]string) (belay.Queueing, error) {
	l := &Layers{set: map[string]given{}}
	l.given(g)
	p := parser{in: Input{Flags: true}, set: l.set, flags: flags, out: Settings{Settings: belay.Settings{Queue: q}}}
	p.all()
	return p.out.Queue, p.err
}

// WholeQueueing is a policy with its defaults.
func WholeQueueing(q belay.Queueing) belay.Queueing {
	return belay.Queueing{Mode: cmp.Or(q.Mode, belay.QueueEnqueue), Cap: cmp.Or(q.Cap, belay.MaxQueued), Drop: cmp.Or(q.Drop, belay.DropNew), Quiet: cmp.Or(q.Quiet, belay.DefaultQuiet)}
}

// parser checks settings and collects the first mistake.
type parser struct {
	w     *Workspace
	in    Input
	set   map[string]given
	flags map[string]string
	row   *Setting // the one that is checked
	out   Settings
	err   error
}

// all takes every setting but what belongs to the provider.
func (p *parser) all() {
	for i := range settings {
		if v, ok := p.set[settings[i].Name]; ok && settings[i].take != nil {
			p.row = &settings[i]
			p.row.take(p, v)
		}
	}
}

// flag is how hints call the setting that is checked.
func (p *parser) flag() string {
	if f := p.flags[p.row.Name]; f != "" {
		return f
	}
	if !p.in.Flags && p.set[p.row.Name].source == FromFlag { // of a request
		return p.row.field()
	}
	return p.in.flag(p.row.Name)
}

func (p *parser) bad(code belay.Code, hint, format string, args ...any) {
	p.fail(belay.Errorf(code, format, args...).WithHint("%s", hint))
}

// fail takes an error as it is, with a place if it has none.
func (p *parser) fail(err error) {
	e, ok := errors.AsType[*belay.Error](err)
	if p.err != nil || !ok || e.Where != "" {
		p.err = cmp.Or(p.err, err)
		return
	}
	from := ""
	if v := p.set[p.row.Name]; v.source != FromFlag {
		from = v.from
	}
	if f := p.flags[p.row.Name]; f != "" {
		from = f
	}
	placed := *e
	p.err = p.in.about(p.row, from, &placed)
}

func (p *parser) oneOf(v given, allowed ...string) string {
	if !slices.Contains(allowed, v.text) {
		p.bad(belay.CodeUsage, p.flag()+"="+cmp.Or(match.Nearest(v.text, allowed), allowed[0]), "%q is none of %s", v.text, strings.Join(allowed, ", "))
	}
	return v.text
}

// maxLimit bounds a limit that is a number.
const maxLimit = 1_000_000_000

func (p *parser) number(v given, least, most int, try string) int {
	n, err := strconv.Atoi(v.text)
	if err != nil || n < least || n > most {
		to := ""
		if most < maxLimit {
			to = fmt.Sprintf(" to %d", most)
		}
		p.bad(belay.CodeUsage, p.flag()+"="+try, "%q is not a number from %d%s", v.text, least, to)
	}
	return n
}

// share is a number above 0 and up to 1.
func (p *parser) share(v given) float64 {
	n, err := strconv.ParseFloat(v.text, 64)
	if err != nil || !(n > 0 && n <= 1) {
		p.bad(belay.CodeUsage, p.flag()+"=0.3", "%q is not a number above 0 and up to 1", v.text)
	}
	return n
}

func (p *parser) duration(v given, least time.Duration) belay.Duration {
	if v.text == "0" && least == 0 {
		return 0
	}
	d, err := time.ParseDuration(v.text)
	if err != nil || d < least || d > 10*365*24*time.Hour {
		hint := p.flag() + "=30m"
		if least == 0 {
			hint += "; 0 is no limit"
		}
		p.bad(belay.CodeUsage, hint, "%q is not a length of time such as 90s, 30m or 2h", v.text)
	}
	return belay.Duration(d)
}

// budget is a limit of each kind that is named.
func (p *parser) budget(v given) budget.Limit {
	l, err := budget.Parse(v.text)
	switch {
	case err != nil:
		p.fail(err)
	case l.Raise:
		p.bad(belay.CodeUsage, "belay budget set ID "+v.text+" raises a session's; "+p.flag()+"="+strings.ReplaceAll(v.text, "+", "")+" sets a limit", "%q raises a limit, and this sets one", v.text)
	}
	return l
}

// amount is a limit of one kind; 0 is none.
func (p *parser) amount(v given, kind belay.BudgetKind, try string) int64 {
	if v.text == "0" {
		return 0
	}
	l := p.budget(v)
	n := *l.Of(kind)
	if *l.Of(kind) = 0; p.err == nil && (n == 0 || l.Amounts != belay.Amounts{}) {
		p.bad(belay.CodeUsage, p.flag()+"="+try+"; 0 is no limit", "%q is no limit of %s alone", v.text, kind)
	}
	return n
}

func (p *parser) quiet(v given) belay.Duration {
	d, err := time.ParseDuration(v.text)
	if err != nil || d < time.Millisecond || d > time.Duration(belay.MaxQuiet) {
		p.bad(belay.CodeUsage, p.flag()+"=2s", "%q is not a length of time from 1ms to %s", v.text, belay.MaxQuiet)
	}
	return belay.Duration(d)
}

func asText[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = string(w)
	}
	return out
}

// tools is a choice of tools; each term must name something.
func (p *parser) tools(list string) []string {
	terms := strings.Split(list, ",")
	for i := range terms {
		terms[i] = strings.TrimSpace(terms[i])
	}
	if err := tool.CheckTerms(terms, p.w.Specs()); err != nil {
		e, _ := errors.AsType[*belay.Error](err)
		p.bad(e.Code, e.Hint, "%s", e.Message)
	}
	return terms
}

// allow adds tools to those allowed; each must exist. A group or a pattern means
// the tools that it matches now, not later ones.
func (p *parser) allow(have, more []string) []string {
	out := slices.Clone(have)
	specs := slices.DeleteFunc(p.w.Specs(), func(s belay.ToolSpec) bool { return s.Handled != "" })
	for _, name := range more {
		name = strings.TrimSpace(name)
		found := []string{name}
		if strings.Contains(name, "*") || strings.HasPrefix(name, "group:") {
			found = tool.Expand(name, specs)
		} else if !slices.ContainsFunc(specs, func(s belay.ToolSpec) bool { return s.Name == name }) && !OfServer(name) { // a server's may come with the turn
			found = nil
		}
		if len(found) == 0 {
			names := tool.Names(specs)
			p.bad(belay.CodeUsage, match.Hint(name, names, "belay tool list"), "there is no tool %q; the tools are %s", name, strings.Join(names, ", "))
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
func (p *parser) provider() {
	r, script, named := &p.out, p.set["script"].text, p.set["provider"].text
	p.row = setting("provider")
	if script != "" && named != "" {
		p.row = setting("script")
		p.bad(belay.CodeUsage, "leave "+p.in.flag("provider")+" out", "a script is a provider of its own; %s %s names another", p.in.flag("provider"), named)
		return
	}
	if named != "" && named != r.Provider {
		r.Provider, r.BaseURL, r.Model = named, "", p.set["model"].text
	}
	if script != "" {
		r.Provider = ScriptedPrefix + p.in.Abs(script)
	}
	if r.Provider == Direct {
		return
	}
	if name, ok := strings.CutPrefix(r.Provider, ScriptedPrefix); ok && p.err == nil {
		r.Provider, r.BaseURL = ScriptedPrefix+p.in.Abs(name), ""
		p.err = p.in.Usable(p.w, r.Settings)
		return
	}
	if r.Provider == "" {
		names, hint := "", "--provider NAME --model NAME"
		if !p.in.Flags {
			hint = "name settings.provider and settings.model, or start the server with BELAY_PROVIDER and BELAY_MODEL"
		}
		if all := p.w.Candidates(nil); len(all) > 0 && p.in.Flags {
			var said []string
			for _, c := range all {
				said = append(said, c.What)
			}
			names = " (" + strings.Join(said, "; ") + ")"
		}
		p.bad(belay.CodeNoProvider, hint, "no provider is named%s", names)
		return
	}
	p.service()
}

// service settles where a provider is reached and which model it serves. A model
// and an address that were given for another provider don't count.
func (p *parser) service() {
	if p.err != nil {
		return
	}
	r, named := &p.out, p.set["base-url"].text
	s, err := p.w.Service(r.Provider)
	if err != nil {
		p.fail(err)
		return
	}
	if v, from := p.in.address(s); v != "" {
		if named == "" && r.BaseURL == "" {
			r.BaseURL, r.baseFrom = v, from
		}
	}
	if named != "" {
		p.in.Hosts.name(s.Name, named)
		r.BaseURL = named
	}
	if _, err := netdial.ParseBase(cmp.Or(r.BaseURL, s.Base)); err != nil {
		switch {
		case r.baseFrom != "":
			err = at(err, r.baseFrom)
		case r.BaseURL == "":
			err = at(err, s.Where)
		default:
			e, _ := errors.AsType[*belay.Error](err)
			err = belay.Errorf(belay.CodeUsage, "%s", e.Message).WithHint("%s http://127.0.0.1:8080/v1", p.in.flag("base-url"))
		}
		p.row = setting("base-url")
		p.fail(err)
		return
	}
	if r.Model = cmp.Or(r.Model, s.Model); r.Model == "" {
		p.row = setting("model")
		p.bad(belay.CodeUsage, p.in.flag("model")+" NAME", "%s needs the name of a model", r.Provider)
		return
	}
	if err := p.in.Usable(p.w, r.Settings); err != nil {
		p.fail(p.saved(err))
	}
}

// saved is an error about a provider, with the place of the file that names it.
func (p *parser) saved(err error) error {
	v := p.set["provider"]
	e, ok := errors.AsType[*belay.Error](err)
	if v.source != FromFile || !ok {
		return err
	}
	placed := *e
	placed.Message += "; " + v.from + " names it as the provider"
	return &placed
}

// at is an error with a place, if it has none.
func at(err error, where string) error {
	e, ok := errors.AsType[*belay.Error](err)
	if !ok || e.Where != "" {
		return err
	}
	placed := *e
	placed.Where = where
	return &placed
}

// maxFallbacks bounds the models that follow a session's own.
const maxFallbacks = 5

// fallback settles the models that follow when the session's own gives no
// answer; each is PROVIDER/MODEL. "none" takes them away.
func (p *parser) fallback() {
	list := p.set["fallback"].text
	if list == "" || p.err != nil {
		return
	}
	p.row = setting("fallback")
	if list == "none" {
		p.out.Fallback = nil
		return
	}
	var out []string
	for f := range strings.SplitSeq(list, ",") {
		f = strings.TrimSpace(f)
		provider, _, ok := Route(f)
		if !ok {
			p.bad(belay.CodeUsage, p.flag()+" anthropic/claude-sonnet-4-5", "%q is not PROVIDER/MODEL", f)
			return
		}
		if _, err := p.w.Service(provider); err != nil {
			p.fail(err)
			return
		}
		out = append(out, f)
	}
	if len(out) > maxFallbacks {
		p.bad(belay.CodeUsage, "name the ones you would wait for", "%d models follow; %d may", len(out), maxFallbacks)
	}
	p.out.Fallback = out
}

// summariser is the model that summarises; "none" is the one that works.
func (p *parser) summariser(v given) string {
	if v.text == "none" {
		return ""
	}
	provider, _, ok := Route(v.text)
	if !ok {
		p.bad(belay.CodeUsage, p.flag()+" anthropic/claude-haiku-4-5, or none", "%q is not PROVIDER/MODEL", v.text)
	} else if _, err := p.w.Service(provider); err != nil {
		p.fail(err)
	}
	return v.text
}

// Route reads PROVIDER/MODEL; a model's name may have slashes of its own.
func Route(s string) (provider, model string, ok bool) {
	provider, model, ok = strings.Cut(s, "/")
	return provider, model, ok && provider != "" && model != ""
}

// maxSchema bounds a schema: it is part of the rules that every turn names.
const maxSchema = 256 << 10

func (p *parser) schema() {
	file := p.set["output-schema"].text
	if file == "" {
		return
	}
	p.row = setting("output-schema")
	b, err := files.ReadUpTo(p.in.Abs(file), maxSchema)
	if err == nil {
		err = tool.CheckSchema(b)
	}
	if err != nil {
		p.bad(belay.CodeUsage, "name a JSON file with a JSON Schema", "%s: %s", file, files.Reason(err))
	}
	p.out.Schema = b
}
