package file_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/tool/file"
)

// What a call is said to do is what it does: files as they are now, without secrets,
// and what it would fail with. Nothing is changed.
func TestAPlanIsWhatACallWouldDo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "one\r\ntwo\r\n", "key.txt": "token=sesame\nrest\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	clean := func(s string) string { return strings.ReplaceAll(s, "sesame", "[secret]") }
	for name, c := range map[string]struct {
		tool string
		args any
		want []file.Planned
		err  string
	}{
		"an edit":                  {"edit", map[string]any{"path": "a.txt", "old": "two\n", "new": "three\n"}, []file.Planned{{"a.txt", "changed", "one\r\ntwo\r\n", "one\r\nthree\r\n"}}, ""},
		"of text that isn't there": {"edit", map[string]any{"path": "a.txt", "old": "four", "new": "five"}, nil, "old does not occur in a.txt"},
		"of no file":               {"edit", map[string]any{"path": "none.txt", "old": "a", "new": "b"}, nil, "none.txt does not exist"},
		"outside":                  {"edit", map[string]any{"path": "../x", "old": "a", "new": "b"}, nil, "outside"},
		"a new file":               {"write", map[string]any{"path": "new/b.txt", "content": "b\n"}, []file.Planned{{"new/b.txt", "created", "", "b\n"}}, ""},
		"a file anew":              {"write", map[string]any{"path": "a.txt", "content": "b\n"}, []file.Planned{{"a.txt", "changed", "one\r\ntwo\r\n", "b\n"}}, ""},
		"one with a secret":        {"edit", map[string]any{"path": "key.txt", "old": "rest", "new": "end"}, []file.Planned{{"key.txt", "changed", "token=[secret]\nrest\n", "token=[secret]\nend\n"}}, ""},
		"a patch":                  {"patch", map[string]any{"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+n\n"}, []file.Planned{{"a.txt", "changed", "one\r\ntwo\r\n", "one\r\nthree\r\n"}, {"n.txt", "created", "", "n\n"}}, ""},
		"a patch that doesn't fit": {"patch", map[string]any{"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-nine\n+ten\n"}, nil, "a.txt"},
		"another tool":             {"read", map[string]any{"path": "a.txt"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args, _ := json.Marshal(c.args)
			got, err := file.Plan(t.Context(), root, c.tool, args, clean)
			said, known := file.Failed(err)
			if (err != nil) != (c.err != "") || err != nil && (!known || !strings.Contains(said, c.err)) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if err == nil && !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "one\r\ntwo\r\n" {
		t.Errorf("a.txt is %q now", b)
	}
}
