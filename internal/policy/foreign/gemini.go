package foreign

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/pattern"
	"github.com/belay-run/belay/internal/policy"
)

// geminiTools are the tools of Gemini CLI and those that do the same here. What
// may be done in two ways here has both in what asks and denies.
var geminiTools = map[string]counterpart{
	"run_shell_command": {allow: exec}, "ShellTool": {allow: exec},
	"read_file": {allow: []string{"read"}}, "read_many_files": {allow: []string{"read"}},
	"list_directory": {allow: []string{"list"}}, "glob": {allow: []string{"glob"}},
	"grep_search": {allow: []string{"grep"}}, "search_file_content": {allow: []string{"grep"}},
	"write_file": {allow: []string{"write"}, more: []string{"patch"}}, "replace": {allow: []string{"edit"}, more: []string{"patch"}},
	"web_fetch": {allow: []string{"web_fetch"}}, "google_web_search": {allow: []string{"web_search"}},
	"save_memory": {allow: []string{"memory_store"}, more: []string{"memory_update", "memory_forget"}}, "write_todos": {allow: []string{"todo"}},
}

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

// gemini reads a policy file. Its rules are judged by falling priority, in the
// order of the file where that is equal; the first that matches decides. Here it
// is the same but for denies, which are final.
func (d *draft) gemini(content []byte) error {
	f, err := readTOML(content, d.o.Name)
	if err != nil {
		return err
	}
	if len(f.Rule) > policy.MaxRules {
		return d.mistake(0, "there are %d rules; %d are the most", len(f.Rule), policy.MaxRules)
	}
	if len(f.Rule)+len(f.SafetyChecker)+len(f.unknown) == 0 {
		return d.mistake(0, "there is no [[rule]] in it")
	}
	rules := make([]*geminiSource, len(f.Rule))
	for i := range f.Rule {
		if rules[i], err = d.geminiSource(&f.Rule[i]); err != nil {
			return err
		}
	}
	ordered := slices.Clone(rules)
	slices.SortStableFunc(ordered, func(a, b *geminiSource) int { return cmp.Compare(b.base.Priority, a.base.Priority) })
	before := &decided{whole: map[string]bool{}, part: map[string][]string{}}
	for _, r := range ordered {
		before.take(r)
	}
	for _, r := range rules {
		d.geminiRule(r)
	}
	for range f.SafetyChecker {
		d.drop(&source{text: "safety_checker", says: policy.Deny}, "what checks there doesn't run here; docs/policy.md describes checkers")
	}
	for _, u := range f.unknown {
		d.setting(u.name, u.line, "nothing is known of it here")
	}
	return nil
}

// geminiSource is a rule on its way.
type geminiSource struct {
	source
	*geminiRule
	names    []string // of tools, as the source calls them
	prefixes []string
	except   []string // of a deny by pattern: tools here that are decided before
}

// bare tells whether a rule speaks of every call of its tools.
func (r *geminiSource) bare() bool {
	return r.ArgsPattern == "" && r.CommandRegex == "" && len(r.prefixes) == 0 && len(r.Modes) == 0 && r.Subagent == nil && r.Interactive == nil && r.ToolAnnotations == nil && len(r.unknown) == 0
}

