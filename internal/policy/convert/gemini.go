package convert

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
)

// tools are the tools of Gemini CLI and those that do the same here. What
// may be done in two ways here has both in what asks and denies.
var geminiTools = map[string]counterpart{
	"run_shell_command": {allow: exec, more: []string{"process_send"}}, "ShellTool": {allow: exec, more: []string{"process_send"}},
	"list_background_processes": {more: []string{"process"}}, "read_background_output": {more: []string{"process"}},
	"read_file": {allow: []string{"read"}}, "read_many_files": {allow: []string{"read"}},
	"list_directory": {allow: []string{"list"}}, "glob": {allow: []string{"glob"}},
	"grep_search": {allow: []string{"grep"}}, "search_file_content": {allow: []string{"grep"}},
	"write_file": {allow: []string{"write"}, more: []string{"patch"}}, "replace": {allow: []string{"edit"}, more: []string{"patch"}},
	"web_fetch": {allow: []string{"web_fetch"}}, "google_web_search": {allow: []string{"web_search"}},
	"save_memory": {allow: []string{"memory_store"}, more: []string{"memory_update", "memory_forget"}}, "write_todos": {allow: []string{"todo"}},
	"ask_user": {allow: []string{"ask_user"}}, "invoke_agent": {more: []string{"spawn_agent"}},
	"tracker_create_task": {more: []string{"task_create"}}, "tracker_update_task": {more: []string{"task_update"}}, "tracker_add_dependency": {more: []string{"task_update"}},
	"tracker_get_task": {more: []string{"task_list"}}, "tracker_list_tasks": {more: []string{"task_list"}}, "tracker_visualize": {more: []string{"task_list"}},
	"activate_skill": none, "get_internal_docs": none, "enter_plan_mode": none, "exit_plan_mode": none, "update_topic": none, "complete_task": none,
	"codebase_investigator": none, "cli_help": none, "generalist": none, "browser_agent": none, "list_mcp_resources": none, "read_mcp_resource": none,
}

// none stands for a tool that has no like here: what asks about it or denies it
// loses nothing.
var none = counterpart{}

// counterpart is what stands here for a tool of the source.
type counterpart struct {
	allow []string
	more  []string // for asks and denies besides
}

func (c counterpart) tools(says policy.Decision) []string {
	if says == policy.Allow {
		return c.allow
	}
	return slices.Concat(c.allow, c.more)
}

var geminiModes = map[string]struct{ exact, wide []belay.Mode }{
	"default":  {[]belay.Mode{belay.ModeDefault}, []belay.Mode{belay.ModeDefault, belay.ModeOnRequest, belay.ModeOnFailure, belay.ModeUntrusted, belay.ModeNever}},
	"autoEdit": {[]belay.Mode{belay.ModeAcceptEdits}, []belay.Mode{belay.ModeAcceptEdits, belay.ModeAuto}},
	"plan":     {[]belay.Mode{belay.ModePlan}, []belay.Mode{belay.ModePlan}},
	"yolo":     {nil, []belay.Mode{belay.ModeAuto, belay.ModeBypass}},
}

var verdicts = map[string]policy.Decision{"allow": policy.Allow, "ask_user": policy.Ask, "deny": policy.Deny}

// gemini reads the policies of Gemini CLI.
type gemini struct{ *draft }

// read reads a policy file. Its rules are judged by falling priority, in the
// order of the file where that is equal; the first that matches decides. Here it
// is the same but for denies, which are final.
func (d gemini) read(root *node) {
	list, checkers := d.objects(root, "rule"), d.objects(root, "safety_checker")
	if len(root.items) == 0 {
		d.mistake(0, "there is no [[rule]] in it")
	}
	rules := make([]*geminiSource, len(list))
	for i, n := range list {
		if rules[i] = d.source(n, i+1); d.err != nil {
			return
		}
	}
	ordered := slices.Clone(rules)
	slices.SortStableFunc(ordered, func(a, b *geminiSource) int { return cmp.Compare(b.base.Priority, a.base.Priority) })
	before := &decided{whole: map[string]bool{}, part: map[string][]string{}}
	for _, r := range ordered {
		before.take(r)
	}
	for _, r := range rules {
		d.rule(r)
	}
	for _, c := range checkers {
		d.drop(&source{text: "safety_checker", line: c.line, says: policy.Deny}, "what checks there doesn't run here; docs/policy.md describes checkers")
	}
	for _, n := range slices.Concat(list, checkers) {
		n.names, n.items = nil, nil // named with its rule
	}
}

