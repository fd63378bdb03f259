package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
	"github.com/belay-run/belay/internal/testkit/sample"
)

// tries is how often a damage test tries: fewer times under the race detector, and where
// BELAY_SAMPLE asks for a part.
func tries(n int) int {
	if raceEnabled {
		n = max(n/10, 16)
	}
	return sample.Of(n)
}

// seeded is a source of chance that a failure can be repeated with.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("BELAY_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("BELAY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// subject is a whole store that a test damages and mends again.
type subject struct {
	dir    string
	dump   []byte
	heads  []store.Head
	events int
}

func newSubject(t *testing.T, dir string) *subject {
	t.Helper()
	r, err := verify.Run(t.Context(), dir, verify.Options{})
	if err != nil || !r.OK() || len(r.Warnings) > 0 {
		t.Fatalf("before any damage: %v, %v, %v", err, r.Problems, r.Warnings)
	}
	s := &subject{dir: dir, heads: r.Heads, events: r.Events}
	if s.dump, err = dumpOf(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return s
}

func dumpOf(ctx context.Context, dir string) ([]byte, error) {
	var b bytes.Buffer
	err := Dump(ctx, dir, &b)
	return b.Bytes(), err
}

// tally counts the outcome of damages.
type tally struct{ told, tail, differs, harmless, gaveUp, warned int }

func (c *tally) String() string {
	return fmt.Sprintf("%d told (%d of them as a tail, %d as SQLite giving up), %d by kept heads only, %d harmless (%d with a warning)",
		c.told, c.tail, c.gaveUp, c.differs, c.harmless, c.warned)
}

// check wants damage to be told with its place, or to have changed nothing.
func (s *subject) check(t *testing.T, against []store.Head, c *tally, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := verify.Run(ctx, s.dir, verify.Options{Against: against})
	if ctx.Err() != nil {
		t.Fatalf("%s: it doesn't end", what)
	}
	if err != nil {
		if e, ok := errors.AsType[*belay.Error](err); !ok || e.Where == "" {
			t.Errorf("%s: an error without a place: %v", what, err)
		}
		c.told++
		return
	}
	for _, p := range append(r.Problems, r.Differences...) {
		if p.Place == "" || p.What == "" {
			t.Errorf("%s: a problem without place or text: %q", what, p)
		}
		if strings.Contains(p.What, "SQLite gave up") {
			c.gaveUp++
		}
	}
	switch {
	case len(r.Problems) > 0:
		c.told++
		if len(r.Problems) == 1 && r.Problems[0].Tail() {
			c.tail++
		}
		return
	case len(r.Differences) > 0:
		c.differs++
		return
	}
	c.harmless++
	if len(r.Warnings) > 0 {
		c.warned++
	}
	if after, err := dumpOf(ctx, s.dir); err != nil || !bytes.Equal(s.dump, after) {
		t.Errorf("%s: called whole, but the dump differs (%v) %s", what, err, firstDifference(s.dump, after))
	}
}

func firstDifference(a, b []byte) string {
	as, bs := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("at line %d:\n%.300s\n%.300s", i+1, as[i], bs[i])
		}
	}
	return fmt.Sprintf("in length: %d, %d lines", len(as), len(bs))
}

// patched runs f while a file has other content.
func patched(t *testing.T, path string, change func(content []byte) []byte, f func()) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(change(bytes.Clone(before)))
	f()
	write(before)
}

// flipped runs f while one byte of a file is another.
func flipped(t *testing.T, path string, rnd *rand.Rand, x byte, f func(at int64)) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b, at := make([]byte, 1), rnd.Int64N(info.Size())
	if _, err := file.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time mends it
		b[0] ^= x
		if _, err := file.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
		if f != nil {
			f(at)
		}
		f = nil
	}
}

