package manifest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/tool"
)

const schema = `
args:
  type: object
  properties:
    a: {type: string}
    b: {type: string}
    n: {type: number}
    v: {type: boolean}
    l: {type: array, items: {type: string}}
    m: {type: array, items: {type: integer}}
    e: {enum: [fast, slow]}
    o: {type: object}
    x: {}
stdin: "{*}"
`

func one(t *testing.T, text string) manifest.Command {
	t.Helper()
	all, err := manifest.Parse("m.yaml", []byte(text))
	if err != nil || len(all) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	return all[0]
}

// Guarantee: T40.
func TestArgvIsATemplateWithoutAShell(t *testing.T) {
	for _, c := range []struct{ argv, args, want string }{
		{`[p, a, b]`, `{}`, `p|a|b`},
		{`[p, 1, 2.5]`, `{}`, `p|1|2.5`},
		{`[p, "{a}"]`, `{"a":"x y; rm -rf / $(id) ` + "`id`" + `"}`, "p|x y; rm -rf / $(id) `id`"},
		{`[p, "{a}"]`, `{"a":""}`, `p|`},
		{`[p, "{a}", end]`, `{}`, `p|end`},
		{`[p, "--a={a}"]`, `{"a":"-x"}`, `p|--a=-x`},
		{`[p, "--a={a},{b}"]`, `{"a":"1","b":"2"}`, `p|--a=1,2`},
		{`[p, "--a={a},{b}"]`, `{"a":"1"}`, `p`},
		{`[p, "{n}"]`, `{"n":12345678901234567890}`, `p|12345678901234567890`},
		{`[p, "{v}"]`, `{"v":false}`, `p|false`},
		{`[p, "{l}"]`, `{"l":["a b","c"]}`, `p|a b|c`},
		{`[p, "{l}"]`, `{"l":[]}`, `p`},
		{`[p, "-f{l}"]`, `{"l":["a","b"]}`, `p|-fa|-fb`},
		{`[p, "{m}"]`, `{"m":[1,2]}`, `p|1|2`},
		{`[p, ["-o", "{a}"]]`, `{"a":"x"}`, `p|-o|x`},
		{`[p, ["-o", "{a}"]]`, `{}`, `p`},
		{`[p, ["-I", "{l}"]]`, `{"l":["a","b"]}`, `p|-I|a|-I|b`},
		{`[p, ["{a}", "{l}"]]`, `{"a":"k","l":["1","2"]}`, `p|k|1|k|2`},
		{`[p, {when: v, argv: ["-v"]}]`, `{"v":true}`, `p|-v`},
		{`[p, {when: v, argv: ["-v"]}]`, `{"v":false}`, `p`},
		{`[p, {when: v, argv: ["-v"]}]`, `{}`, `p`},
		{`[p, {when: a, argv: ["-a", "{b}"]}]`, `{"a":"x","b":"y"}`, `p|-a|y`},
		{`[p, "{{a}}", "x}}{{"]`, `{}`, `p|{a}|x}{`},
		{`[p, "--mode={e}", "-{e}"]`, `{"e":"fast"}`, `p|--mode=fast|-fast`},
		{`[p, "{x}"]`, `{"x":"t"}`, `p|t`},
		{`[p, "--", "{a}"]`, `{"a":"-x"}`, `p|--|-x`},
		{`[sh, -c, 'grep -e "$1" f', sh, "{a}"]`, `{"a":"; id"}`, `sh|-c|grep -e "$1" f|sh|; id`},
		{`[python3, tool.py, -c, "{a}"]`, `{}`, ``},
	} {
		if c.want == "" {
			if _, err := manifest.Parse("m.yaml", []byte("name: t\ndescription: d\nargv: "+c.argv+schema)); err == nil {
				t.Errorf("%s is taken", c.argv)
			}
			continue
		}
		m := one(t, "name: t\ndescription: d\nargv: "+c.argv+schema)
		v, err := manifest.ReadValues([]byte(c.args))
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Argv.Expand(v, m.Dash)
		if err != nil || strings.Join(got, "|") != c.want {
			t.Errorf("%s with %s: got %q, %v; want %s", c.argv, c.args, got, err, c.want)
		}
	}
}

