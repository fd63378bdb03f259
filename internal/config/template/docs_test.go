package template

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTheReferenceIsTrue(t *testing.T) {
	b, err := os.ReadFile("../../../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	if len(blocks) == 0 {
		t.Fatal("the reference has no example")
	}
	for _, m := range blocks {
		x, err := Parse("templates.md", []byte(m[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		if text, err := x.Render(map[string]string{"module": "m", "keep": "a\nb"}, nil); err != nil || !strings.Contains(text, "- a\n- b") {
			t.Errorf("%v\n%s", err, text)
		}
	}
	for _, name := range Types {
		if !strings.Contains(string(b), "| `"+name+"` |") {
			t.Errorf("the reference lacks the type %s", name)
		}
	}
}
