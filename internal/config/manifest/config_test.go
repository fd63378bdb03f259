package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
)

func TestReadConfig(t *testing.T) {
	got, err := ReadConfig("f", []byte("mode: plan\n# a remark\nmax: 5\nflag: true\nallow:\n  - a\n  - b\n"), Known{Names: []string{"mode", "max", "flag"}, Lists: []string{"allow"}})
	want := []Setting{{Name: "mode", Value: "plan", Where: "f:1:1"}, {Name: "max", Value: "5", Where: "f:3:1"},
		{Name: "flag", Value: "true", Where: "f:4:1"}, {Name: "allow", List: []string{"a", "b"}, Where: "f:5:1"}}
	if d := cmp.Diff(want, got.Settings); d != "" || err != nil {
		t.Error(err, d)
	}
	if got, err := ReadConfig("f", []byte(" \n"), Known{}); got.Settings != nil || err != nil {
		t.Errorf("an empty file: %v %v", got, err)
	}
}

func TestMistakesInAConfigurationAreToldWithTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"mode: plan\nmodle: x\n": `f:2:1: there is no setting "modle"`,
		"- a\n":                  "not a list of names and values",
		"mode: {a: b}\n":         "want one value here",
		"mode: [a]\n":            "want one value here",
		"allow: a\n":             "f:1:8: string was used where sequence is expected",
		"mode: a\nmode: b\n":     "mode",
		"mode: [\n":              "f:",
		"mode: &x a\n":           "anchors",
	} {
		_, err := ReadConfig("f", []byte(text), Known{Names: []string{"mode"}, Lists: []string{"allow"}, Protocols: Protocols{"openai-chat"}})
		if belay.CodeOf(err) != belay.CodeBadConfig || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadConfig(f *testing.F) {
	for _, s := range []string{"mode: plan\n", "allow: [a, b]\n", "mode: [\n", "{mode: a}", "mode: |\n  a\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := ReadConfig("f", data, Known{Names: []string{"mode"}, Lists: []string{"allow"}, Protocols: Protocols{"openai-chat"}}); err != nil && belay.CodeOf(err) != belay.CodeBadConfig {
			t.Errorf("an error without a code: %v", err)
		}
	})
}

// TestAServerIsWrittenWithoutTouchingOthers takes a server out again where it was put in.
func TestAServerIsWrittenWithoutTouchingOthers(t *testing.T) {
	s := &Server{Name: "new", Command: "run", Args: []string{"a, b", "5", "null", "", "- x"}}
	const line = `new: {command: run, args: ["a, b", "5", "null", "", "- x"]}`
	for before, after := range map[string]string{
		"":           "mcp-servers:\n  " + line + "\n",
		"# mine":     "# mine\nmcp-servers:\n  " + line + "\n",
		"mode: plan": "mode: plan\nmcp-servers:\n  " + line + "\n",
		"mcp-servers:\n    a: {command: x}\n# end\n":         "mcp-servers:\n    a: {command: x}\n    " + line + "\n# end\n",
		"mcp-servers:\n  a:\n    command: x\n\nmode: plan\n": "mcp-servers:\n  a:\n    command: x\n  " + line + "\n\nmode: plan\n",
	} {
		got, err := SetServer("f", []byte(before), "new", s)
		if string(got) != after || err != nil {
			t.Errorf("%q becomes %q (%v), not %q", before, got, err, after)
			continue
		}
		if got, err = SetServer("f", got, "new", nil); strings.TrimSpace(string(got)) != strings.TrimSpace(before) || err != nil {
			t.Errorf("%q comes back as %q (%v)", before, got, err)
		}
		read, err := ReadConfig("f", []byte(after), Known{Names: []string{"mode"}})
		if err != nil || !s.Same(&read.Servers[len(read.Servers)-1]) {
			t.Errorf("%q is read as %+v (%v)", after, read.Servers, err)
		}
	}
	for _, flow := range []string{"{mode: plan}", "mcp-servers: {a: {command: x}}\n"} {
		if _, err := SetServer("f", []byte(flow), "new", s); belay.CodeOf(err) != belay.CodeBadConfig {
			t.Errorf("%q: %v", flow, err)
		}
	}
}
