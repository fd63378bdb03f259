package eval

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var fenced = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

func docs(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/eval.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Documented are the scenarios of the reference, for the tests that play them.
func Documented(t *testing.T) (all []*Scenario) {
	t.Helper()
	text := docs(t)
	for _, e := range fenced.FindAllStringSubmatchIndex(text, -1) {
		before := strings.Count(text[:e[2]], "\n")
		body := strings.Repeat("\n", before) + text[e[2]:e[3]] // so that a mistake is told with its line in the reference
		some, err := Parse("docs/eval.md", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		t.Fatal("the reference has no example")
	}
	return all
}

// Kinds lists what an expectation can be about, as a file writes it.
func Kinds() (names []string) {
	for f := range reflect.TypeFor[expectFile]().Fields() {
		names = append(names, f.Tag.Get("yaml"))
	}
	return names
}
