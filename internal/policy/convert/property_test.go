package convert

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// A call of the tests: a command line of simple commands, or a file.
type call struct {
	parts []string // of a line
	join  string   // between them
	tool  string   // of a file: read, write, edit
	path  string
	host  string
}

func (c call) line() string { return strings.Join(c.parts, c.join) }

var (
	atPlace = policy.Place{Workspace: "/w/p", Home: "/home/u"}
	execOf  = belay.ToolSpec{Name: "exec", Destructive: true, Access: belay.Write, Capabilities: []string{"process"}, Command: &belay.CommandArgs{Line: "command", Argv: "argv", Dir: "dir", Env: "env"}}
)

func (c call) request(mode belay.Mode) policy.Request {
	r := policy.Request{Mode: mode, Workspace: atPlace.Workspace, Level: "L0"}
	switch {
	case len(c.parts) > 0:
		r.Tool, r.Args = execOf, commandArgs(c.line())
		r.Commands = policy.CommandsOf(r.Tool, r.Args, atPlace)
	case c.host != "":
		r.Tool = belay.ToolSpec{Name: "web_fetch", ReadOnly: true, HostArg: "url", Capabilities: []string{"network"}}
		r.Args = json.RawMessage(fmt.Sprintf(`{"url":%q}`, "https://"+c.host+"/"))
	default:
		r.Tool = belay.ToolSpec{Name: c.tool, ReadOnly: c.tool == "read", PathArg: "path", Access: belay.Write}
		if c.tool == "read" {
			r.Tool.Access = belay.Read
		}
		r.Paths, r.Args = []string{c.path}, json.RawMessage(fmt.Sprintf(`{"path":%q}`, c.path))
	}
	return r
}

// judged is what the rules say together with the built-in ones, and whether a
// rule that was carried over is what allows.
func judged(t *rapid.T, r *Result, c call, mode belay.Mode) (policy.Verdict, bool) {
	set, err := policy.Compile(policy.Document{Version: 1, Rules: slices.Concat(policy.BuiltinRules(), r.Document.Rules)})
	if err != nil {
		t.Fatal(err)
	}
	asked := c.request(mode)
	v := policy.Evaluate(set, &asked)
	by := v.Decision == policy.Allow && strings.HasPrefix(v.Rule, "user/")
	for _, j := range v.Commands {
		by = by || v.Decision == policy.Allow && j.Decision == policy.Allow && strings.HasPrefix(j.Rule, "user/")
	}
	return v, by
}

// hold is the law of an import: what the source denies is denied, what it asks
// about isn't allowed, and no rule that was carried over allows what it doesn't.
func hold(t *rapid.T, r *Result, c call, source policy.Decision, ruled, mineAllows bool) {
	v, by := judged(t, r, c, belay.ModeDefault)
	lost := r.Count(Lost) > 0
	text := fmt.Sprintf("%q %s %s %s: the source says %q (by a rule: %t), here it is %s by %s", c.line(), c.tool, c.path, c.host, source, ruled, v.Decision, v.Rule)
	switch {
	case source == policy.Deny && ruled && !lost && v.Decision != policy.Deny:
		t.Fatalf("a deny is lost: %s", text)
	case source == policy.Ask && ruled && !lost && v.Decision == policy.Allow:
		t.Fatalf("an ask is lost: %s", text)
	case by && !mineAllows:
		t.Fatalf("it widens: %s", text)
	}
}

var (
	programs = []string{"git status", "git push origin main", "git push", "git diff HEAD", "npm test", "npm run build", "npm run build x", "rm -rf build", "sudo rm -rf x", "timeout 5 git push", "FOO=1 git status",
		"git status > out", "git  status", `"git" status`, "ls", "lsof", "make all", "/usr/bin/git push", "./git status", "time git push", "env git push", "echo $(git push)", "curl https://x.example", "git -C x push", `git "push origin"`, "nice npm test", "cat .env"}
	prefixes = []string{"git", "git status", "git push", "npm", "npm run build", "rm -rf", "sudo", "ls", "curl", "./git", "/usr/bin/git", "timeout", "make", "echo", "env", "cat"}
	regexes  = []string{"git (status|diff)", "git .*", "npm|git push", "rm -rf", ".*push", "git (?!push)", "^git", "ls", `git\s+push`, "(a+)+", `.*main\b`, "sudo"}
)