// Argument injection: a value in the place of an argument must not become an
// option of the program.
// Guarantee: T40.
func TestAValueNeverBecomesAnOption(t *testing.T) {
	for _, c := range []struct{ argv, args, dash string }{
		{`[p, "{a}"]`, `{"a":"--output=/etc/passwd"}`, ""},
		{`[p, "{a}"]`, `{"a":"-"}`, ""},
		{`[p, "{l}"]`, `{"l":["ok","-rf"]}`, ""},
		{`[p, "{a}{b}"]`, `{"a":"","b":"-x"}`, ""},
		{`[p, "{a}-x"]`, `{"a":""}`, ""},
		{`[p, ["-o", "{a}"]]`, `{"a":"--exec"}`, ""},
		{`[p, "{n}"]`, `{"n":-5}`, ""},
		{`[p, "{m}"]`, `{"m":[1,-1]}`, ""},
		{`[p, {when: v, argv: ["{a}"]}]`, `{"v":true,"a":"-x"}`, ""},
		{`[p, "{a}", "--", "{b}"]`, `{"a":"-x","b":"-y"}`, ""},
		{`[p, "{a}", "{b}"]`, `{"a":"-x","b":"-y"}`, "dash: [a]\n"},
		{`[p, ["--", "x"], "{a}"]`, `{"a":"-x"}`, ""},
	} {
		m := one(t, "name: t\ndescription: d\n"+c.dash+"argv: "+c.argv+schema)
		v, err := manifest.ReadValues([]byte(c.args))
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Argv.Expand(v, m.Dash)
		e, ok := err.(*tool.Error)
		if !ok || e.Code != manifest.CodeLeadingDash || e.Class != tool.BadArguments {
			t.Errorf("%s with %s: got %q, %v", c.argv, c.args, got, err)
		}
	}
	m := one(t, "name: t\ndescription: d\ndash: [a]\nargv: [p, \"{a}\"]"+schema)
	v, _ := manifest.ReadValues([]byte(`{"a":"-x"}`))
	if got, err := m.Argv.Expand(v, m.Dash); err != nil || !slices.Equal(got, []string{"p", "-x"}) {
		t.Errorf("where it is allowed: %q, %v", got, err)
	}
}

