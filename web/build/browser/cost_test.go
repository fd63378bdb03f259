package browser

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestTheConsoleCostsTheProgramLittle: the program is made again, without the page. That
// with it is at most 1.5 MB larger, and its server answers no later: one and the other are
// started in turn. In CI, where other tests run beside it, times are only printed.
func TestTheConsoleCostsTheProgramLittle(t *testing.T) {
	t.Parallel()
	s := serve(t, asking)
	programs := [2]string{filepath.Join(s.dir, "with"), filepath.Join(s.dir, "without")}
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	none, replace := filepath.Join(s.dir, "none.go"), filepath.Join(s.dir, "overlay.json")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "web", "web.go"): none}})
	if err == nil {
		err = os.WriteFile(none, []byte("package web\n\nimport \"io/fs\"\n\nfunc Dist() fs.FS { return nil }\n"), 0o600)
	}
	if err == nil {
		err = os.WriteFile(replace, overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var sizes [2]int64
	for i, flags := range [][]string{nil, {"-overlay", replace}} {
		build := exec.Command("go", append(append([]string{"build", "-ldflags", "-s -w"}, flags...), "-o", programs[i], "./cmd/belay")...)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s%v", out, err)
		}
		at, err := os.Stat(programs[i])
		if err != nil {
			t.Fatal(err)
		}
		sizes[i] = at.Size()
	}
	t.Logf("the program has %d bytes, %d without the page: %d more", sizes[0], sizes[1], sizes[0]-sizes[1])
	if more := sizes[0] - sizes[1]; more > 1_500_000 || more < 100_000 {
		t.Errorf("the page is %d bytes of the program", more)
	}

	runs := 2
	if whole() {
		runs = 20
	}
	var took [2][]time.Duration
	for n := range 2 * (runs + 1) {
		s.kill()
		s.program = programs[n%2]
		began := time.Now()
		s.start("127.0.0.1:0")
		if status := s.do("/v1/caller", "", nil); status != http.StatusOK {
			t.Fatalf("the first answer is %d", status)
		}
		if n > 1 { // not the first of each, which are read from the disk
			took[n%2] = append(took[n%2], time.Since(began))
		}
		if status := s.do("/", "", nil); (status == http.StatusOK) != (n%2 == 0) {
			t.Fatalf("%s: the page is answered by %d", s.program, status)
		}
	}
	var more []time.Duration
	for i, with := range took[0] {
		more = append(more, with-took[1][i])
	}
	slices.Sort(more)
	for i := range took {
		slices.Sort(took[i])
		t.Logf("%s: the first answer after %s to %s, in the middle %s", filepath.Base(programs[i]), took[i][0], took[i][runs-1], took[i][runs/2])
	}
	t.Logf("in turn it is later by %s, in the middle", more[runs/2])
	if whole() && more[runs/2] > 5*time.Millisecond {
		t.Errorf("with the page the first answer is later by %s", more)
	}
}
