package rulefile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/policy"
)

func add(t *testing.T, l *rulefile.Layers, name, text string, tier policy.Tier, trusted bool) {
	t.Helper()
	if err := l.Add(name, []byte(text), tier, trusted); err != nil {
		t.Fatal(err)
	}
}

const everything = `version: 1
groups:
  deploy: [kubectl_*, helm]
caps:
  web_fetch: 5
owner_only: gateway
trusted: [~/src/**]
boundaries:
  tests:
    base: read-only
    write: [/srv/cache, /srv/out]
    read: /srv/data
    network: hosts
    hosts: ["proxy.test:443", ".pkg.test"]
    least: L3
    limits: {memory: 2GiB, file_size: 64MiB, output: 1048576, disk: 1GiB, cpu: 10m, wall: 1h, cpu_quota: 150%, processes: 64, open_files: 256}
rules:
  - id: all-matchers
    priority: 12
    verdict: ask
    reason: why
    code: WHY
    hint: do this
    tags: [a, b]
    boundary: tests
    when:
      tool: [exec, group:deploy]
      not_tool: [helm]
      does: changes
      mode: [default, auto]
      agent: rev*
      capability: process
      args:
        - {path: a.b, equals: 3}
        - {path: url, matches: "^https://"}
        - {path: list, contains: x}
        - {path: n, less: 4}
        - {path: m, greater: 1.5}
        - {path: o, exists: false}
      command: {program: git, not_program: sh, subcommand: [push], class: [network], prefix: [push], matches: "origin"}
      path: {match: "src/**", where: inside, access: write}
      host: ["*.example.com"]
      taint: any
      flow: egress
      level: L1
      rerun: true
      if: tool == "exec" && size(paths) < 3
`

func TestEveryFieldOfAFileIsRead(t *testing.T) {
	l := &rulefile.Layers{}
	add(t, l, "/u/policy.yaml", everything, policy.TierUser, true)
	set, err := l.Set(nil)
	if err != nil {
		t.Fatal(err)
	}
	doc := set.Document()
	r := doc.Rules[len(doc.Rules)-1]
	got := fmt.Sprintf("%s %s %d %s %v %v %v %v %v %v %v %d %+v %+v %v %v %v %s %v %s %s", r.ID, r.Tier, r.Priority, r.Verdict, r.Tool, r.NotTool, r.Does, r.Mode, r.Agent, r.Capability, r.Tags,
		len(r.Args), *r.Command, *r.Path, r.Host, r.Taint, r.Flow, r.Level, r.Rerun, r.If, r.Where)
	want := "all-matchers user 12 ask [exec group:deploy] [helm] [changes] [default auto] [rev*] [process] [a b] 6 {Program:[git] NotProgram:[sh] Subcommand:[push] Class:[network] Prefix:[push] Matches:origin} " +
		`{Match:[src/**] Where:inside Access:write} [*.example.com] [any] [egress] L1 true tool == "exec" && size(paths) < 3 /u/policy.yaml:18:5`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n, ok := set.CapOf("web_fetch"); !ok || n != 5 {
		t.Errorf("the cap is %d, %v", n, ok)
	}
	if fmt.Sprint(doc.OwnerOnly, doc.Groups[0].Tools, l.Trusted()) != "[gateway] [kubectl_* helm] [~/src/**]" {
		t.Errorf("got %v %v %v", doc.OwnerOnly, doc.Groups, l.Trusted())
	}
}