func anyLine(t *rapid.T) call {
	return call{parts: rapid.SliceOfN(rapid.SampledFrom(programs), 1, 3).Draw(t, "parts"), join: rapid.SampledFrom([]string{" && ", " ; ", " | ", " || "}).Draw(t, "join")}
}

// Gemini CLI's way to judge, in few lines: the first rule by priority and order
// whose pattern fits the arguments as JSON; then each simple command on its own;
// the strictest counts. Sources: its policy engine and its loader.
type geminiModel struct{ rules []geminiTest }

type geminiTest struct {
	prefix, regex string
	tool          string
	decision      string
	priority      int
}

func (g geminiTest) pattern() *regexp.Regexp {
	text := ""
	switch {
	case g.prefix != "":
		raw, _ := json.Marshal(g.prefix)
		text = `"command":"` + regexp.QuoteMeta(string(raw[1:len(raw)-1])) + `(?:[\s"]|\\")`
	case g.regex != "":
		if strings.Contains(g.regex, "(?!") || unsafeRegexp.Get().MatchString(g.regex) {
			return nil // RE2 can't; what isn't loaded never fits
		}
		text = `"command":"` + g.regex
	default:
		text = ``
	}
	return regexp.MustCompile(text)
}

func (m geminiModel) first(tool, line string) (policy.Decision, bool) {
	args := string(commandArgs(line))
	for _, g := range m.rules {
		re := g.pattern()
		if (g.tool == tool || g.tool == "*") && re != nil && (tool == "run_shell_command" && re.MatchString(args) || tool != "run_shell_command" && g.prefix+g.regex == "") {
			return verdicts[g.decision], true
		}
	}
	return policy.Ask, false
}

// judge is what becomes of a call; ruled says that a rule and not the default
// decides, mine whether every part that isn't the default's is allowed.
func (m geminiModel) judge(c call) (d policy.Decision, ruled, mine bool) {
	if c.tool != "" {
		d, ruled = m.first(map[string]string{"read": "read_file", "write": "write_file", "edit": "replace"}[c.tool], "")
		return d, ruled, d == policy.Allow
	}
	d, ruled = m.first("run_shell_command", c.line())
	mine = false
	for _, p := range c.parts {
		sub, by := m.first("run_shell_command", p)
		if strings.Contains(p, ">") && sub == policy.Allow {
			sub, by = policy.Ask, false
		}
		mine = mine || sub == policy.Allow
		if policy.Join(d, sub) != d || sub == d && by {
			d, ruled = policy.Join(d, sub), by
		}
	}
	return d, ruled, mine
}

// Guarantee: G46.
func TestGeminiNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m geminiModel
		var toml strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "rules") {
			g := geminiTest{tool: "run_shell_command", decision: rapid.SampledFrom([]string{"allow", "ask_user", "deny"}).Draw(t, "decision"), priority: rapid.IntRange(0, 3).Draw(t, "priority")}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				g.tool = rapid.SampledFrom([]string{"read_file", "write_file", "replace", "*", "run_shell_command"}).Draw(t, "tool")
			case 1:
				g.regex = rapid.SampledFrom(regexes).Draw(t, "regex")
			default:
				g.prefix = rapid.SampledFrom(prefixes).Draw(t, "prefix")
			}
			m.rules = append(m.rules, g)
			fmt.Fprintf(&toml, "[[rule]]\ntoolName = %q\ndecision = %q\npriority = %d\n", g.tool, g.decision, g.priority)
			if g.prefix != "" {
				fmt.Fprintf(&toml, "commandPrefix = %q\n", g.prefix)
			}
			if g.regex != "" {
				fmt.Fprintf(&toml, "commandRegex = '%s'\n", g.regex)
			}
		}
		slices.SortStableFunc(m.rules, func(a, b geminiTest) int { return b.priority - a.priority })
		r, err := Read(Gemini, []byte(toml.String()), Options{Name: "F"})
		if err != nil {
			t.Fatal(err)
		}
		c := anyLine(t)
		if rapid.IntRange(0, 3).Draw(t, "file") == 0 {
			c = call{tool: rapid.SampledFrom([]string{"read", "write", "edit"}).Draw(t, "which"), path: "a"}
		}
		d, ruled, mine := m.judge(c)
		if d != policy.Deny {
			d, ruled, mine = m.judge(respelled(c))
		}
		hold(t, r, c, d, ruled, mine)
	})
}