// source is a rule on its way.
type geminiSource struct {
	source
	place     int      // in the file
	names     []string // of tools, as the source calls them
	prefixes  []string
	modes     []string
	regex     string // of commands
	args      string // a regular expression over arguments
	server    *node
	subagent  *node
	lacks     []string // conditions that no rule here has
	redirects bool
	except    []string // of a deny by pattern: tools here that are decided before
}

// bare reports whether a rule speaks of every call of its tools.
func (r *geminiSource) bare() bool {
	return r.args == "" && r.regex == "" && len(r.prefixes)+len(r.modes)+len(r.lacks) == 0 && r.subagent == nil
}

func (d gemini) source(n *node, place int) *geminiSource {
	r := &geminiSource{place: place}
	decision, message, priority := d.fields(n, r)
	says, known := verdicts[decision]
	shell := len(r.names) == 1 && r.names[0] == "run_shell_command"
	switch {
	case !known:
		d.mistake(n.line, "rule %d: the decision %q is none of allow, ask_user, deny", place, short(decision, 80))
	case priority < 0 || priority > 999:
		d.mistake(n.line, "rule %d: its priority is missing, or not from 0 to 999", place)
	case len(r.names) == 0 && r.server == nil:
		d.mistake(n.line, "rule %d: it names no tool", place)
	case (len(r.prefixes) > 0 || r.regex != "") && !shell:
		d.mistake(n.line, `rule %d: commandPrefix and commandRegex need toolName = "run_shell_command"`, place)
	case len(r.prefixes) > 0 && r.regex != "" || r.args != "" && (len(r.prefixes) > 0 || r.regex != ""):
		d.mistake(n.line, "rule %d: only one of commandPrefix, commandRegex and argsPattern may be given", place)
	}
	for _, m := range r.modes {
		if _, ok := geminiModes[m]; !ok {
			d.mistake(n.line, "rule %d: the mode %q is none of default, autoEdit, plan, yolo", place, short(m, 80))
		}
	}
	for i, name := range n.names {
		if !n.items[i].read {
			r.lacks = append(r.lacks, short(name, 80))
		}
	}
	r.source.line, r.says, r.base = n.line, says, policy.Rule{Priority: priority, Reason: short(message, 1000)}
	if r.server != nil {
		r.names = mcpNames(r.server.text, r.names)
	}
	r.text = r.describe(decision)
	r.stem = strings.Join(append([]string{decision}, r.names...), " ") + " " + strings.Join(r.prefixes, " ")
	return r
}

// fields reads the fields of a rule. Two of them had other names in older
// versions.
func (d gemini) fields(n *node, r *geminiSource) (decision, message string, priority int) {
	r.args, r.regex, decision = d.word(n, "argsPattern"), d.word(n, "commandRegex"), d.word(n, "decision")
	message = cmp.Or(d.word(n, "denyMessage"), d.word(n, "deny_message"))
	r.names, r.prefixes, r.modes = d.oneOrMore(n, "toolName"), d.oneOrMore(n, "commandPrefix"), d.oneOrMore(n, "modes")
	r.server, r.subagent = d.want(n, "mcpName", text), d.want(n, "subagent", text)
	r.redirects = d.flag(n, "allowRedirection", false)
	r.redirects = d.flag(n, "allow_redirection", r.redirects)
	priority = -1
	if p := n.at("priority"); p != nil && p.kind == number {
		if v, err := strconv.Atoi(p.text); err == nil {
			priority = v
		}
	}
	for _, name := range []string{"interactive", "toolAnnotations"} {
		if n.at(name) != nil {
			r.lacks = append(r.lacks, name)
		}
	}
	return decision, message, priority
}

// mcpNames are the whole names of tools of a server.
func mcpNames(server string, names []string) []string {
	if len(names) == 0 {
		names = []string{"*"}
	}
	out := make([]string, len(names))
	for i, n := range names {
		if server == "*" && n == "*" {
			out[i] = "mcp_*"
		} else {
			out[i] = "mcp_" + server + "_" + n
		}
	}
	return out
}

func (r *geminiSource) describe(decision string) string {
	parts := []string{decision + " " + strings.Join(r.names, ", ")}
	for _, p := range []struct{ name, value string }{{"commandPrefix", strings.Join(r.prefixes, ", ")}, {"commandRegex", r.regex}, {"argsPattern", r.args}, {"modes", strings.Join(r.modes, ", ")}} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	return strings.Join(parts, "; ")
}

