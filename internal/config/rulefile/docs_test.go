package rulefile_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/policy"
)

// Every file that the document shows is one that loads, and its examples hold.
// Guarantee: G59.
func TestExamplesOfThePolicyDocumentLoad(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	n := 0
	for _, b := range blocks {
		if !strings.HasPrefix(b[1], "version:") {
			continue // a part of another file
		}
		n++
		l := &rulefile.Layers{Read: func(string) ([]byte, error) { return []byte("version: 1\n"), nil }}
		err := l.Add("policy.yaml", []byte(b[1]), policy.TierUser, true)
		if err == nil {
			_, err = l.Set([]policy.Group{{Name: "files", Tools: []string{"read", "write", "edit"}}})
		}
		if err != nil {
			t.Errorf("%v:\n%s", err, b[1])
		}
	}
	if n < 3 {
		t.Errorf("only %d files are shown", n)
	}
	for _, m := range policy.BuiltinRules() {
		if m.Code == "" || m.Reason == "" {
			t.Errorf("%s has no code or reason", m.ID)
		}
	}
}
