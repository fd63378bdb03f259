package scripted_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/scripted"
)

var fenced = regexp.MustCompile("(?ms)^```(yaml|json)\n(.*?)^```$")

func reference(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../../docs/scripted.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheExamplesOfTheReferenceAreScripts(t *testing.T) {
	text := reference(t)
	examples := fenced.FindAllStringSubmatchIndex(text, -1)
	if fences := strings.Count(text, "```"); len(examples) == 0 || 2*len(examples) != fences {
		t.Fatalf("%d examples in %d fences", len(examples), fences)
	}
	for _, e := range examples {
		before := strings.Count(text[:e[4]], "\n")
		body := strings.Repeat("\n", before) + text[e[4]:e[5]] // so that a mistake is told with its line in the reference
		s, err := scripted.Parse("docs/scripted.md", []byte(body))
		if err != nil {
			t.Error(err)
			continue
		}
		got := said(t, s, model.Request{Messages: talk{}.user("go"), Attempt: 9})
		if strings.Contains(got, "no step") {
			t.Errorf("line %d: the example does not begin: %s", before, got)
		}
	}
}

func TestTheHelloExamplesSayTheSame(t *testing.T) {
	all := fenced.FindAllStringSubmatch(reference(t), -1)
	m := talk{}.user("go")
	for range 2 {
		first := said(t, parse(t, all[0][2]), model.Request{Messages: m})
		last := said(t, parse(t, all[len(all)-1][2]), model.Request{Messages: m})
		if first != last || all[len(all)-1][1] != "json" {
			t.Errorf("YAML says %q, JSON %q", first, last)
		}
		m = m.answer(first)
	}
}
