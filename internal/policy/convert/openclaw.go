package convert

import (
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/policy"
)

// openclawTools are OpenClaw's tools and the corresponding ones here. Permission
// to read includes list and search: they show the same. What works on a running
// program is one tool there.
var openclawTools = map[string][]string{
	"exec": exec, "bash": exec, "process": {"process", "process_*"}, "code_execution": {"code_execution"},
	"read": {"read", "list", "glob", "grep"}, "write": {"write"}, "edit": {"edit"}, "apply_patch": {"patch"},
	"sessions_list": {"sessions_list"}, "sessions_history": {"sessions_history"}, "sessions_send": {"sessions_send", "sessions_input"},
	"sessions_spawn": {"spawn_agent"}, "sessions_yield": {"wait_agent"}, "subagents": {"close_agent"}, "session_status": {"session_status"},
	"memory_search": {"memory_search"}, "memory_get": {"memory_get"}, "web_search": {"web_search"}, "x_search": {"x_search"}, "web_fetch": {"web_fetch"},
	"browser": {"browser"}, "canvas": {"canvas"}, "cron": {"schedule_create", "schedule_list", "schedule_delete"}, "gateway": {"gateway"},
	"message": {"message", "notify"}, "nodes": {"nodes"}, "agents_list": {"agents_list"}, "image": {"image", "view_image"}, "view_image": {"image", "view_image"}, "ask_user": {"ask_user"},
	"bundle-mcp": {"mcp__*"},
}

var openclawGroups = map[string][]string{
	"runtime": {"exec", "process", "code_execution"}, "fs": {"read", "write", "edit", "apply_patch"},
	"sessions": {"sessions", "sessions_list", "sessions_history", "sessions_search", "conversations_list", "conversations_send", "conversations_turn", "sessions_send", "sessions_spawn", "sessions_yield",
		"subagents", "session_status", "suggest_task", "dismiss_task"},
	"memory": {"memory_search", "memory_get"}, "web": {"web_search", "x_search", "web_fetch"}, "ui": {"browser", "screen", "dashboard", "terminal", "portal", "canvas", "show_widget"},
	"automation": {"heartbeat_respond", "cron", "gateway"}, "messaging": {"message"}, "nodes": {"nodes", "computer"},
	"agents":  {"agents_list", "get_goal", "create_goal", "update_goal", "progress_card", "ask_user", "skill_workshop"},
	"media":   {"image", "image_generate", "music_generate", "video_generate", "tts"},
	"plugins": {"bundle-mcp"},
}

// openclawApart are groups' tools that group:openclaw hasn't in newer versions:
// a deny of it means them, an allow doesn't.
var openclawApart = []string{"read", "write", "edit", "apply_patch", "exec", "process", "canvas"}

// openclawProfiles are what a profile leaves, in every version that has it.
var openclawProfiles = map[string][]string{
	"minimal":   {"session_status"},
	"coding":    {"group:fs", "group:runtime", "group:web", "group:sessions", "group:memory", "cron", "image", "image_generate"},
	"messaging": {"group:messaging", "sessions_list", "sessions_history", "sessions_send", "session_status"},
	"full":      nil,
}

// openclaw reads the settings of OpenClaw.
type openclaw struct{ *draft }

// read reads the tool settings. They say which tools there are, and each
// layer only narrows; so they become denies. Being there is no consent: what they
// leave is judged here as without them.
func (d openclaw) read(root *node) {
	if root.kind != object || root.at("tools") == nil && root.at("agents") == nil {
		d.mistake(root.line, `there are no settings "tools" or "agents" in it`)
	}
	d.layer(d.want(root, "tools", object), "tools", nil)
	d.agents(root)
}

// agents reads the layers of agents: a list of them, or since the summer
// of 2026 entries by their ids.
func (d openclaw) agents(root *node) {
	agents := d.want(root, "agents", object)
	d.want(agents, "defaults", object)
	list, entries := d.objects(agents, "list"), d.want(agents, "entries", object)
	for _, a := range list {
		d.agent(a, d.word(a, "id"))
	}
	if entries == nil {
		return
	}
	for i, id := range entries.names {
		a := d.want(entries, id, object)
		if d.err != nil {
			return
		}
		if i >= policy.MaxRules {
			d.mistake(a.line, "there are %d entries in agents.entries; %d are the most", len(entries.names), policy.MaxRules)
			return
		}
		d.agent(a, id)
	}
}

