package template

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

func parse(t *testing.T, text string) *Template {
	t.Helper()
	x, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

const head = "name: a\nversion: 1.0.0\ndomain: code\nkind: fix\n"

func TestRender(t *testing.T) {
	x := parse(t, head+`
variables:
  what: {required: true}
  n: {type: integer, min: 1, max: 9, default: 3}
  ratio: {type: number}
  deep: {type: boolean, default: false}
  how: {type: choice, choices: [slow, fast], default: fast}
  points: {type: list}
  file: {type: path}
prompt: |
  {{what}} {{ n }} {{how}}{{#ratio}} at {{ratio}}{{/ratio}}

  {{#points}}
  See:
  {{points}}
  {{/points}}

  {{#file}}In {{file}}.{{/file}}
  {{#deep}}Deep.{{/deep}}{{^deep}}Flat.{{/deep}}
`)
	for name, c := range map[string]struct {
		values map[string]string
		want   string
	}{
		"defaults":               {map[string]string{"what": "go"}, "go 3 fast\n\nFlat."},
		"all":                    {map[string]string{"what": "go", "n": "9", "ratio": "0.5", "deep": "true", "how": "slow", "points": "one\n\n two ", "file": "f.go"}, "go 9 slow at 0.5\n\nSee:\n- one\n- two\n\nIn f.go.\nDeep."},
		"a value isn't a prompt": {map[string]string{"what": "{{n}} {{#deep}} {{/x}}"}, "{{n}} {{#deep}} {{/x}} 3 fast\n\nFlat."},
	} {
		got, err := x.Render(c.values, func(p string) bool { return p == "f.go" })
		if err != nil || strings.ReplaceAll(got, "\n\n\n", "\n\n") != c.want {
			t.Errorf("%s: %v\n%q\n%q", name, err, got, c.want)
		}
	}
}

func TestValuesAreChecked(t *testing.T) {
	x := parse(t, head+`
variables:
  what: {type: line, required: true}
  n: {type: integer, min: 1, max: 9}
  ratio: {type: number, max: 1}
  deep: {type: boolean}
  how: {type: choice, choices: [slow, fast]}
  file: {type: path}
prompt: "{{what}}{{n}}{{ratio}}{{deep}}{{how}}{{file}}"
`)
	for name, c := range map[string]struct{ variable, value, want string }{
		"missing":         {"n", "1", "needs a value"},
		"empty":           {"what", " ", "empty"},
		"two lines":       {"what", "a\nb", "more than one line"},
		"no number":       {"n", "1.5", "not a whole number"},
		"too great":       {"n", "10", "not within 1 … 9"},
		"too small":       {"n", "0", "not within 1 … 9"},
		"above max":       {"ratio", "1.1", "not within … 1"},
		"not a number":    {"ratio", "NaN", "not a number"},
		"no boolean":      {"deep", "yes", "neither true nor false"},
		"no choice":       {"how", "medium", "none of slow, fast"},
		"no file":         {"file", "../x", "no file of the workspace"},
		"unknown":         {"other", "x", "has no variable other"},
		"NUL":             {"how", "a\x00", "not UTF-8"},
		"more than fits":  {"what", strings.Repeat("x", maxValue+1), "262145 bytes"},
		"broken encoding": {"what", "\xff", "not UTF-8"},
	} {
		values := map[string]string{c.variable: c.value}
		if c.variable != "what" && name != "missing" {
			values["what"] = "x"
		}
		_, err := x.Render(values, func(string) bool { return false })
		if belay.CodeOf(err) != belay.CodeUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestBadTemplatesAreToldWithTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "t.yaml: the template is empty"},
		"no prompt":         {head, "has no prompt"},
		"bad name":          {strings.Replace(head, "name: a", "name: A b", 1) + "prompt: x\n", `t.yaml:1:7: name "A b"`},
		"bad version":       {strings.Replace(head, "1.0.0", "1.0", 1) + "prompt: x\n", "t.yaml:2:10: version"},
		"unknown field":     {head + "prompt: x\nauthor: me\n", "author"},
		"unknown type":      {head + "variables: {x: {type: date}}\nprompt: '{{x}}'\n", `there is no type "date"`},
		"unknown variable":  {head + "prompt: '{{x}}'\n", "the prompt has {{x}}"},
		"unused variable":   {head + "variables: {x: {}}\nprompt: y\n", "the prompt never uses x"},
		"unfit default":     {head + "variables: {x: {type: integer, default: many}}\nprompt: '{{x}}'\n", "not a whole number"},
		"required, default": {head + "variables: {x: {required: true, default: a}}\nprompt: '{{x}}'\n", "needs no default"},
		"stray choices":     {head + "variables: {x: {choices: [a]}}\nprompt: '{{x}}'\n", "choices belong to"},
		"no choices":        {head + "variables: {x: {type: choice}}\nprompt: '{{x}}'\n", "choices belong to"},
		"stray bounds":      {head + "variables: {x: {min: 1}}\nprompt: '{{x}}'\n", "belong to numbers"},
		"crossed bounds":    {head + "variables: {x: {type: number, min: 2, max: 1}}\nprompt: '{{x}}'\n", "greater than max"},
		"never closed":      {head + "variables: {x: {}}\nprompt: '{{#x}}a'\n", "{{#x}} is never closed"},
		"closed twice":      {head + "variables: {x: {}}\nprompt: '{{#x}}a{{/x}}{{/x}}'\n", "closes nothing"},
		"crossed":           {head + "variables: {x: {}, y: {}}\nprompt: '{{#x}}{{#y}}{{/x}}{{/y}}'\n", "closes nothing"},
		"bad variable":      {head + "variables: {X: {}}\nprompt: '{{X}}'\n", "X is no name of a variable"},
	} {
		_, err := Parse("t.yaml", []byte(c.text))
		if belay.CodeOf(err) != belay.CodeBadTemplate || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTheProgramsTemplatesAreWhole(t *testing.T) {
	c, err := Open("", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range c.Bad {
		t.Error(bad)
	}
	if len(c.All) != 6 {
		t.Errorf("%d templates", len(c.All))
	}
	for _, x := range c.All {
		values := map[string]string{}
		for _, v := range x.Variables {
			if v.Required {
				values[v.Name] = "something"
			}
		}
		text, err := x.Render(values, nil)
		if err != nil || !strings.Contains(text, "something") && len(values) > 0 || strings.Contains(text, "{{") || x.Description == "" {
			t.Errorf("%s: %v\n%s", x.Name, err, text)
		}
	}
}

func TestNamesAreLookedUpByOrigin(t *testing.T) {
	user, ws := t.TempDir(), t.TempDir()
	put := func(dir, file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	named := func(name, version string) string {
		return "name: " + name + "\nversion: " + version + "\ndomain: own\nkind: " + name + "\nprompt: x\n"
	}
	put(user, "a.yaml", named("fix-bug", "2.0.0"))
	put(user, "b.yaml", named("mine", "1.0.0"))
	put(ws, "a.yaml", named("review-change", "9.0.0"))
	put(ws, "b.yaml", named("mine", "1.1.0"))
	put(ws, "c.yaml", named("theirs", "1.2.0"))
	put(ws, "d.yaml", named("theirs", "1.3.0"))
	put(ws, "e.yaml", "name: [\n")
	put(ws, "readme.txt", "not a template")
	c, err := Open(user, ws)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Bad) != 2 {
		t.Errorf("a second file of one name and one that can't be read: %v", c.Bad)
	}
	for want, origin := range map[string]string{
		"fix-bug": User, "builtin:fix-bug": Builtin, "fix-bug@2.0.0": User, "theirs": Workspace, "workspace:mine": Workspace,
		"user:mine": User, "code/test": Builtin, "own/theirs@1.2.0": Workspace,
	} {
		x, err := c.Find(want)
		if err != nil || x.Origin != origin {
			t.Errorf("%s: %v %v", want, x, err)
		}
	}
	for want, code := range map[string]belay.Code{
		"mine": belay.CodeUsage, "review-change": belay.CodeUsage, "own/mine": belay.CodeUsage, "none": belay.CodeNotFound,
		"fix-bug@1.0.0": belay.CodeNotFound, "user:theirs": belay.CodeNotFound, "own/none": belay.CodeNotFound,
	} {
		if x, err := c.Find(want); belay.CodeOf(err) != code {
			t.Errorf("%s: %v %v", want, x, err)
		}
	}
}

func TestTheSameBytesHaveTheSameDigest(t *testing.T) {
	a, b := parse(t, head+"prompt: x\n"), parse(t, head+"prompt: x\n")
	if c := parse(t, head+"prompt: y\n"); a.Digest != b.Digest || a.Digest == c.Digest {
		t.Errorf("%s %s %s", a.Digest, b.Digest, c.Digest)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{head + "prompt: x\n", head + "variables: {x: {type: integer, default: 3}}\nprompt: '{{#x}}{{x}}{{/x}}'\n", "name: [\n", "{{", "variables: {x: }"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Parse("t.yaml", data)
		if err != nil {
			if belay.CodeOf(err) != belay.CodeBadTemplate {
				t.Errorf("an error without a code: %v", err)
			}
			return
		}
		values := map[string]string{}
		for _, v := range x.Variables {
			if v.Required && v.Type == Text {
				values[v.Name] = "{{value}}"
			}
		}
		_, _ = x.Render(values, nil) // must not panic
	})
}
