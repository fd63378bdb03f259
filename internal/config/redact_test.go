package config

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/secret"
)

// What isn't redacted a person says, never a file of a workspace.
// Guarantee: X22.
func TestAPersonSaysWhatStays(t *testing.T) {
	const text = "Cookie: sid=a8f3k2m9d7x1\nDB_PASSWORD=k3ep-a8f3k2 API_TOKEN=a8f3k2m9d7x1"
	const off = "redact: {off: [cookie], keep: ['^k3ep']}\n"
	for where, left := range map[string]int{ofPerson + "belay.yaml": 2, "ws/.belay/belay.yaml": 0} {
		in, _ := folder(t, map[string]string{where: off})
		in.Secrets = new(secret.Scrubber)
		w := Resolve(t.Context(), in)
		if _, err := w.Layers(nil); err != nil {
			t.Fatal(err)
		}
		got := in.Secrets.String(text)
		n := 0
		for _, v := range []string{"sid=a8f3k2m9d7x1", "k3ep-a8f3k2"} {
			if strings.Contains(got, v) {
				n++
			}
		}
		if n != left || strings.Contains(got, "API_TOKEN=a8") {
			t.Errorf("%s: %s", where, got)
		}
	}
	for what, says := range map[string]string{
		"redact: {off: [nonsense]}":           "there is no form",
		"redact: {keep: ['(']}":               "missing closing",
		"redact: {keep: ['(a{1000}){1000}']}": "repeat",
		"redact: {keep: ['x*']}":              "matches everything",
		"redact: {of: [cookie]}":              "of",
	} {
		in, _ := folder(t, map[string]string{ofPerson + "belay.yaml": what})
		_, err := Resolve(t.Context(), in).Layers(nil)
		if belay.CodeOf(err) != belay.CodeBadConfig || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