// Guarantee: G17.
func TestMistakesHaveAPlaceAndACode(t *testing.T) {
	rule := func(lines string) string { return "version: 1\nrules:\n  - id: a\n" + lines }
	for _, c := range []struct{ text, where, say string }{
		{"rules: []", "f:1:1", "version is missing"},
		{"version: 1\nrules: [", "f:2:8", ""},
		{"version: 1\nrule: []", "f:2:1", "unknown field"},
		{"- a", "f:1:1", "not a list of names"},
		{"version: x", "f:1:10", "want a number"},
		{"version: 0", "f:1:10", "no version 0"},
		{rule("    verdict: maybe"), "f:3:5", "none of allow, ask, deny"},
		{rule("    verdict: deny\n    priority: 1000"), "f:3:5", "0 to 999"},
		{rule("    verdict: deny\n    when: {does: flying}"), "f:3:5", "none of reads"},
		{rule("    verdict: deny\n    when: {mode: fast}"), "f:3:5", "none of default"},
		{rule("    verdict: deny\n    when: {tool: 'group:nope'}"), "f:3:5", "no group"},
		{rule("    verdict: deny\n    when: {args: [{path: a}]}"), "f:3:5", "one of equals"},
		{rule("    verdict: deny\n    when: {args: [{path: a, matches: '(a'}]}"), "f:3:5", "regular expression"},
		{rule("    verdict: deny\n    when: {args: [{path: a, matches: '((a{100}){100}){100}'}]}"), "f:3:5", "regular expression"},
		{rule("    verdict: deny\n    when: {args: [{path: a, matches: '(" + strings.Repeat("[a-z0-9]{500}", 40) + ")'}]}"), "f:3:5", "too large"},
		{rule("    verdict: deny\n    when: {if: 'tool = 3'}"), "f:3:5", "expression"},
		{rule("    verdict: deny\n    when: {if: 'size(tool)'}"), "f:3:5", "not true or false"},
		{rule("    verdict: deny\n    when: {if: '" + strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200) + "'}"), "f:3:5", "expression"},
		{rule("    verdict: deny\n    when: {command: {class: nice}}"), "f:3:5", "command.class"},
		{rule("    verdict: deny\n    when: {path: {where: there}}"), "f:3:5", "path.where"},
		{rule("    verdict: deny\n  - id: a\n    verdict: ask"), "f:5:5", "two rules have the id a; the other is at f:3:5"},
		{"version: 1\nrules:\n  - {id: Bad Id, verdict: deny}", "f:3:6", "is no id"},
		{rule("    verdict: deny\n    when: {tool: read}\n    examples: [{tool: write}]"), "f:3:5", `doesn't speak of its example tool "write"`},
		{rule("    verdict: deny\n    when: {command: {program: git}}\n    not_examples: [git push]"), "f:3:5", "must not match"},
		{rule("    verdict: deny\n    examples: [{args: .nan}]"), "f:3:5", "NaN"},
		{rule("    verdict: deny\n    when: {tool: read}\n    not_examples: [{tool: read}]"), "f:3:5", "must not match"},
		{"version: 1\ncapabilities: ['a b']", "f:2:15", "no capability"},
		{"version: 1\ncaps: {x: -1}", "f:2:11", "0 or more"},
		{"version: 1\ncheckers: [{id: c}]", "checker c", "doesn't fit"},
		{"version: 1\ncheckers: [{id: c, builtin: nope}]", "checker c", "nope"},
		{"version: 1\ncheckers: [{id: c, argv: [x], timeout: soon}]", "f:2:13", "duration"},
		{"version: 1\nrules: &a []", "f:2:8", "anchors"},
	} {
		l := &rulefile.Layers{}
		err := l.Add("f", []byte(c.text), policy.TierUser, true)
		if err == nil {
			_, err = l.Set(nil)
		}
		e, ok := errors.AsType[*belay.Error](err)
		if !ok || e.Code != belay.CodeBadPolicy || !strings.HasPrefix(e.Where, c.where) || !strings.Contains(e.Error(), c.say) || e.Hint == "" {
			t.Errorf("%q:\n got %#v\nwant it at %s, saying %q", short(c.text), err, c.where, c.say)
		}
	}
}

func short(s string) string { return s[:min(len(s), 120)] }

func TestANewerFileIsRefusedBeforeItIsJudged(t *testing.T) {
	err := (&rulefile.Layers{}).Add("f", []byte("version: 2\nnew_thing: []"), policy.TierUser, true)
	if belay.CodeOf(err) != belay.CodePolicyNewer {
		t.Errorf("got %v", err)
	}
}