func (d *draft) geminiSource(g *geminiRule) (*geminiSource, error) {
	r := &geminiSource{geminiRule: g}
	var names, prefixes bool
	r.names, names = textList(g.ToolName)
	r.prefixes, prefixes = textList(g.CommandPrefix)
	says, known := verdicts[g.Decision]
	shell := len(r.names) == 1 && r.names[0] == "run_shell_command"
	n := g.line
	switch {
	case !names || !prefixes:
		return nil, d.mistake(n, "rule %d: toolName and commandPrefix are a text or a list of texts", g.place)
	case !known:
		return nil, d.mistake(n, "rule %d: the decision %q is none of allow, ask_user, deny", g.place, short(g.Decision, 80))
	case g.Priority == nil || *g.Priority < 0 || *g.Priority > 999:
		return nil, d.mistake(n, "rule %d: its priority is missing, or not from 0 to 999", g.place)
	case len(r.names) == 0 && g.McpName == nil:
		return nil, d.mistake(n, "rule %d: it names no tool", g.place)
	case (len(r.prefixes) > 0 || g.CommandRegex != "") && !shell:
		return nil, d.mistake(n, `rule %d: commandPrefix and commandRegex need toolName = "run_shell_command"`, g.place)
	case len(r.prefixes) > 0 && g.CommandRegex != "" || g.ArgsPattern != "" && (len(r.prefixes) > 0 || g.CommandRegex != ""):
		return nil, d.mistake(n, "rule %d: only one of commandPrefix, commandRegex and argsPattern may be given", g.place)
	}
	for _, m := range g.Modes {
		if _, ok := geminiModes[m]; !ok {
			return nil, d.mistake(n, "rule %d: the mode %q is none of default, autoEdit, plan, yolo", g.place, short(m, 80))
		}
	}
	r.source = source{line: n, says: says, base: policy.Rule{Priority: int(*g.Priority), Reason: short(g.DenyMessage, 1000)}}
	if g.McpName != nil {
		r.names = mcpNames(*g.McpName, r.names)
	}
	r.text = r.describe()
	r.stem = strings.Join(append([]string{g.Decision}, r.names...), " ") + " " + strings.Join(r.prefixes, " ")
	return r, nil
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

func (r *geminiSource) describe() string {
	parts := []string{r.Decision + " " + strings.Join(r.names, ", ")}
	for _, p := range []struct{ name, value string }{{"commandPrefix", strings.Join(r.prefixes, ", ")}, {"commandRegex", r.CommandRegex}, {"argsPattern", r.ArgsPattern}, {"modes", strings.Join(r.Modes, ", ")}} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	return strings.Join(parts, "; ")
}

func (d *draft) geminiRule(r *geminiSource) {
	if why := r.narrow(); why != "" {
		d.drop(&r.source, why)
		return
	}
	if len(r.names) == 0 {
		d.idle(&r.source, "it never speaks: a rule before it decides all its calls")
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
		d.geminiPrefixes(r)
	case r.CommandRegex != "":
		d.geminiRegex(&r.source, r.CommandRegex)
	case r.ArgsPattern != "":
		d.geminiArgs(r)
	default:
		d.geminiTools(r)
	}
}

// narrow takes the conditions of a rule that aren't about the call itself. It
// returns why the rule can't be carried over, or nothing.
func (r *geminiSource) narrow() string {
	allow := r.says == policy.Allow
	for _, m := range r.Modes {
		if allow {
			r.base.Mode = append(r.base.Mode, geminiModes[m].exact...)
		} else {
			r.base.Mode = append(r.base.Mode, geminiModes[m].wide...)
		}
	}
	r.base.Mode = slices.Compact(slices.Sorted(slices.Values(r.base.Mode)))
	if allow && len(r.Modes) > 0 && len(r.base.Mode) == 0 {
		return "mode yolo is bypass here, which only an administrator permits"
	}
	if r.Subagent != nil {
		if *r.Subagent == "" || strings.Contains(*r.Subagent, "*") {
			return "its subagent is none that a rule can name"
		}
		r.base.Agent = []string{*r.Subagent}
	}
	if r.SafetyChecker != nil {
		return "its safety checker doesn't run here"
	}
	var lacks []string
	if r.Interactive != nil {
		lacks = append(lacks, "interactive")
	}
	if r.ToolAnnotations != nil {
		lacks = append(lacks, "toolAnnotations")
	}
	lacks = append(lacks, r.unknown...)
	switch {
	case len(lacks) == 0:
	case r.says == policy.Ask || len(lacks) == 1 && lacks[0] == "interactive" && !allow:
		r.why = append(r.why, "it "+verb(r.says)+" its calls whatever "+strings.Join(lacks, ", ")+" says")
	default:
		return "no rule here can ask for " + strings.Join(lacks, ", ")
	}
	return ""
}

// geminiTools carries a rule over whole tools.
func (d *draft) geminiTools(r *geminiSource) {
	tools, strange := r.tools()
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
		d.geminiAllow(r, tools)
	} else {
		d.add(&r.source, m, nil, nil)
	}
	d.done(&r.source)
}

