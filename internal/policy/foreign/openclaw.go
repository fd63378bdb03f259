package foreign

import (
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/policy"
)

// openclawTools are OpenClaw's tools and what stands for them here. Who may read
// may list and search: both show the same.
var openclawTools = map[string][]string{
	"exec": exec, "bash": exec, "process": {"process"}, "code_execution": {"code_execution"},
	"read": {"read", "list", "glob", "grep"}, "write": {"write"}, "edit": {"edit"}, "apply_patch": {"patch"},
	"sessions_list": {"sessions_list"}, "sessions_history": {"sessions_history"}, "sessions_send": {"sessions_send", "sessions_input"},
	"sessions_spawn": {"sessions_spawn"}, "sessions_yield": {"sessions_wait"}, "subagents": {"sessions_close"}, "session_status": {"session_status"},
	"memory_search": {"memory_search"}, "memory_get": {"memory_get"}, "web_search": {"web_search"}, "x_search": {"x_search"}, "web_fetch": {"web_fetch"},
	"browser": {"browser"}, "canvas": {"canvas"}, "cron": {"schedule_create", "schedule_list", "schedule_delete"}, "gateway": {"gateway"},
	"message": {"message", "notify"}, "nodes": {"nodes"}, "agents_list": {"agents_list"}, "image": {"image"}, "image_generate": {"image_generate"}, "tts": {"tts"},
}

