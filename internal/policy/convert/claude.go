package convert

import (
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
)

// claudeTools are the tools of Claude Code and those that do the same here.
var claudeTools = map[string]counterpart{
	"Bash": {allow: exec, more: []string{"process_send"}}, "PowerShell": {more: []string{"exec", "process_send"}}, "Monitor": {more: []string{"exec", "process"}},
	"BashOutput": {allow: []string{"process"}}, "KillShell": {allow: []string{"process"}}, "KillBash": {allow: []string{"process"}}, "TaskOutput": {more: []string{"process"}}, "TaskStop": {more: []string{"process"}},
	"Read": {allow: []string{"read"}, more: []string{"list", "glob", "grep"}}, "LS": {allow: []string{"list"}}, "Glob": {allow: []string{"glob"}}, "Grep": {allow: []string{"grep"}},
	"Edit": {allow: []string{"edit"}, more: []string{"write", "patch"}}, "MultiEdit": {allow: []string{"edit"}, more: []string{"patch"}},
	"Write": {allow: []string{"write"}, more: []string{"edit", "patch"}}, "NotebookEdit": {more: []string{"edit", "write", "patch"}},
	"WebFetch": {allow: []string{"web_fetch"}}, "WebSearch": {allow: []string{"web_search"}},
	"Task": {allow: []string{"spawn_agent"}}, "Agent": {allow: []string{"spawn_agent"}}, "TodoWrite": {allow: []string{"todo"}}, "AskUserQuestion": {allow: []string{"ask_user"}},
	"TaskCreate": {more: []string{"task_create"}}, "TaskUpdate": {more: []string{"task_update"}}, "TaskGet": {more: []string{"task_list"}}, "TaskList": {more: []string{"task_list"}}, "SendMessage": {more: []string{"sessions_send", "sessions_input"}},
	"CronCreate": {more: []string{"schedule_create"}}, "CronDelete": {more: []string{"schedule_delete"}}, "CronList": {more: []string{"schedule_list"}}, "NotebookRead": {more: []string{"read", "list", "glob", "grep"}}, "Artifact": {more: []string{"artifact_publish"}},
	"Skill": none, "SlashCommand": none, "EnterPlanMode": none, "ExitPlanMode": none, "EnterWorktree": none, "ExitWorktree": none, "LSP": none, "ToolSearch": none, "ListMcpResourcesTool": none, "ReadMcpResourceTool": none,
}

// ClaudeTools returns the tools that do here what a rule of Claude Code is about, whichever
// of their calls it is about: those that it allows, or the more that it denies.
func ClaudeTools(rule string, deny bool) (names []string, known bool) {
	m := claudeRule.Get().FindStringSubmatch(strings.TrimSpace(rule))
	if m == nil {
		return nil, false
	}
	c, known := claudeTools[m[1]]
	if deny {
		return c.tools(policy.Deny), known
	}
	return c.tools(policy.Allow), known
}

// ClaudeMode is the mode that a permission mode of Claude Code is here; empty: it isn't
// known.
func ClaudeMode(name string) string { return claudeModes[name] }

// claudePaths are the tools whose rules can be about files.
var claudePaths = []string{"Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Glob", "Grep", "LS"}

var claudeModes = map[string]string{"default": "default", "manual": "default", "acceptEdits": "accept_edits", "plan": "plan", "auto": "auto", "dontAsk": "never", "bypassPermissions": "bypass"}

// Priorities of the tier user: there an ask beats an allow, however they stand.
const (
	askPriority   = 500
	allowPriority = 400
)

var claudeRule = match.Lazy(`(?s)^([A-Za-z_*][\w*.-]*)(?:\((.*)\))?$`)

// claude reads the settings of Claude Code.
type claude struct{ *draft }

// read reads the permissions of a settings file: denies come before asks, and
// those before allows.
func (d claude) read(root *node) {
	if root.kind != object || root.at("permissions") == nil {
		d.mistake(root.line, `there is no object "permissions" in it`)
		return
	}
	p := d.want(root, "permissions", object)
	n := 0
	for _, l := range []struct {
		name     string
		says     policy.Decision
		priority int
	}{{"deny", policy.Deny, 0}, {"ask", policy.Ask, askPriority}, {"allow", policy.Allow, allowPriority}} {
		rules := d.texts(p, l.name)
		if n += len(rules); n > policy.MaxRules {
			d.mistake(p.line, "there are %d rules; %d are the most", n, policy.MaxRules)
			return
		}
		for _, r := range rules {
			s := &source{text: l.name + " " + r.text, line: r.line, says: l.says, stem: l.name + " " + r.text, base: policy.Rule{Priority: l.priority}}
			m := claudeRule.Get().FindStringSubmatch(strings.TrimSpace(r.text))
			if m == nil {
				d.mistake(r.line, "%q is no rule", short(r.text, 80)).WithHint("a rule is Tool or Tool(what it is about)")
				return
			}
			d.rule(s, m[1], strings.TrimSpace(m[2]))
		}
	}
	d.permissions(p)
}

// permissions names what permissions hold besides rules.
func (d claude) permissions(p *node) {
	mode := d.word(p, "defaultMode")
	if at := p.at("defaultMode"); at != nil {
		if claudeModes[mode] == "" {
			d.mistake(at.line, "defaultMode is no mode that is known")
		}
		d.setting("defaultMode "+mode, at.line, Left, "a mode is chosen for a run: --mode "+claudeModes[mode])
	}
	for _, dir := range d.texts(p, "additionalDirectories") {
		d.setting("additionalDirectories "+dir.text, dir.line, Left, "a workspace is one folder here; what lies outside is asked about")
	}
}