// respelled is a call whose commands are spelled as a rule spells them: words are
// what is compared here.
func respelled(c call) call {
	c.parts = slices.Clone(c.parts)
	for i, p := range c.parts {
		c.parts[i] = strings.NewReplacer(`"git" `, "git ", "git  ", "git ").Replace(p)
	}
	return c
}

// Claude Code's way: deny before ask before allow; a prefix ends at a word; what
// a wrapper runs is compared without it in denies and asks, and every simple
// command of a line must be allowed. Paths are as in .gitignore. Source: its
// documentation of permissions.
func claudeFits(rule string, c call, p string) bool {
	m := claudeRule.Get().FindStringSubmatch(rule)
	name, spec := m[1], m[2]
	switch {
	case p != "":
		if name != "Bash" {
			return false
		}
		if spec == "" {
			return true
		}
		for strings.HasPrefix(p, "timeout 5 ") || strings.HasPrefix(p, "nice ") || strings.HasPrefix(p, "time ") {
			p = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(p, "timeout 5 "), "nice "), "time ")
		}
		begin, open := strings.CutSuffix(spec, ":*")
		return p == begin || open && strings.HasPrefix(p, begin+" ")
	case c.host != "":
		return name == "WebFetch" && (spec == "" || strings.TrimPrefix(spec, "domain:") == c.host)
	}
	fits := map[string][]string{"read": {"Read"}, "edit": {"Edit"}, "write": {"Edit", "Write"}}[c.tool]
	return slices.Contains(fits, name) && (spec == "" || ignored(spec, c.path))
}

// ignored is a small reading of .gitignore: anchored if there is a slash within,
// and a folder means what is below.
func ignored(pattern, p string) bool {
	whole := path.Join("/w/p", p)
	if strings.HasPrefix(p, "/") {
		whole = path.Clean(p)
	}
	anchor := "/w/p/"
	switch {
	case strings.HasPrefix(pattern, "//"):
		anchor, pattern = "/", strings.TrimLeft(pattern, "/")
	case strings.HasPrefix(pattern, "~/"):
		anchor, pattern = "/home/u/", pattern[2:]
	case strings.HasPrefix(pattern, "./") || strings.HasPrefix(pattern, "/"):
		pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "."), "/")
	case !strings.Contains(pattern, "/"):
		pattern = "**/" + pattern
	}
	re := regexp.QuoteMeta(pattern)
	re = strings.NewReplacer(`\*\*/`, `(?:.*/)?`, `/\*\*`, `/.*`, `\*\*`, `.*`, `\*`, `[^/]*`).Replace(re)
	return regexp.MustCompile(`^` + regexp.QuoteMeta(anchor) + re + `(?:/.*)?$`).MatchString(whole)
}