// What is too much is refused whole and in bounded time.
// Guarantee: G17.
func TestBombsAreRefused(t *testing.T) {
	var many strings.Builder
	many.WriteString("version: 1\nrules:\n")
	for i := range 100_001 {
		fmt.Fprintf(&many, "- {id: r%d, verdict: deny}\n", i)
	}
	boundaries := "version: 1\nboundaries:\n"
	for i := range 101 {
		boundaries += fmt.Sprintf("  b%d: {}\n", i)
	}
	for name, text := range map[string]string{
		"10 MB":         "version: 1\n#" + strings.Repeat("x", 10<<20),
		"100,001 rules": many.String(), "deep": "version: 1\nrules: " + strings.Repeat("[", 5000),
		"101 boundaries": boundaries,
		"binary":         "version: 1\n\xff\xfe",
	} {
		begun := time.Now()
		l := &rulefile.Layers{}
		err := l.Add("f", []byte(text), policy.TierUser, true)
		if err == nil {
			_, err = l.Set(nil)
		}
		if belay.CodeOf(err) != belay.CodeBadPolicy {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v after %s", name, err, time.Since(begun).Round(time.Millisecond))
	}
}

// Guarantee: G17.
func TestIncludesAreReadOnceAndNeverInACircle(t *testing.T) {
	files := map[string]string{
		"/u/a.yaml":   "version: 1\ninclude: [d/b.yaml, c.yaml]\nrules: [{id: a, verdict: deny}]",
		"/u/d/b.yaml": "version: 1\nrules: [{id: b, verdict: deny}]",
		"/u/c.yaml":   "version: 1\ninclude: d/b.yaml\nrules: [{id: c, verdict: deny}]",
		"/u/x.yaml":   "version: 1\ninclude: y.yaml", "/u/y.yaml": "version: 1\ninclude: x.yaml",
		"/u/out.yaml": "version: 1\ninclude: ../etc/x.yaml", "/u/gone.yaml": "version: 1\ninclude: none.yaml",
	}
	read := func(path string) ([]byte, error) {
		if s, ok := files[path]; ok {
			return []byte(s), nil
		}
		return nil, fs.ErrNotExist
	}
	l := &rulefile.Layers{}
	place := func(l *rulefile.Layers, name string) error {
		return l.Place(rulefile.Instead{Files: []rulefile.File{{Path: name, Content: []byte(files[name])}}, Tier: policy.TierUser, Read: read})
	}
	if err := place(l, "/u/a.yaml"); err != nil || l.Empty() {
		t.Fatal(err)
	}
	set, err := l.Set(nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range set.Document().Rules {
		if r.Tier == policy.TierUser {
			ids = append(ids, r.ID)
		}
	}
	if fmt.Sprint(ids, l.Files()) != "[b c a] [/u/a.yaml /u/d/b.yaml /u/c.yaml]" {
		t.Errorf("got %v %v", ids, l.Files())
	}
	for name, say := range map[string]string{"/u/x.yaml": "/u/x.yaml → /u/y.yaml → /u/x.yaml", "/u/out.yaml": "outside", "/u/gone.yaml": "can't be read"} {
		err := place(&rulefile.Layers{}, name)
		if belay.CodeOf(err) != belay.CodeBadPolicy || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&rulefile.Layers{Read: read}).Add("/w/.belay/policy.yaml", []byte(files["/u/c.yaml"]), policy.TierWorkspace, true); err == nil {
		t.Error("a workspace includes files")
	}
}

const stranger = `version: 1
trusted: ["/**"]
rules:
  - {id: yes, verdict: allow, when: {tool: exec}}
  - {id: maybe, verdict: ask, when: {tool: read}}
  - {id: "no", verdict: deny, when: {tool: write}}
checkers:
  - {id: run-me, argv: [./evil], when: {tool: special}}
`

// What a stranger's file says can only make verdicts stricter.
// Guarantee: G13.
func TestAnUntrustedFileOnlyNarrows(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		l := &rulefile.Layers{}
		add(t, l, "/w/.belay/policy.yaml", stranger, policy.TierWorkspace, trusted)
		set, err := l.Set(nil)
		if err != nil {
			t.Fatal(err)
		}
		verdict := func(tool string, readOnly bool) policy.Decision {
			return policy.Evaluate(set, &policy.Request{Tool: belay.ToolSpec{Name: tool, ReadOnly: readOnly}, Mode: belay.ModeDefault}).Decision
		}
		want := policy.Ask
		if trusted {
			want = policy.Allow
		}
		if got := verdict("exec", false); got != want {
			t.Errorf("trusted %v: exec is %s", trusted, got)
		}
		if verdict("read", true) != policy.Ask || verdict("write", false) != policy.Deny {
			t.Errorf("trusted %v: what narrows doesn't count", trusted)
		}
		var ignored []string
		for _, i := range l.Ignored() {
			ignored = append(ignored, i.What+" "+i.Where)
		}
		say := "trusted /w/.belay/policy.yaml:2:10"
		if !trusted {
			say += ", rule yes /w/.belay/policy.yaml:4:6, checker run-me /w/.belay/policy.yaml:8:6"
		}
		if got := strings.Join(ignored, ", "); got != say {
			t.Errorf("ignored: %s", got)
		}
		if len(l.Trusted()) > 0 || len(set.Document().Checkers) != map[bool]int{true: 1}[trusted] {
			t.Errorf("trusted %v: %v %v", trusted, l.Trusted(), set.Document().Checkers)
		}
	}
}

func TestASetSurvivesEncodingAndDecoding(t *testing.T) {
	l := &rulefile.Layers{}
	add(t, l, "/u/policy.yaml", everything, policy.TierUser, true)
	set, err := l.Set([]policy.Group{{Name: "files", Tools: []string{"read"}}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := set.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := policy.Decode(raw)
	if err != nil || again.Digest() != set.Digest() || set.Digest() != belay.DigestOf(raw) {
		t.Errorf("%v: %s became %s", err, set.Digest(), again.Digest())
	}
}

// What doesn't count must be right all the same: a mistake in it would show only
// to who trusts the file.
func TestAMistakeInWhatDoesNotCountIsSaid(t *testing.T) {
	rule := func(lines string) string { return "version: 1\nrules:\n  - id: a\n    verdict: allow\n" + lines }
	for text, say := range map[string]string{
		rule("    priority: 1001"): "0 to 999", rule("    priority: -1"): "0 to 999", rule("    when: {tool: 'group:nope'}"): "no group", rule("    when: {if: 'tool = 3'}"): "expression",
		rule("    when: {tool: read}\n    examples: [{tool: write}]"): "doesn't speak", rule("  - id: a\n    verdict: deny"): "two rules have the id a",
		"version: 1\ncheckers: [{id: c, argv: [x], on_error: allow}]": "can't fail open", "version: 1\ncheckers: [{id: c, provider: p, model: m}]": "needs a provider, a model and instructions", "version: 1\ncheckers: [{id: c, model: m, instructions: x}]": "needs a provider", "version: 1\ncheckers: [{id: c, provider: p, model: m, instructions: ' '}]": "needs a provider",
		"version: 1\ncheckers: [{id: c, provider: p, model: m, instructions: x, on_error: allow}]": "can't fail open", "version: 1\ncheckers: [{id: c, provider: p, model: m, instructions: x, url: 'http://a'}]": "doesn't fit",
		"version: 1\ncheckers: [{id: c, provider: p, model: m, instructions: " + strings.Repeat("x", 9000) + "}]": "9000 bytes", "version: 1\ncheckers: [{id: c, provider: p, model: m, instructions: x, timeout: 10m}]": "more than 5m",
		"version: 1\ncheckers: [{id: c, argv: [x], when: {does: flying}}]": "none of reads",
	} {
		for _, trusted := range []bool{false, true} {
			l := &rulefile.Layers{}
			add(t, l, "/w/.belay/policy.yaml", text, policy.TierWorkspace, trusted)
			_, err := l.Set(nil)
			if e, ok := errors.AsType[*belay.Error](err); !ok || e.Code != belay.CodeBadPolicy || e.Where == "" || !strings.Contains(e.Error(), say) {
				t.Errorf("trusted %v, %q: %v, want one that says %q", trusted, text, err, say)
			}
		}
	}
}
