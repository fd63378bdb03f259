package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneModuleOfTheBundleSpeaks: neither another one of ours nor one of a package does.
// Guarantee: V46.
func TestOneModuleOfTheBundleSpeaks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"src/api.ts": "fetch(x)", "src/a.ts": "const a = 1", "third_party/b.js": "new WebSocket(a)"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := alone(dir, `{"inputs":{"src/api.ts":{},"src/a.ts":{}}}`); err != nil {
		t.Error(err)
	}
	for says, inputs := range map[string]string{"third_party/b.js": `"src/api.ts":{},"third_party/b.js":{}`, "isn't in the bundle": `"src/a.ts":{}`} {
		if err := alone(dir, `{"inputs":{`+inputs+`}}`); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", inputs, err)
		}
	}
}
