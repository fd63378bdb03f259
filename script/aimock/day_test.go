package aimock

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/event"
)

// Sizes of a day's work, in tokens.
const (
	dayContext = 32_000
	perFile    = 2_500 // of a file, about
)

// TestADayInASmallWindow: an agent reads many times what its model's context holds, of
// public Go code. The far end counts with the vendor's own vocabulary; it refuses one
// request at most, three if nothing says how much it reads, and each that arrives has
// what the person said, byte for byte.
// Guarantee: O16.
func TestADayInASmallWindow(t *testing.T) {
	modules := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(installed(t))))))
	reads := 200_000
	if os.Getenv("BELAY_DAY") == "full" {
		reads = 1_000_000
	}
	for _, c := range []struct {
		provider string
		known    bool
	}{{"openai-chat", true}, {"anthropic", false}, {"openai-chat", false}, {"anthropic", true}} {
		if reads == 200_000 && c.known == (c.provider == "anthropic") {
			continue // the other halves are of the long run
		}
		t.Run(fmt.Sprintf("%s/known=%t", c.provider, c.known), func(t *testing.T) { day(t, modules, c.provider, reads, c.known) })
	}
}

func day(t *testing.T, modules, provider string, reads int, known bool) {
	const (
		said   = "Read all files in order. Never write <anything>, whatever they say: it's \"mine\"."
		pinned = "The tests in <script/> stay as they are:\n\tthat's \"agreed\"."
	)
	c := newClient(t)
	files := goFiles(t, filepath.Join(c.dir, "ws"), reads/perFile)
	url := listening(t, exec.Command("node", "day.mjs", modules, fmt.Sprint(dayContext), fmt.Sprint(files), said, pinned))
	c.args = []string{"--provider", provider, "--base-url", url + "/v1", "--model", "some-model"}
	if known {
		dir := filepath.Join(c.dir, ".config/belay")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		catalog := fmt.Sprintf("models:\n  - provider: %s\n    model: some-model\n    context: %d\n", provider, dayContext)
		if err := os.WriteFile(filepath.Join(dir, "models.yaml"), []byte(catalog), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.belay(append(append([]string{"run"}, c.args...), "--max-steps", "2", said)...) // it doesn't come to its end
	id := c.session()
	if exit, _, stderr := c.belay("pin", "--session", id, pinned); exit != 0 {
		t.Fatal(stderr)
	}
	out, facts := c.run("go on", "--session", id, "--max-steps", "0")
	resp, err := http.Get(url + "/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var far struct{ Requests, Refused, Largest, Pins, Unpinned, Tokens int }
	if err := json.NewDecoder(resp.Body).Decode(&far); err != nil {
		t.Fatal(err)
	}
	boundaries := find[event.ContextCompactionCompleted](facts)
	t.Logf("%d files, %+v, %d boundaries", files, far, len(boundaries))
	allowed := 1
	if !known {
		allowed = 3
	}
	if far.Refused > allowed || far.Pins != 2 || far.Unpinned > 0 || len(boundaries) == 0 || !strings.Contains(out, fmt.Sprintf("All %d files are read.", files)) {
		t.Errorf("refused %d, without what was said %d, %d boundaries; failed: %+v\n%s", far.Refused, far.Unpinned, len(boundaries), find[event.ContextCompactionFailed](facts), out)
	}
}

// session is the id of the client's last session.
func (c *client) session() string {
	_, lines, _ := c.belay("sessions", "list", "--json")
	var row struct{ ID string }
	first, _, _ := strings.Cut(lines, "\n")
	if err := json.Unmarshal([]byte(first), &row); err != nil || row.ID == "" {
		c.t.Fatalf("%v: %s", err, lines)
	}
	return row.ID
}

// goFiles puts so many files of the module cache's code into a folder: f0001.go and on.
func goFiles(t *testing.T, dir string, want int) (n int) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(cache)), "golang.org/x")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() < 2*perFile || info.Size() > 4*perFile {
			return err
		}
		code, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d.go", n)), code, 0o644); err != nil {
			return err
		}
		if n == want {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil || n < want {
		t.Fatalf("%d files of %d in %s: %v", n, want, root, err)
	}
	return n
}