// Guarantee: G46.
func TestClaudeNeverWidens(t *testing.T) {
	rules := []string{"Bash", "Read", "Edit", "Write", "WebFetch", "WebFetch(domain:x.example)", "Bash(git push origin main)", "Bash(npm run build)", "Read(.env)", "Read(./secrets/**)", "Read(//w/p/src/**)",
		"Read(//etc/**)", "Read(~/.ssh/**)", "Edit(src/**)", "Edit(/a.md)", "Edit(*.md)", "Write(docs/*)", "Edit(//w/**)", "Read(**/key.pem)", "Edit(**)", "Edit(*)", "Edit(**/*.md)", "Write(./a.md)"}
	for _, p := range prefixes {
		rules = append(rules, "Bash("+p+":*)")
	}
	files := []string{".env", "a/.env", "secrets/x", "src/a.go", "./src/a.go", "/w/p/src/a.go", "src/../.env", "/etc/passwd", "../../etc/passwd", "/home/u/.ssh/id", "a.md", "docs/a.md", "docs/x/a.md", "src//b/key.pem", "/etc/a.md", "../a.md", "/home/u/x.md"}
	rapid.Check(t, func(t *rapid.T) {
		var lists [3][]string
		for i := range lists {
			lists[i] = rapid.SliceOfNDistinct(rapid.SampledFrom(rules), 0, 3, rapid.ID).Draw(t, "list")
		}
		raw, _ := json.Marshal(struct {
			Permissions struct {
				Deny  []string `json:"deny,omitempty"`
				Ask   []string `json:"ask,omitempty"`
				Allow []string `json:"allow,omitempty"`
			} `json:"permissions"`
		}{struct {
			Deny  []string `json:"deny,omitempty"`
			Ask   []string `json:"ask,omitempty"`
			Allow []string `json:"allow,omitempty"`
		}{lists[0], lists[1], lists[2]}})
		r, err := Read(Claude, raw, Options{Name: "F", Home: "/home/u"})
		if err != nil {
			t.Fatal(err)
		}
		var c call
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			c = anyLine(t)
		case 1:
			c = call{tool: rapid.SampledFrom([]string{"read", "edit", "write"}).Draw(t, "tool"), path: rapid.SampledFrom(files).Draw(t, "path")}
		default:
			c = call{host: rapid.SampledFrom([]string{"x.example", "y.example"}).Draw(t, "host")}
		}
		fits := func(l []string, p string) bool {
			return slices.ContainsFunc(l, func(rule string) bool { return claudeFits(rule, c, p) })
		}
		parts := respelled(c).parts
		if len(parts) == 0 {
			parts = []string{""}
		}
		any := func(l []string) bool { return slices.ContainsFunc(parts, func(p string) bool { return fits(l, p) }) }
		d, ruled := policy.Ask, false
		switch {
		case any(lists[0]):
			d, ruled = policy.Deny, true
		case any(lists[1]):
			d, ruled = policy.Ask, true
		case !slices.ContainsFunc(parts, func(p string) bool { return !fits(lists[2], p) }):
			d, ruled = policy.Allow, true
		}
		hold(t, r, c, d, ruled, d != policy.Deny && any(lists[2]))
	})
}

// Cowork's way: rules with an exact action before those with *, in their order.
// Guarantee: G46.
func TestCoworkNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type rule struct{ action, decision, when string }
		var rules []rule
		var list []string
		for i := range rapid.IntRange(0, 6).Draw(t, "rules") {
			r := rule{rapid.SampledFrom([]string{"file.read", "file.write", "file.create", "file.*", "*"}).Draw(t, "action"), rapid.SampledFrom([]string{"allow", "allow_with_confirm", "deny"}).Draw(t, "decision"),
				rapid.SampledFrom([]string{"", `"pathWithinGrant":true`, `"pathWithinGrant":false`, `"matchesPattern":["**/.env"]`, `"matchesPattern":["/w/p/src/**"]`, `"fileSizeGreaterThan":10`}).Draw(t, "when")}
			rules = append(rules, r)
			list = append(list, fmt.Sprintf(`{"id":"r%d","action":%q,"decision":%q,"when":{%s}}`, i, r.action, r.decision, r.when))
		}
		fallback := rapid.SampledFrom([]string{"allow", "allow_with_confirm", "deny"}).Draw(t, "fallback")
		res, err := Read(Cowork, []byte(`{"version":"1.0","defaults":{"fallback":"`+fallback+`"},"rules":[`+strings.Join(list, ",")+`]}`), Options{Name: "F"})
		if err != nil {
			t.Fatal(err)
		}
		c := call{tool: rapid.SampledFrom([]string{"read", "edit"}).Draw(t, "tool"), path: rapid.SampledFrom([]string{"a", "src/a", ".env", "/etc/x", "../x", "/w/p/src/b"}).Draw(t, "path")}
		action := map[string]string{"read": "file.read", "edit": "file.write"}[c.tool]
		whole := path.Join("/w/p", c.path)
		if strings.HasPrefix(c.path, "/") {
			whole = c.path
		}
		holds := func(when string) bool {
			inside := strings.HasPrefix(whole, "/w/p/")
			return map[string]bool{"": true, `"pathWithinGrant":true`: inside, `"pathWithinGrant":false`: !inside, `"matchesPattern":["**/.env"]`: path.Base(whole) == ".env",
				`"matchesPattern":["/w/p/src/**"]`: strings.HasPrefix(whole, "/w/p/src/")}[when]
		}
		d, ruled := coworkVerdicts[fallback], fallback != "allow"
		for _, exact := range []bool{false, true} { // what comes last here comes first there
			for _, r := range slices.Backward(rules) {
				if policy.Like(r.action, action) && (r.action == action) == exact && holds(r.when) {
					d, ruled = coworkVerdicts[r.decision], true
				}
			}
		}
		hold(t, res, c, d, ruled, d == policy.Allow)
	})
}

