package tool_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

func specs(names ...string) []tool.Spec {
	var out []tool.Spec
	for _, n := range names {
		name, group, _ := strings.Cut(n, "/")
		s := tool.Spec{Name: name, Group: group}
		if name == "complete_task" || name == "ask_user" {
			s.Handled = tool.HandledAsk
		}
		out = append(out, s)
	}
	return out
}

var all = specs("artifact_publish", "ask_user", "complete_task", "Deploy/ops", "edit", "exec", "flow_get", "gadget", "lint/commands", "patch", "read", "todo", "web_fetch", "web_search", "write")

// Guarantee: E32.
func TestChoose(t *testing.T) {
	for terms, want := range map[string]string{
		"":                       "artifact_publish ask_user complete_task Deploy edit exec gadget lint patch read todo web_fetch web_search write",
		"coding":                 "artifact_publish ask_user complete_task Deploy edit exec gadget lint patch read todo web_fetch web_search write",
		"minimal":                "ask_user complete_task read todo",
		"messaging":              "artifact_publish ask_user complete_task todo",
		"full":                   "artifact_publish ask_user complete_task Deploy edit exec flow_get gadget lint patch read todo web_fetch web_search write",
		"FULL,-EXEC":             "artifact_publish ask_user complete_task Deploy edit flow_get gadget lint patch read todo web_fetch web_search write",
		"-exec,-group:commands":  "artifact_publish ask_user complete_task edit gadget patch read todo web_fetch web_search write",
		"group:files, !write":    "ask_user complete_task edit patch read",
		"group:ops":              "ask_user complete_task Deploy",
		"group:commands,-deploy": "ask_user complete_task lint",
		"web_*,-*_fetch":         "ask_user complete_task web_search",
		"*":                      "artifact_publish ask_user complete_task Deploy edit exec flow_get gadget lint patch read todo web_fetch web_search write",
		"*e*t*":                  "ask_user complete_task edit flow_get gadget web_fetch",
		"minimal,full,-full":     "ask_user complete_task",
		"*,-complete_task":       "artifact_publish ask_user complete_task Deploy edit exec flow_get gadget lint patch read todo web_fetch web_search write",
		"browser":                "ask_user complete_task",
		"group:other":            "ask_user complete_task gadget",
	} {
		var got []string
		for _, s := range tool.Choose(strings.Split(terms, ","), all) {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %s", terms, got, want)
		}
	}
}

// Guarantee: E32.
func TestAChoiceOfAChoiceOnlyNarrows(t *testing.T) {
	small := tool.Choose([]string{"minimal"}, all)
	again := tool.Choose([]string{"full"}, small)
	if len(again) != len(small) {
		t.Errorf("%d of %d", len(again), len(small))
	}
}

func TestTermsThatNameNothingAreRefused(t *testing.T) {
	for _, good := range []string{"coding", "-exec", "group:flow", "group:ops", "web_search", "memory_get", "no_such_*", "DEPLOY", "!group:Web"} {
		if err := tool.CheckTerms([]string{good}, all); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, hint := range map[string]string{"exce": "did you mean exec?", "group:file": "did you mean group:files?", "": "a set (minimal, coding, messaging, full)", "nonsense-tool": "belay tool list", "group:exec": "group:NAME"} {
		err := tool.CheckTerms([]string{"coding", bad}, all)
		e, ok := err.(*belay.Error)
		if !ok || e.Code != belay.CodeUsage || !strings.Contains(e.Hint, hint) {
			t.Errorf("%q: got %v (%+v)", bad, err, e)
		}
	}
}

func TestExpandNamesTools(t *testing.T) {
	if got := strings.Join(tool.Expand(" Web_* ", all), " "); got != "web_fetch web_search" {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(tool.Expand("group:files", all), " "); got != "edit patch read write" {
		t.Errorf("got %s", got)
	}
	if got := tool.Expand("full", all); got != nil {
		t.Errorf("a set is no pattern: %v", got)
	}
}

// Guarantee: T45.
func TestWhatNarrows(t *testing.T) {
	for _, c := range []struct {
		terms, than string
		want        bool
	}{
		{"minimal", "", true}, {"minimal", "coding", true}, {"coding", "minimal", false}, {"full", "coding", false}, {"coding", "full", true},
		{"-exec", "coding", true}, {"-exec", "minimal", false}, {"coding,-exec", "coding", true}, {"read", "minimal", true},
		{"exec", "minimal", false}, {"deploy", "minimal", false}, {"deploy", "full", true}, {"group:ops", "minimal", false},
		{"group:ops", "full", true}, {"d*", "minimal", false}, {"*", "coding", false}, {"*,-group:flow", "full", true}, {"messaging", "coding", false},
	} {
		if got := tool.Narrows(strings.Split(c.terms, ","), strings.Split(c.than, ",")); got != c.want {
			t.Errorf("%q than %q: %v", c.terms, c.than, got)
		}
	}
}

// TestASetChoosesOnce: the same terms get the very same specs, which are those
// that Choose picks, and other terms others.
func TestASetChoosesOnce(t *testing.T) {
	set, err := tool.NewSet(tool.New[struct{}](tool.Spec{Name: "one"}, nil), tool.New[struct{}](tool.Spec{Name: "two"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	both, again, one := set.Choose([]string{"*"}), set.Choose([]string{"*"}), set.Choose([]string{"*", "-two"})
	if len(both) != 2 || &both[0] != &again[0] || len(again) != 2 {
		t.Errorf("%v, then %v", both, again)
	}
	if len(one) != 1 || one[0].Name != "one" {
		t.Errorf("without two: %v", one)
	}
	for i := range 200 { // far more than are kept
		set.Choose([]string{"*", "-x" + strings.Repeat("y", i)})
	}
	if again := set.Choose([]string{"*"}); len(again) != 2 || again[0].Name != both[0].Name {
		t.Errorf("at last: %v", again)
	}
}
