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