// geminiAllow allows whole tools. There files lie in the workspace, or the tool
// refuses; and a redirection is asked about unless the rule says otherwise.
func (d *draft) geminiAllow(r *geminiSource, tools []string) {
	var plain, writing []string
	for _, t := range tools {
		switch t {
		case "write", "edit":
			writing = append(writing, t)
		case "exec":
			r.why = append(r.why, notAll)
			if r.AllowRedirection {
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
		case known:
			tools = append(tools, c.tools(r.says)...)
		case n == "*":
			tools = append(tools, "*")
		case mcp && r.says != policy.Allow:
			// Where the server's name ends nobody can tell.
			tools = append(tools, strings.ReplaceAll("mcp_*"+strings.ReplaceAll(server, "_", "_*"), "**", "*"))
		case mcp && r.oneServer():
			tools = append(tools, "mcp__"+*r.McpName+"__"+strings.TrimPrefix(server, *r.McpName+"_"))
		case r.says == policy.Allow || strings.Contains(n, "*"):
			strange = append(strange, n)
		default:
			tools = append(tools, strings.ToLower(n))
		}
	}
	slices.Sort(tools)
	if tools = slices.Compact(tools); len(tools) == 0 && r.says != policy.Allow {
		tools = strange
	}
	return tools, strange
}

// oneServer tells whether a rule names the tools of one server so that they can
// be told from others' here, where case doesn't matter.
func (r *geminiSource) oneServer() bool {
	return r.McpName != nil && !strings.Contains(*r.McpName, "*") && !slices.ContainsFunc(r.names, func(n string) bool {
		return n != strings.ToLower(n) || strings.Contains(strings.TrimSuffix(n, "_*"), "*")
	})
}

func (d *draft) geminiPrefixes(r *geminiSource) {
	var left []string
	before := len(r.ids)
	for _, p := range r.prefixes {
		if words, plain := plainWords(p); r.says == policy.Allow && (!plain || strings.Contains(words[0], "/") || d.hidden(words[0])) {
			left = append(left, p)
			continue
		}
		d.prefix(&r.source, p, false, false)
	}
	if len(left) > 0 && len(r.ids) == before {
		d.drop(&r.source, "no program of these words can be allowed: "+strings.Join(left, ", "))
		return
	}
	if len(left) > 0 {
		r.why = append(r.why, "not allowed: "+strings.Join(left, ", "))
	}
	if r.says == policy.Allow && r.AllowRedirection {
		r.why = append(r.why, "a redirection is asked about")
	}
	d.done(&r.source)
}

// unsafeRegexp is how Gemini CLI finds regular expressions that could take long.
// It doesn't load their rules.
var unsafeRegexp = pattern.New(`\([^)]*[*+?{].*\)[*+?{]`)

// geminiRegex carries a rule over commands whose text a regular expression fits
// from its beginning on.
func (d *draft) geminiRegex(s *source, re string) {
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

// geminiArgs carries a rule over arguments as JSON.
func (d *draft) geminiArgs(r *geminiSource) {
	s := &r.source
	tools, _ := r.tools()
	re, ofCommand := strings.CutPrefix(r.ArgsPattern, `"command":"`)
	switch {
	case slices.Equal(tools, exec) && ofCommand && re != "":
		d.geminiRegex(s, re)
	case s.says == policy.Allow:
		d.drop(s, "the arguments of tools have other names here")
	case slices.Equal(tools, exec) && regexpOf(r.ArgsPattern) == "":
		if re := regexp.MustCompile(r.ArgsPattern); re.MatchString(`{"command":""}`) {
			d.add(s, policy.Match{Tool: tools}, nil, nil)
			d.done(s)
			return
		}
		s.why = append(s.why, "it looks for the pattern anywhere in a command")
		d.pattern(s, "(?s)"+r.ArgsPattern, "(?s)"+r.ArgsPattern)
	case s.says == policy.Ask:
		s.why = append(s.why, "it asks about every call of the tool: its arguments have other names here")
		d.add(s, policy.Match{Tool: tools}, nil, nil)
		d.done(s)
	default:
		d.drop(s, "the arguments of tools have other names here")
	}
}