// Guarantee: T40.
func TestMistakesNameTheirPlace(t *testing.T) {
	good := func(more string) string {
		return "name: t\ndescription: d\nargs: {type: object, properties: {a: {type: string}, o: {type: object}, l: {type: array, items: {type: string}}, k: {type: array, items: {type: string}}}}\nstdin: \"{*}\"\n" + more
	}
	for _, c := range []struct{ text, where, says string }{
		{"", "m.yaml", "is empty"},
		{"- a\n", "m.yaml:1:1", "a tool is an object"},
		{"description: d\nargv: [p]\n", "m.yaml:1:1", "no name"},
		{"name: a b\ndescription: d\nargv: [p]\n", "m.yaml:1:7", `"a b" is not a name`},
		{"name: t\nargv: [p]\n", "m.yaml:1:1", "no description"},
		{"name: t\ndescription: d\n", "m.yaml:1:1", "argv is empty"},
		{"name: t\ndescription: d\nargv: []\n", "m.yaml:3:7", "argv is empty"},
		{"name: t\ndescription: d\nargv: [p]\nshell: true\n", "m.yaml:4:1", `unknown field "shell"`},
		{"name: t\ndescription: d\nargv: sh\n", "m.yaml:3:7", "sequence is expected"},
		{"name: t\nname: u\n", "m.yaml:2:1", "already defined"},
		{good("argv: [\"{a}\"]\n"), "m.yaml:5:8", "no argument may choose it"},
		{good("argv: [[p, q]]\n"), "m.yaml:5:8", "no argument may choose it"},
		{good("argv: [p, \"{b}\"]\n"), "m.yaml:5:11", "there is no argument b; args has a, k, l, o"},
		{good("argv: [p, \"{a\"]\n"), "m.yaml:5:11", "begins no {argument}"},
		{good("argv: [p, \"a}\"]\n"), "m.yaml:5:11", "a } without a {"},
		{good("argv: [p, \"{o}\"]\n"), "m.yaml:5:11", "is an object"},
		{good("argv: [p, \"{*}\"]\n"), "m.yaml:5:11", "allowed in stdin only"},
		{good("argv: [p, \"{l}{k}\"]\n"), "m.yaml:5:11", "two lists"},
		{good("argv: [p, [\"{l}\", \"{k}\"]]\n"), "m.yaml:5:19", "two lists"},
		{good("argv: [p, \"--{a}\"]\n"), "m.yaml:5:11", "would choose the option"},
		{good("argv: [p, \"-{a}\"]\n"), "m.yaml:5:11", "would choose the option"},
		{good("argv: [p, []]\n"), "m.yaml:5:11", "an empty list"},
		{good("argv: [p, true]\n"), "m.yaml:5:11", "a word of the command line is a text"},
		{good("argv: [p, {if: a}]\n"), "m.yaml:5:12", "{when: ARGUMENT, argv: […]}"},
		{good("argv: [p, {when: z, argv: [x]}]\n"), "m.yaml:5:12", "there is no argument z"},
		{good("argv: [sh, -c, \"echo {a}\"]\n"), "m.yaml:5:16", "become code"},
		{good("argv: [/bin/bash, -lc, \"{a}\"]\n"), "m.yaml:5:24", "become code"},
		{good("argv: [env, -i, python3, -c, \"{a}\"]\n"), "m.yaml:5:30", "become code"},
		{good("argv: [node, --eval, \"{a}\"]\n"), "m.yaml:5:22", "become code"},
		{good("argv: [deno, eval, \"{a}\"]\n"), "m.yaml:5:20", "become code"},
		{good("argv: [perl, -ne, \"{a}\"]\n"), "m.yaml:5:19", "become code"},
		{good("argv: [p]\neffect: sometimes\n"), "m.yaml:6:9", "none of pure"},
		{good("argv: [p]\neffect: recoverable\n"), "m.yaml:6:9", "go together"},
		{good("argv: [p]\nrecover: {argv: [q]}\n"), "m.yaml", "go together"},
		{good("argv: [p]\nread_only: true\naccess: write\n"), "m.yaml:7:9", "read_only, and writes"},
		{good("argv: [p]\naccess: all\n"), "m.yaml:6:9", "neither read nor write"},
		{good("argv: [p]\npath: l\n"), "m.yaml:6:7", "no argument that is a string"},
		{good("argv: [p]\ntimeout: 3 days\n"), "m.yaml:6:10", "not a length of time"},
		{good("argv: [p]\ntimeout: 2h\n"), "m.yaml:6:10", "not a length of time"},
		{good("argv: [p]\noutput_limit: 10\n"), "m.yaml:6:15", "from 256"},
		{good("argv: [p]\ncwd: ../x\n"), "m.yaml:6:6", "without .."},
		{good("argv: [p]\ncwd: /x\n"), "m.yaml:6:6", "folder of the workspace"},
		{good("argv: [p]\nenv: {pass: [\"A B\"]}\n"), "m.yaml:6:14", "not the name of a variable"},
		{good("argv: [p]\nenv: {set: {API_TOKEN: x}}\n"), "m.yaml:6:24", "name of a secret"},
		{good("argv: [p]\nenv: {set: {A: \"{z}\"}}\n"), "m.yaml:6:16", "there is no argument z"},
		{good("argv: [p]\ncapabilities: [publish]\n"), "m.yaml:6:16", "not a capability"},
		{good("argv: [p]\ngroup: A B\n"), "m.yaml:6:8", "not a name for a group"},
		{good("argv: [p]\ndash: [z]\n"), "m.yaml:6:8", "there is no argument z"},
		{"name: t\ndescription: d\nargv: [p]\nargs: {type: array}\n", "m.yaml:4:8", "of type object"},
		{"name: t\ndescription: d\nargv: [p]\nargs: {type: object, properties: {a: {type: strin}}}\n", "m.yaml:4:8", "no type strin"},
		{"name: t\ndescription: d\nargv: [p]\nargs: {type: object, properties: {a: {$ref: \"http://x/y\"}}}\n", "m.yaml:4:8", "stand alone"},
		{"name: t\ndescription: d\nargv: [p]\nargs: {type: object, required: [a]}\n", "m.yaml:4:33", "required and not among"},
		{"name: t\ndescription: d\nargv: [p]\nargs: {type: object, properties: {a: {type: string}}}\n", "m.yaml:4:39", "never used"},
		{"name: t\ndescription: d\nargv: [p]\n---\nname: t\ndescription: d\nargv: [p]\n", "m.yaml:5:7", "declares t twice"},
	} {
		_, err := manifest.Parse("m.yaml", []byte(c.text))
		e, ok := err.(*belay.Error)
		if !ok || e.Code != belay.CodeBadManifest || e.Hint == "" || !strings.Contains(e.Message, c.says) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.says)
		} else if e.Where != c.where && !strings.HasPrefix(e.Where, c.where+":") {
			t.Errorf("%q: at %s, want %s (%s)", c.text, e.Where, c.where, e.Message)
		}
	}
}

