//go:build unix

package file_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

// Many that know a file change it at once: each change that is said to be made
// is in the file, and all others are conflicts.
// Guarantee: T20.
func TestChangesAtOnceLoseNothing(t *testing.T) {
	shared := tooltest.NewBench(t)
	shared.Put("a", "END\n")
	var mu sync.Mutex
	made := map[string]bool{}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			b := *shared
			b.Sink, b.Expect = &tooltest.Sink{}, maps.Clone(shared.Expect)
			for i := range 40 {
				token := fmt.Sprintf("tok-%d-%d", w, i)
				if _, err := b.Run(t.Context(), file.Read(), args{"path": "a"}); err != nil {
					t.Error(err)
					return
				}
				_, err := b.Run(t.Context(), file.Edit(), args{"path": "a", "old": "END", "new": token + "\nEND"})
				switch code := tooltest.CodeOf(err); code {
				case "ok":
					mu.Lock()
					made[token] = true
					mu.Unlock()
				case file.CodeConflict:
				default:
					t.Errorf("%s: %v", code, err)
				}
			}
		})
	}
	wg.Wait()
	content, err := os.ReadFile(filepath.Join(shared.Dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(content))
	if len(lines) != len(made)+1 {
		t.Errorf("%d changes were made, %d are in the file", len(made), len(lines)-1)
	}
	for token := range made {
		if !strings.Contains(string(content), token+"\n") {
			t.Errorf("%s is lost", token)
		}
	}
	t.Logf("%d changes, %d conflicts", len(made), 160-len(made))
}