// damageFiles lists the store's files, each as often as it has kilobytes.
func damageFiles(t *testing.T, dir string) (weighted []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		for range (info.Size() + 1023) / 1024 {
			weighted = append(weighted, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return weighted
}

func (s *subject) flips(t *testing.T, rnd *rand.Rand, n int, files []string) {
	t.Helper()
	var c tally
	began := time.Now()
	for range n {
		path, x := files[rnd.IntN(len(files))], byte(1+rnd.IntN(255))
		flipped(t, path, rnd, x, func(at int64) {
			s.check(t, nil, &c, fmt.Sprintf("%s byte %d xor %#02x", filepath.Base(path), at, x))
		})
	}
	took := time.Since(began)
	t.Logf("%d flipped bytes: %v; %v, %v each", n, &c, took.Round(time.Millisecond), (took / time.Duration(n)).Round(10*time.Microsecond))
}

func (s *subject) truncations(t *testing.T, rnd *rand.Rand, n int, path string) {
	t.Helper()
	var c tally
	for range n {
		at := 0
		patched(t, path, func(b []byte) []byte {
			at = rnd.IntN(len(b))
			return b[:at]
		}, func() { s.check(t, s.heads, &c, fmt.Sprintf("%s cut at %d", filepath.Base(path), at)) })
	}
	t.Logf("%s cut %d times: %v", filepath.Base(path), n, &c)
}

// torn replaces half a page by what stood there before, or by nothing.
func (s *subject) torn(t *testing.T, rnd *rand.Rand, n int, path string, old []byte) {
	t.Helper()
	const page = 4096
	var c tally
	for range n {
		at := 0
		patched(t, path, func(b []byte) []byte {
			at = rnd.IntN(len(b)/page)*page + rnd.IntN(2)*page/2
			half := b[at:min(at+page/2, len(b))]
			clear(half)
			if at < len(old) {
				copy(half, old[at:])
			}
			return b
		}, func() { s.check(t, s.heads, &c, fmt.Sprintf("%s half a page old at %d", filepath.Base(path), at)) })
	}
	t.Logf("%s torn %d times: %v", filepath.Base(path), n, &c)
}

func TestDamageOfAClosedStoreIsToldOrChangesNothing(t *testing.T) {
	t.Parallel()
	dir, rnd := t.TempDir(), seeded(t)
	var old []byte
	for i := range 2 {
		db := openStore(t, dir, Options{})
		m, err := newMix(t.Context(), db, 5)
		if err != nil {
			t.Fatal(err)
		}
		m.n = 1000 * i
		if err := m.steps(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if old, err = os.ReadFile(layout.Path(dir)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := newSubject(t, dir)
	files := damageFiles(t, dir)
	t.Logf("%d facts, %d KB", s.events, len(files))
	s.flips(t, rnd, tries(1000), files)
	s.truncations(t, rnd, tries(100), layout.Path(dir))
	blob := files[0]
	for _, f := range files {
		if strings.HasPrefix(f, layout.BlobDir(dir)) {
			blob = f
		}
	}
	s.truncations(t, rnd, tries(100), blob)
	s.torn(t, rnd, tries(64), layout.Path(dir), old)
}

// killedOnce is a copy of the store of a process that was killed while it appended.
func killedOnce(t *testing.T) (dir string, old []byte) {
	t.Helper()
	from, oldLog := t.TempDir(), filepath.Join(t.TempDir(), "old")
	cmd := process(t, "mix", from, oldLog)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == 11 {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(layout.Path(dir)+"-shm", layout.Path(dir)+"-index"); err != nil { // without it no damage is told by it alone
		t.Fatal(err)
	}
	if old, err = os.ReadFile(oldLog); err != nil {
		t.Fatal(err)
	}
	return dir, old
}

// killed is a store whose process was killed between two writes of its log. One
// that died in the middle of a write has a torn end already, which is told.
func killed(t *testing.T) (dir string, old []byte) {
	t.Helper()
	for range 20 {
		dir, old = killedOnce(t)
		r, err := verify.Run(t.Context(), dir, verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() && len(r.Warnings) == 0 {
			break
		}
	}
	return dir, old
}

func TestDamageOfAKilledProcesssLogIsToldOrChangesNothing(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	dir, old := killed(t)
	s := newSubject(t, dir)
	log := layout.Path(dir) + "-wal"
	info, err := os.Stat(log)
	if err != nil || info.Size() < 100_000 {
		t.Fatalf("the log: %v, %v", info, err)
	}
	t.Logf("%d facts, a log of %d KB", s.events, info.Size()>>10)
	s.flips(t, rnd, tries(500), []string{log})
	s.flips(t, rnd, tries(100), []string{layout.Path(dir)})
	s.truncations(t, rnd, tries(200), log)
	s.torn(t, rnd, tries(64), log, old)
}