func (d openclaw) agent(a *node, id string) {
	own := d.want(a, "tools", object)
	if own != nil && (id == "" || strings.Contains(id, "*")) {
		d.mistake(a.line, "an agent with tools of its own has no id")
	}
	d.layer(own, "agents "+id+" tools", []string{id})
}

// layer reads one layer: of everybody, or of an agent.
func (d openclaw) layer(t *node, name string, agent []string) {
	if t == nil {
		return
	}
	allow, also := d.texts(t, "allow"), d.texts(t, "alsoAllow")
	if len(allow) > 0 && len(also) > 0 {
		d.mistake(also[0].line, "allow and alsoAllow are in one layer").WithHint("OpenClaw refuses that too; keep one of them")
	}
	d.profile(t, name, agent, also)
	if len(allow) > 0 {
		d.only(&source{text: name + ".allow " + joinTexts(allow), line: allow[0].line, stem: name + " allow"}, agent, textsOf(allow))
	}
	for _, e := range d.texts(t, "deny") {
		s := &source{text: name + ".deny " + e.text, line: e.line, says: policy.Deny, stem: name + " deny " + e.text, base: policy.Rule{Match: policy.Match{Agent: agent}}}
		terms, strange := expandOpenclaw([]string{e.text}, policy.Deny)
		for _, t := range strange {
			s.strange(t)
		}
		if strings.TrimSpace(e.text) == "" {
			d.noEffect(s, "it names no tool")
			continue
		}
		if len(terms) > 0 {
			d.add(s, policy.Match{Tool: terms}, nil, nil)
		}
		d.done(s)
	}
	d.files(t, name, agent)
	d.programs(t, name, agent)
}

func (d openclaw) profile(t *node, name string, agent []string, also []*node) {
	profile := d.word(t, "profile")
	if profile == "" {
		return
	}
	terms, known := openclawProfiles[profile]
	line := t.at("profile").line
	s := &source{text: name + ".profile " + profile, line: line, stem: name + " profile " + profile}
	switch {
	case !known:
		d.mistake(line, "there is no profile %q", short(profile, 80)).WithHint("minimal, coding, messaging, full")
		return
	case profile == "full":
		d.noEffect(s, "it restricts nothing")
		return
	}
	if agent != nil {
		s.why = append(s.why, "there it replaces the profile of everybody, here both count")
	}
	if len(also) > 0 {
		s.text += " and " + joinTexts(also)
	}
	d.only(s, agent, slices.Concat(terms, textsOf(also)))
}

// only denies everything but some tools.
func (d openclaw) only(s *source, agent, terms []string) {
	s.says, s.base.Agent = policy.Deny, agent
	names, strange := expandOpenclaw(terms, policy.Allow)
	for _, t := range strange {
		s.why = append(s.why, "nothing is known of "+short(t, 80)+" here: a tool of that very name is left")
	}
	if len(names) == 0 {
		d.finish(s, policy.Match{Tool: []string{"*"}}, nil, nil)
		return
	}
	if slices.Contains(names, "write") && !slices.Contains(names, "patch") {
		names = append(names, "patch") // permission to write includes patch
	}
	slices.Sort(names)
	if slices.Contains(names, "*") {
		d.noEffect(s, "it restricts nothing")
		return
	}
	d.add(s, policy.Match{NotTool: slices.Compact(names)}, []policy.Example{{Tool: "no-tool-of-that-layer"}}, []policy.Example{{Tool: strings.ReplaceAll(names[0], "*", "")}})
	s.why = append(s.why, "what it leaves isn't allowed for that: it is judged by the other rules")
	d.done(s)
}