func (d claude) rule(s *source, name, spec string) {
	paths := slices.Contains(claudePaths, name)
	if (spec == "*" || spec == ":*") && !paths {
		spec = ""
	}
	c, known := claudeTools[name]
	switch {
	case strings.Contains(name, "*"):
		d.wild(s, name, spec)
	case strings.HasPrefix(name, "mcp__"):
		d.mcp(s, name, spec)
	case spec == "" && known:
		d.whole(s, c)
	case name == "Bash":
		d.bash(s, spec)
	case name == "WebFetch" && strings.HasPrefix(spec, "domain:"):
		d.host(s, strings.TrimPrefix(spec, "domain:"))
	case paths:
		d.path(s, name, c, spec)
	case spec == "" && s.says != policy.Allow:
		s.strange(name)
		d.finish(s, policy.Match{Tool: []string{strings.ToLower(name)}}, nil, nil)
	case known:
		d.drop(s, "no rule here can ask for that of "+name)
	default:
		d.drop(s, "there is no such tool here")
	}
}

func (d claude) whole(s *source, c counterpart) {
	tools := c.tools(s.says)
	if len(tools) == 0 {
		d.noEffect(s, "there is no such tool here")
		return
	}
	if s.says == policy.Allow && slices.Contains(tools, "exec") {
		s.why = append(s.why, notAll)
	}
	d.finish(s, policy.Match{Tool: tools}, nil, nil)
}

// wild carries a rule over tools by pattern. There only asks and denies
// can have one.
func (d claude) wild(s *source, name, spec string) {
	switch {
	case s.says == policy.Allow && strings.HasPrefix(name, "mcp__"):
		d.mcp(s, name, spec)
	case s.says == policy.Allow:
		d.drop(s, "a pattern over all tools allows nothing there either")
	case spec != "":
		d.drop(s, "no rule here can ask for that of several tools")
	default:
		tools, known := []string{strings.ToLower(name)}, strings.HasPrefix(name, "mcp__")
		for n, c := range claudeTools {
			if policy.Like(name, n) {
				tools, known = append(tools, c.tools(s.says)...), true
			}
		}
		if !known {
			s.strange(name)
		}
		slices.Sort(tools)
		d.finish(s, policy.Match{Tool: slices.Compact(tools)}, nil, nil)
	}
}

func (d claude) mcp(s *source, name, spec string) {
	server, tool, whole := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	lower := strings.ToLower(name)
	switch {
	case spec != "" && s.says != policy.Ask:
		d.drop(s, "no rule here can ask for that of a server's tool")
		return
	case s.says == policy.Allow && (strings.Contains(server, "*") || server == ""):
		d.drop(s, "an allow names a server")
		return
	case s.says == policy.Allow && lower != name:
		d.drop(s, "names of tools are compared without case here: it could be another one")
		return
	case spec != "":
		s.why = append(s.why, "it asks about every call of the tool")
	}
	if !whole || tool == "" {
		lower = "mcp__" + strings.ToLower(server) + "__*"
	}
	d.finish(s, policy.Match{Tool: []string{lower}}, nil, nil)
}

// bash carries a rule over commands.
func (d claude) bash(s *source, spec string) {
	line, begins := strings.CutSuffix(spec, ":*")
	if rest, ok := strings.CutSuffix(line, " *"); !begins && ok {
		line, begins = rest, true
	}
	switch {
	case strings.Contains(line, `\`) && s.says == policy.Allow:
		d.drop(s, "its words mean more to a shell than they say")
	case strings.Contains(line, "*"):
		d.glob(s, line, begins)
	default:
		if why := d.prefix(s, line, !begins, begins); why != "" {
			d.drop(s, why)
			return
		}
		d.done(s)
	}
}

// glob carries a rule over commands in which * stands for anything.
func (d claude) glob(s *source, line string, begins bool) {
	allow := s.says == policy.Allow
	if first, _, _ := strings.Cut(line, " "); allow && (strings.Contains(first, "/") || strings.ContainsAny(line, `"'$<>|;&`+"`")) {
		d.drop(s, "its words mean more to a shell than they say")
		return
	}
	var joined, inLine strings.Builder
	for i, part := range strings.Split(line, "*") {
		if i > 0 {
			joined.WriteString(".*")
			inLine.WriteString(".*")
		}
		joined.WriteString(regexp.QuoteMeta(part))
		inLine.WriteString(strings.ReplaceAll(regexp.QuoteMeta(part), " ", `\s+`))
	}
	switch {
	case allow && begins:
		d.pattern(s, "^"+joined.String()+"(?: .*)?$", "")
	case allow:
		d.pattern(s, "^"+joined.String()+"$", "")
	case begins:
		d.pattern(s, "(?s)^"+joined.String(), "(?s)"+start+inLine.String())
	default:
		d.pattern(s, "(?s)^"+joined.String()+"$", "(?s)"+start+inLine.String())
	}
}

func (d claude) host(s *source, host string) {
	host = strings.ToLower(strings.TrimSpace(host))
	if host == "" || strings.ContainsAny(host, "/: ") || strings.Contains(strings.TrimPrefix(host, "*."), "*") {
		d.drop(s, "it names no host")
		return
	}
	hosts := []string{host}
	if s.says != policy.Allow && !strings.HasPrefix(host, "*.") {
		hosts = append(hosts, "*."+host)
	}
	one := strings.Replace(host, "*.", "www.", 1)
	d.finish(s, policy.Match{Tool: []string{"web_fetch"}, Host: hosts}, []policy.Example{{Host: one}}, []policy.Example{{Host: "not-" + strings.TrimPrefix(one, "www.") + ".invalid"}})
}