// OpenClaw's way: a profile, a list of what there is and one of what there isn't,
// for everybody and then for an agent; each layer only narrows.
// Guarantee: G46.
func TestOpenClawNeverWidens(t *testing.T) {
	terms := []string{"read", "write", "exec", "process", "proc*", "group:fs", "group:runtime", "group:web", "web_*", "*", "bash", "apply_patch", "Message"}
	members := func(l []string) (out []string) {
		for _, w := range l {
			if g, ok := strings.CutPrefix(strings.ToLower(w), "group:"); ok {
				out = append(out, openclawGroups[g]...)
			} else {
				out = append(out, strings.ToLower(strings.Replace(w, "bash", "exec", 1)))
			}
		}
		return out
	}
	has := func(l []string, name string) bool {
		return slices.ContainsFunc(members(l), func(p string) bool { return policy.Like(p, name) })
	}
	here := map[string][]string{"read": {"read"}, "write": {"write"}, "exec": {"exec"}, "process": {"process", "process_send"}, "apply_patch": {"patch"}, "web_fetch": {"web_fetch"}, "message": {"message"}}
	rapid.Check(t, func(t *rapid.T) {
		type layer struct {
			Profile string   `json:"profile,omitempty"`
			Allow   []string `json:"allow,omitempty"`
			Deny    []string `json:"deny,omitempty"`
		}
		draw := func() layer {
			return layer{rapid.SampledFrom([]string{"", "minimal", "coding", "messaging", "full"}).Draw(t, "profile"),
				rapid.SliceOfN(rapid.SampledFrom(terms), 0, 2).Draw(t, "allow"), rapid.SliceOfN(rapid.SampledFrom(terms), 0, 2).Draw(t, "deny")}
		}
		all, own := draw(), draw()
		one, _ := json.Marshal(all)
		two, _ := json.Marshal(own)
		agents := rapid.SampledFrom([]string{`"list":[{"id":"a","tools":%s}]`, `"entries":{"a":{"tools":%s}}`}).Draw(t, "form")
		r, err := Read(OpenClaw, []byte(`{"tools":`+string(one)+`,"agents":{`+fmt.Sprintf(agents, two)+`}}`), Options{Name: "F"})
		if err != nil {
			t.Fatal(err)
		}
		set, err := policy.Compile(policy.Document{Version: 1, Rules: slices.Concat(policy.BuiltinRules(), r.Document.Rules)})
		if err != nil {
			t.Fatal(err)
		}
		name := rapid.SampledFrom([]string{"read", "write", "exec", "process", "apply_patch", "web_fetch", "message"}).Draw(t, "tool")
		agent := rapid.SampledFrom([]string{"", "a"}).Draw(t, "agent")
		there := func(l layer, profile string) bool {
			able := func(list []string) bool { return has(list, name) || name == "apply_patch" && has(list, "write") }
			return (openclawProfiles[profile] == nil || able(openclawProfiles[profile])) && (len(l.Allow) == 0 || able(l.Allow)) && !has(l.Deny, name)
		}
		profile := all.Profile
		if agent == "a" && own.Profile != "" {
			profile = own.Profile
		}
		available := there(all, profile) && (agent == "" || there(own, ""))
		v := policy.Evaluate(set, &policy.Request{Tool: belay.ToolSpec{Name: rapid.SampledFrom(here[name]).Draw(t, "tool here"), ReadOnly: name == "read"}, Mode: belay.ModeDefault, Agent: agent, Args: json.RawMessage(`{}`)})
		if !available && v.Decision != policy.Deny || strings.HasPrefix(v.Rule, "user/") && v.Decision == policy.Allow {
			t.Fatalf("%s for %q: there it is available: %t; here it is %s by %s\n%s\n%s", name, agent, available, v.Decision, v.Rule, one, two)
		}
	})
}