var openclawGroups = map[string][]string{
	"runtime": {"exec", "process", "code_execution"}, "fs": {"read", "write", "edit", "apply_patch"},
	"sessions": {"sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "sessions_yield", "subagents", "session_status"},
	"memory":   {"memory_search", "memory_get"}, "web": {"web_search", "x_search", "web_fetch"}, "ui": {"browser", "canvas"}, "automation": {"cron", "gateway"},
	"messaging": {"message"}, "nodes": {"nodes"}, "agents": {"agents_list"}, "media": {"image", "image_generate", "tts"},
}

// openclawProfiles are what a profile leaves, as in the spring of 2026.
var openclawProfiles = map[string][]string{
	"minimal":   {"session_status"},
	"coding":    {"group:fs", "group:runtime", "group:web", "group:sessions", "group:memory", "cron", "image", "image_generate"},
	"messaging": {"group:messaging", "sessions_list", "sessions_history", "sessions_send", "session_status"},
	"full":      nil,
}

// openclaw reads the tool settings. They say which tools there are, and each
// layer only narrows; so they become denies. Being there is no consent: what they
// leave is judged here as without them.
func (d *draft) openclaw(content []byte) error {
	root, err := parseJSON(d.o.Name, plainJSON(content))
	if err != nil {
		return err
	}
	if root.kind != object || root.at("tools") == nil && root.at("agents") == nil {
		return d.mistake(root.line, `there are no settings "tools" or "agents" in it`)
	}
	tools, err := d.want(root, "tools", object)
	if err != nil {
		return err
	}
	if err := d.openclawLayer(tools, "tools", nil); err != nil {
		return err
	}
	agents, err := d.want(root, "agents", object)
	if err != nil {
		return err
	}
	if agents.at("defaults", "sandbox") != nil {
		d.setting("agents.defaults.sandbox", agents.at("defaults", "sandbox").line, "where programs run is no rule; docs/policy.md describes boundaries")
	}
	list, err := d.want(agents, "list", array)
	if list == nil || err != nil {
		return err
	}
	if len(list.items) > policy.MaxRules {
		return d.mistake(list.line, "there are %d agents; %d are the most", len(list.items), policy.MaxRules)
	}
	for _, a := range list.items {
		id, err := d.word(a, "id")
		if err != nil {
			return err
		}
		own, err := d.want(a, "tools", object)
		if err != nil || own == nil {
			if err != nil {
				return err
			}
			continue
		}
		if id == "" || strings.Contains(id, "*") {
			return d.mistake(a.line, "an agent with tools of its own has no id")
		}
		if err := d.openclawLayer(own, "agents "+id+" tools", []string{id}); err != nil {
			return err
		}
	}
	return nil
}

// openclawLayer reads one layer: of everybody, or of an agent.
func (d *draft) openclawLayer(t *node, name string, agent []string) error {
	if t == nil {
		return nil
	}
	allow, err := d.texts(t, "allow")
	if err != nil {
		return err
	}
	also, err := d.texts(t, "alsoAllow")
	if err != nil {
		return err
	}
	if len(allow) > 0 && len(also) > 0 {
		return d.mistake(also[0].line, "allow and alsoAllow stand in one layer").WithHint("OpenClaw refuses that too; keep one of them")
	}
	if err := d.openclawProfile(t, name, agent, also); err != nil {
		return err
	}
	if len(allow) > 0 {
		d.openclawOnly(&source{text: name + ".allow " + joinTexts(allow), line: allow[0].line, stem: name + " allow"}, agent, textsOf(allow))
	}
	deny, err := d.texts(t, "deny")
	if err != nil {
		return err
	}
	for _, e := range deny {
		s := &source{text: name + ".deny " + e.text, line: e.line, says: policy.Deny, stem: name + " deny " + e.text, base: policy.Rule{Match: policy.Match{Agent: agent}}}
		terms := expandOpenclaw([]string{e.text})
		if strings.TrimSpace(e.text) == "" || len(terms) == 0 {
			d.idle(s, "it names no tool")
			continue
		}
		d.add(s, policy.Match{Tool: terms}, nil, nil)
		d.done(s)
	}
	return d.openclawRest(t, name, agent)
}

func (d *draft) openclawProfile(t *node, name string, agent []string, also []*node) error {
	profile, err := d.word(t, "profile")
	if err != nil || profile == "" {
		return err
	}
	terms, known := openclawProfiles[profile]
	line := t.at("profile").line
	s := &source{text: name + ".profile " + profile, line: line, stem: name + " profile " + profile}
	switch {
	case !known:
		return d.mistake(line, "there is no profile %q", short(profile, 80)).WithHint("minimal, coding, messaging, full")
	case profile == "full":
		d.idle(s, "it restricts nothing")
		return nil
	}
	if agent != nil {
		s.why = append(s.why, "there it replaces the profile of everybody, here both count")
	}
	if len(also) > 0 {
		s.text += " and " + joinTexts(also)
	}
	d.openclawOnly(s, agent, slices.Concat(terms, textsOf(also)))
	return nil
}

// openclawOnly denies everything but some tools.
func (d *draft) openclawOnly(s *source, agent, terms []string) {
	s.says, s.base.Agent = policy.Deny, agent
	names := expandOpenclaw(terms)
	if slices.Contains(names, "write") && !slices.Contains(names, "patch") {
		names = append(names, "patch") // who may write may patch
	}
	slices.Sort(names)
	if slices.Contains(names, "*") {
		d.idle(s, "it restricts nothing")
		return
	}
	d.add(s, policy.Match{NotTool: slices.Compact(names)}, []policy.Example{{Tool: "no-tool-of-that-layer"}}, []policy.Example{{Tool: strings.ReplaceAll(names[0], "*", "")}})
	s.why = append(s.why, "what it leaves isn't allowed for that: it is judged by the other rules")
	d.done(s)
}

// expandOpenclaw are the tools here that terms of OpenClaw name, in lower case.
func expandOpenclaw(terms []string) (out []string) {
	for _, t := range terms {
		t = strings.ToLower(strings.TrimSpace(t))
		group, isGroup := strings.CutPrefix(t, "group:")
		switch members, known := openclawGroups[group]; {
		case t == "":
		case isGroup && known:
			out = append(out, expandOpenclaw(members)...)
		case isGroup && group == "openclaw":
			for _, g := range openclawGroups {
				out = append(out, expandOpenclaw(g)...)
			}
		case isGroup: // of a plugin: nothing here has it
		case openclawTools[t] != nil:
			out = append(out, openclawTools[t]...)
		case strings.Contains(t, "*") && t != "*":
			out = append(out, t)
			for name, tools := range openclawTools {
				if policy.Like(t, name) {
					out = append(out, tools...)
				}
			}
		default:
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// openclawLost are settings that narrow for some calls only, by what no rule here
// can see.
var openclawLost = map[string]string{
	"byProvider": "no rule here can ask for the provider", "toolsBySender": "no rule here can ask for the sender",
	"sandbox": "no rule here can ask for the sandbox", "subagents": "a rule asks for an agent by its name",
}

// openclawRest reads what a layer holds besides its lists.
func (d *draft) openclawRest(t *node, name string, agent []string) error {
	for i, key := range t.names {
		v := t.items[i]
		switch key {
		case "profile", "allow", "alsoAllow", "deny":
		case "exec":
			if err := d.openclawExec(t, name, agent); err != nil {
				return err
			}
		case "fs":
			if only := v.at("workspaceOnly"); only != nil && only.kind == boolean && only.yes {
				s := &source{text: name + ".fs.workspaceOnly", line: only.line, says: policy.Deny, stem: name + " workspace only", base: policy.Rule{Match: policy.Match{Agent: agent}}}
				d.add(s, policy.Match{Tool: []string{"read", "list", "glob", "grep", "write", "edit", "patch"}, Path: &policy.PathMatch{Where: "outside"}}, []policy.Example{{Path: "../x"}}, []policy.Example{{Path: "x"}})
				d.done(s)
			}
		default:
			if why, lost := openclawLost[key]; lost {
				d.drop(&source{text: name + "." + key, line: v.line, says: policy.Deny}, why)
				continue
			}
			d.setting(name+"."+key, v.line, "a setting, not a rule: it isn't read")
		}
	}
	return nil
}

// execModes are pairs of security and ask by the name of a mode.
var execModes = map[string][2]string{"deny": {"deny", "off"}, "allowlist": {"allowlist", "off"}, "ask": {"allowlist", "on-miss"}, "auto": {"allowlist", "on-miss"}, "full": {"full", "off"}}

// openclawExec reads how programs are approved. The list of programs that may
// run is in another file, which can only make it stricter.
func (d *draft) openclawExec(t *node, name string, agent []string) error {
	e, err := d.want(t, "exec", object)
	if err != nil {
		return err
	}
	var words [3]string
	for i, key := range []string{"security", "ask", "mode"} {
		if words[i], err = d.word(e, key); err != nil {
			return err
		}
	}
	security, ask := words[0], words[1]
	if pair, ok := execModes[words[2]]; ok {
		security, ask = pair[0], pair[1]
	} else if words[2] != "" {
		return d.mistake(e.at("mode").line, "there is no mode %q of exec", short(words[2], 80))
	}
	s := &source{text: name + ".exec security " + orNone(security) + ", ask " + orNone(ask), line: e.line, stem: name + " exec", base: policy.Rule{Match: policy.Match{Agent: agent}, Priority: askPriority}}
	switch security {
	case "", "deny", "allowlist", "full":
	default:
		return d.mistake(e.at("security").line, "there is no security %q of exec", short(security, 80))
	}
	switch ask {
	case "", "off", "on-miss", "always":
	default:
		return d.mistake(e.at("ask").line, "there is no ask %q of exec", short(ask, 80))
	}
	switch {
	case security == "deny":
		s.says = policy.Deny
	case ask == "always":
		s.says = policy.Ask
	case security == "allowlist" && ask == "on-miss":
		s.says = policy.Ask
		s.why = append(s.why, "it asks about every program: the list of those that may run is in another file")
	case security == "allowlist":
		s.says = policy.Deny
		s.why = append(s.why, "it denies every program: the list of those that may run is in another file")
	default:
		d.idle(s, "programs are asked about here unless rules allow them; allow those you mean")
		return d.openclawExecRest(e, name)
	}
	d.add(s, policy.Match{Tool: exec}, example("ls"), nil)
	d.done(s)
	return d.openclawExecRest(e, name)
}

func (d *draft) openclawExecRest(e *node, name string) error {
	for i, key := range e.names {
		if !slices.Contains([]string{"security", "ask", "mode"}, key) {
			d.setting(name+".exec."+key, e.items[i].line, "a setting, not a rule: it isn't read")
		}
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func textsOf(nodes []*node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.text
	}
	return out
}

func joinTexts(nodes []*node) string { return strings.Join(textsOf(nodes), ", ") }