// expandOpenclaw are the tools here that terms of OpenClaw name, in lower case,
// and those terms that stand for nothing that is known.
func expandOpenclaw(terms []string, says policy.Decision) (out, strange []string) {
	for _, t := range terms {
		t = strings.ToLower(strings.TrimSpace(t))
		group, isGroup := strings.CutPrefix(t, "group:")
		members := openclawGroups[group]
		if isGroup && group == "openclaw" {
			members = openclawBuiltin(says)
		}
		switch {
		case t == "":
		case isGroup && members == nil:
			strange = append(strange, t)
		case isGroup:
			inner, _ := expandOpenclaw(members, says)
			out = append(out, inner...)
		case openclawTools[t] != nil:
			out = append(out, openclawTools[t]...)
		case strings.Contains(t, "*") && t != "*":
			n := len(out)
			for name, tools := range openclawTools {
				if policy.Like(t, name) {
					out = append(out, tools...)
				}
			}
			if len(out) == n && !openclawHas(t) && !strings.Contains(t, "__") {
				strange = append(strange, t)
			}
			out = append(out, t, "mcp__"+t) // a server's tools are SERVER__TOOL there
		case strings.Contains(t, "__"):
			out = append(out, t, "mcp__"+t)
		default:
			if out = append(out, t); t != "*" && !openclawHas(t) {
				strange = append(strange, t)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), strange
}

// openclawBuiltin are the members of group:openclaw.
func openclawBuiltin(says policy.Decision) (all []string) {
	for name, g := range openclawGroups {
		if name != "plugins" {
			all = append(all, g...)
		}
	}
	return slices.DeleteFunc(all, func(t string) bool { return says == policy.Allow && slices.Contains(openclawApart, t) })
}

// openclawHas reports whether a pattern fits a tool of a group: nothing here
// does the same, so that nothing is lost without it.
func openclawHas(pattern string) bool {
	for _, members := range openclawGroups {
		if slices.ContainsFunc(members, func(name string) bool { return policy.Like(pattern, name) }) {
			return true
		}
	}
	return false
}

// files reads whether files outside of the workspace are kept from tools.
func (d openclaw) files(t *node, name string, agent []string) {
	fs := d.want(t, "fs", object)
	if !d.flag(fs, "workspaceOnly", false) {
		return
	}
	s := &source{text: name + ".fs.workspaceOnly", line: fs.at("workspaceOnly").line, says: policy.Deny, stem: name + " workspace only", base: policy.Rule{Match: policy.Match{Agent: agent}}}
	d.finish(s, policy.Match{Tool: []string{"read", "list", "glob", "grep", "write", "edit", "patch"}, Path: &policy.PathMatch{Where: "outside"}}, []policy.Example{{Path: "../x"}}, []policy.Example{{Path: "x"}})
}

// execModes are pairs of security and ask by the name of a mode.
var execModes = map[string][2]string{"deny": {"deny", "off"}, "allowlist": {"allowlist", "off"}, "ask": {"allowlist", "on-miss"}, "auto": {"allowlist", "on-miss"}, "full": {"full", "off"}}

// programs reads how programs are approved. The list of programs that may
// run is in another file, which can only make it stricter.
func (d openclaw) programs(t *node, name string, agent []string) {
	e := d.want(t, "exec", object)
	if e == nil {
		return
	}
	security, ask, mode := d.word(e, "security"), d.word(e, "ask"), d.word(e, "mode")
	if pair, ok := execModes[mode]; ok {
		security, ask = pair[0], pair[1]
	} else if mode != "" {
		d.mistake(e.at("mode").line, "there is no mode %q of exec", short(mode, 80))
	}
	s := &source{text: name + ".exec security " + orNone(security) + ", ask " + orNone(ask), line: e.line, stem: name + " exec", base: policy.Rule{Match: policy.Match{Agent: agent}, Priority: askPriority}}
	switch security {
	case "", "deny", "allowlist", "full":
	default:
		d.mistake(e.at("security").line, "there is no security %q of exec", short(security, 80))
	}
	switch ask {
	case "", "off", "on-miss", "always":
	default:
		d.mistake(e.at("ask").line, "there is no ask %q of exec", short(ask, 80))
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
		d.noEffect(s, "programs are asked about here unless rules allow them; allow those you mean")
		return
	}
	d.finish(s, policy.Match{Tool: exec}, example("ls"), nil)
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