func (d gemini) rule(r *geminiSource) {
	if why := r.narrow(); why != "" {
		d.drop(&r.source, why)
		return
	}
	if len(r.names) == 0 {
		d.noEffect(&r.source, "it never speaks: a rule before it decides all its calls")
		return
	}
	switch {
	case len(r.prefixes) > 0:
		for _, p := range r.prefixes {
			if r.says == policy.Allow && strings.HasSuffix(p, " ") {
				d.drop(&r.source, "which commands a prefix means that ends with a blank differs between versions of its program")
				return
			}
		}
		d.prefixes(r)
	case r.regex != "":
		d.regex(&r.source, r.regex)
	case r.args != "":
		d.args(r)
	default:
		d.tools(r)
	}
}

// narrow takes the conditions of a rule that aren't about the call itself. It
// returns why the rule can't be carried over, or nothing.
func (r *geminiSource) narrow() string {
	allow := r.says == policy.Allow
	for _, m := range r.modes {
		if allow {
			r.base.Mode = append(r.base.Mode, geminiModes[m].exact...)
		} else {
			r.base.Mode = append(r.base.Mode, geminiModes[m].wide...)
		}
	}
	r.base.Mode = slices.Compact(slices.Sorted(slices.Values(r.base.Mode)))
	if allow && len(r.modes) > 0 && len(r.base.Mode) == 0 {
		return "mode yolo is bypass here, which only an administrator permits"
	}
	if r.subagent != nil {
		if r.subagent.text == "" || strings.Contains(r.subagent.text, "*") {
			return "its subagent is none that a rule can name"
		}
		r.base.Agent = []string{r.subagent.text}
	}
	switch lacks := strings.Join(r.lacks, ", "); {
	case lacks == "":
	case r.says == policy.Ask || lacks == "interactive" && !allow:
		r.why = append(r.why, "it "+verb(r.says)+" its calls whatever "+lacks+" says")
	default:
		return "no rule here can ask for " + lacks
	}
	return ""
}

// tools carries a rule over whole tools.
func (d gemini) tools(r *geminiSource) {
	tools, strange := r.tools()
	if r.says != policy.Allow {
		for _, n := range strange {
			r.strange(n)
		}
	}
	if r.says == policy.Allow && len(strange) > 0 {
		if len(tools) == 0 {
			d.drop(&r.source, "there is no such tool here: "+strings.Join(strange, ", "))
			return
		}
		r.why = append(r.why, "there is no such tool here: "+strings.Join(strange, ", "))
	}
	m := policy.Match{Tool: tools}
	if r.says == policy.Deny && slices.ContainsFunc(tools, func(t string) bool { return strings.Contains(t, "*") }) {
		m.NotTool = r.except
	}
	if r.says == policy.Allow && slices.Contains(tools, "*") {
		d.drop(&r.source, "an allow of every tool is more than a rule should be; name the tools")
		return
	}
	if r.says == policy.Allow {
		d.allow(r, tools)
	} else {
		d.add(&r.source, m, nil, nil)
	}
	d.done(&r.source)
}

// allow allows whole tools. There files lie in the workspace, or the tool
// refuses; and a redirection is asked about unless the rule says otherwise.
func (d gemini) allow(r *geminiSource, tools []string) {
	var plain, writing []string
	for _, t := range tools {
		switch t {
		case "write", "edit":
			writing = append(writing, t)
		case "exec":
			r.why = append(r.why, notAll)
			if r.redirects {
				d.add(&r.source, policy.Match{Tool: exec}, nil, nil)
				continue
			}
			d.add(&r.source, policy.Match{Tool: exec, If: noRedirect}, example("make all"), []policy.Example{{Command: "make > log", Args: commandArgs("make > log")}})
		default:
			plain = append(plain, t)
		}
	}
	if len(plain) > 0 {
		d.add(&r.source, policy.Match{Tool: plain}, nil, nil)
	}
	if len(writing) > 0 {
		d.add(&r.source, policy.Match{Tool: writing, Path: &policy.PathMatch{Where: "inside"}}, []policy.Example{{Path: "x"}}, []policy.Example{{Path: "../x"}})
	}
}