// Guarantee: T41.
func TestWhatAManifestLeavesOutIsTheCarefulChoice(t *testing.T) {
	m := one(t, "name: t\ndescription: d\nargv: [p]\n")
	s := m.Spec
	if s.Effect != belay.AtMostOnce || s.ReadOnly || !s.Destructive || s.Access != belay.Write || s.Group != "commands" ||
		!slices.Equal(s.Capabilities, []string{"process"}) || len(m.Pass) != 0 || m.Timeout.String() != "2m0s" {
		t.Errorf("got %+v", m)
	}
	if want := `{"type":"object","properties":{},"additionalProperties":false}`; string(s.Input) != want {
		t.Errorf("got %s", s.Input)
	}
	if s.Definition != belay.DigestOf([]byte("name: t\ndescription: d\nargv: [p]\n")) || m.Where != "m.yaml:1" {
		t.Errorf("got %s %s", s.Definition, m.Where)
	}
}

func TestSchemasKeepTheirOrder(t *testing.T) {
	m := one(t, "name: t\ndescription: d\nargv: [p, \"{z}\", \"{a}\"]\nargs:\n  type: object\n  properties:\n    z: {type: string, default: \"1\"}\n    a: {type: integer, minimum: 1}\n  required: [z]\n")
	want := `{"type":"object","properties":{"z":{"type":"string","default":"1"},"a":{"type":"integer","minimum":1}},"required":["z"],"additionalProperties":false}`
	if string(m.Spec.Input) != want {
		t.Errorf("got %s", m.Spec.Input)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("name: t\ndescription: d\nargv: [p, \"{a}\", [\"-x\", \"{l}\"], {when: v, argv: [\"-v\"]}]"+schema, `{"a":"-x","l":["y"],"v":true}`)
	f.Add("name: t\ndescription: d\nargv: [p, '{a}']\nargs: {type: object, properties: {a: {}}}", `{"a":{}}`)
	f.Fuzz(func(t *testing.T, text, args string) {
		all, err := manifest.Parse("m.yaml", []byte(text))
		if err != nil {
			if e, ok := err.(*belay.Error); !ok || e.Hint == "" {
				t.Errorf("%q: %v has no hint", text, err)
			}
			return
		}
		v, err := manifest.ReadValues([]byte(args))
		if err != nil {
			return
		}
		for _, m := range all {
			argv, err := m.Argv.Expand(v, m.Dash)
			if err == nil && (len(argv) == 0 || argv[0] == "") {
				t.Errorf("%q with %s: no program in %q", text, args, argv)
			}
		}
	})
}