// tools are the names here of a rule's tools, and those that nothing stands for.
func (r *geminiSource) tools() (tools, strange []string) {
	for _, n := range r.names {
		c, known := geminiTools[n]
		server, mcp := strings.CutPrefix(n, "mcp_")
		switch {
		case known && len(c.tools(r.says)) == 0 && r.says != policy.Allow:
			tools = append(tools, n)
		case known && len(c.tools(r.says)) > 0:
			tools = append(tools, c.tools(r.says)...)
		case n == "*":
			tools = append(tools, "*")
		case mcp && r.says != policy.Allow:
			// Where the server's name ends can't be told.
			tools = append(tools, strings.ReplaceAll("mcp_*"+strings.ReplaceAll(server, "_", "_*"), "**", "*"))
		case mcp && r.oneServer():
			tools = append(tools, "mcp__"+r.server.text+"__"+strings.TrimPrefix(server, r.server.text+"_"))
		case r.says == policy.Allow:
			strange = append(strange, n)
		default:
			strange, tools = append(strange, n), append(tools, strings.ToLower(n))
		}
	}
	slices.Sort(tools)
	return slices.Compact(tools), strange
}

// oneServer reports whether a rule names the tools of one server so that they can
// be told from others' here, where case doesn't matter.
func (r *geminiSource) oneServer() bool {
	return r.server != nil && !strings.Contains(r.server.text, "*") && !slices.ContainsFunc(r.names, func(n string) bool {
		return n != strings.ToLower(n) || strings.Contains(strings.TrimSuffix(n, "_*"), "*")
	})
}

func (d gemini) prefixes(r *geminiSource) {
	var left []string
	before := len(r.ids)
	for _, p := range r.prefixes {
		switch why := d.prefix(&r.source, p, false, false); {
		case why == "":
		case r.says == policy.Allow:
			left = append(left, p)
		default:
			d.drop(&r.source, why)
		}
	}
	if len(left) > 0 && len(r.ids) == before {
		d.drop(&r.source, "no program of these words can be allowed: "+strings.Join(left, ", "))
		return
	}
	if len(left) > 0 {
		r.why = append(r.why, "not allowed: "+strings.Join(left, ", "))
	}
	if r.says == policy.Allow && r.redirects {
		r.why = append(r.why, "a redirection is asked about")
	}
	d.done(&r.source)
}

// unsafeRegexp is how Gemini CLI finds regular expressions that could take long.
// It doesn't load their rules.
var unsafeRegexp = match.Lazy(`\([^)]*[*+?{].*\)[*+?{]`)

// regex carries a rule over commands whose text a regular expression fits
// from its beginning on.
func (d gemini) regex(s *source, re string) {
	why := regexpOf(re)
	if why == "" && s.says == policy.Allow {
		switch {
		case unsafeRegexp.Get().MatchString(re) || len(re) > 2048:
			why = "Gemini CLI doesn't load it: its regular expression could take long"
		case strings.ContainsAny(strings.ReplaceAll(re, `[^`, `[`), "^$"):
			why = "it never matches there: the command stands within a longer text"
		}
	}
	if why != "" {
		d.drop(s, why)
		return
	}
	if s.says == policy.Allow {
		if alternates(re) {
			s.why = append(s.why, "every part of its regular expression holds from the beginning of a command")
		}
		d.pattern(s, "^(?:"+re+")", "")
		return
	}
	d.pattern(s, "(?s)^"+re, "(?s)"+start+re)
}

// args carries a rule over arguments as JSON.
func (d gemini) args(r *geminiSource) {
	s := &r.source
	tools, strange := r.tools()
	for _, n := range strange {
		s.strange(n)
	}
	ofShell := !slices.ContainsFunc(r.names, func(n string) bool { return !slices.Equal(geminiTools[n].allow, exec) })
	re, ofCommand := strings.CutPrefix(r.args, `"command":"`)
	switch {
	case ofShell && ofCommand && re != "":
		d.regex(s, re)
	case s.says == policy.Allow:
		d.drop(s, "the arguments of tools have other names here")
	case ofShell && regexpOf(r.args) == "":
		if re := regexp.MustCompile(r.args); re.MatchString(`{"command":""}`) {
			d.finish(s, policy.Match{Tool: tools}, nil, nil)
			return
		}
		s.why = append(s.why, "it looks for the pattern anywhere in a command")
		d.pattern(s, "(?s)"+r.args, "(?s)"+r.args)
	case s.says == policy.Ask:
		s.why = append(s.why, "it asks about every call of the tool: its arguments have other names here")
		d.finish(s, policy.Match{Tool: tools}, nil, nil)
	default:
		d.drop(s, "the arguments of tools have other names here")
	}
}
