package kill

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/internal/engine"
)

// TestKilledSessionsTravel: a session whose process was killed anywhere is
// exported, deleted and imported, by processes that are killed as well. It is
// the session it was, to the byte, and continues to its end.
// Guarantee: S40, S42, O14.
func TestKilledSessionsTravel(t *testing.T) {
	first, step := stride(t, 5)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 4))
	trips, exports, imports := 0, 0, 0
	for at := 6 + first; ; at += step { // before that there is hardly a session
		m := newMachine(t)
		e := m.start(fmt.Sprintf("%s=%d", killAt, at))
		if !e.killed {
			m.discard()
			break
		}
		a, b := m.travel(r)
		if e := m.resume(); e.exit != 0 {
			t.Errorf("killed at %d, moved, resumed: exit %d\n%s", at, e.exit, e.out)
		}
		m.check(fmt.Sprint("killed at ", at, " and moved"))
		m.discard()
		trips, exports, imports = trips+1, exports+a, imports+b
	}
	if trips == 0 || imports == 0 || exports == 0 {
		t.Errorf("%d trips, %d exports and %d imports were killed, seed %d", trips, exports, imports, seed)
	}
	t.Logf("%d sessions moved, %d exports and %d imports killed on the way, seed %d", trips, exports, imports, seed)
}

// travel exports, deletes and imports the machine's session.
func (m *machine) travel(r *rand.Rand) (exports, imports int) {
	t := m.t
	t.Helper()
	file := filepath.Join(m.dir, "session.belay")
	before, heads := m.states(), m.heads()
	id := m.session()
	for killed := true; killed; {
		killed = m.run([]string{fmt.Sprintf("%s=%d", killAt, 1+r.IntN(40))}, "export", id, "-o", file).killed
		if _, err := os.Stat(file); killed && err == nil {
			t.Fatalf("a killed export has left a file with the name")
		}
		if killed {
			exports++
		}
		if exports == 3 {
			m.must("export", id, "-o", file)
			break
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m.must("sessions", "delete", "--yes", id)
	for i := 1; ; i++ {
		e := m.run([]string{fmt.Sprintf("%s=%d", killAt, i)}, "import", "--trust", file)
		if e.exit == 0 && !e.killed {
			break
		}
		if !e.killed {
			t.Fatalf("import: exit %d\n%s", e.exit, e.out)
		}
		imports++
		if e := m.run(nil, "verify"); e.exit != 0 {
			t.Fatalf("after a killed import: %s", e.out)
		}
		if n := len(m.streams()); n != 0 && n != len(before) {
			t.Fatalf("after a killed import %d of %d streams are there", n, len(before))
		}
	}
	if got := m.states(); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("the states are\n%v\nwere\n%v", got, before)
	}
	if got := m.heads(); !slices.Equal(got, heads) {
		t.Errorf("the heads are\n%v\nwere\n%v", got, heads)
	}
	m.must("export", id, "-o", file, "--force")
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, raw) {
		t.Errorf("exported again it has %d bytes and other ones, had %d, %v", len(again), len(raw), err)
	}
	m.standard(id)
	return exports, imports
}

// must runs a command that has to succeed, and returns what it printed.
func (m *machine) must(args ...string) string {
	m.t.Helper()
	cmd := m.command(nil, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if _, ok := err.(*exec.ExitError); ok {
			m.t.Fatalf("%v: %v\n%s%s", args, err, out, &stderr)
		}
		m.t.Fatal(err)
	}
	return string(out)
}

// session is the id of the machine's only session.
func (m *machine) session() string {
	m.t.Helper()
	var s struct{ ID string }
	if err := json.Unmarshal([]byte(m.must("sessions", "list", "--all", "--json")), &s); err != nil {
		m.t.Fatal(err)
	}
	return s.ID
}

// states is what each stream folds to.
func (m *machine) states() map[belay.StreamID]string {
	m.t.Helper()
	m.answer() // opens the store
	out := map[belay.StreamID]string{}
	for _, s := range m.streams() {
		d, _, _, err := engine.Load(m.t.Context(), m.db, s)
		if err != nil {
			m.t.Fatal(err)
		}
		raw, err := d.Save()
		if err != nil {
			m.t.Fatal(err)
		}
		out[s] = string(raw)
	}
	return out
}

// heads are the ends of the session's streams as every process of the store sees
// them. Verify reads the files instead and also finds a write that a killed
// process had made and nobody was told of: the next write takes its place.
func (m *machine) heads() (out []string) {
	m.t.Helper()
	for _, s := range m.streams() {
		h, err := m.db.Head(context.Background(), s)
		if err != nil {
			m.t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %d %x\n", s, h.Seq, h.Hash))
	}
	slices.Sort(out)
	return out
}

// standard: what is exported in the standard's forms is valid under its schemas.
func (m *machine) standard(id string) {
	m.t.Helper()
	lines := bufio.NewScanner(strings.NewReader(m.must("export", id, "--format", "events")))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		eventtest.Validate(m.t, lines.Bytes())
	}
	e := m.run(nil, "export", id, "--format", "snapshot")
	if e.exit != 0 && !strings.Contains(e.out, "it has no thread yet") {
		m.t.Errorf("snapshot: %s", e.out)
	}
	if e.exit == 0 {
		if err := eventtest.InvalidSnapshot([]byte(e.out)); err != nil {
			m.t.Errorf("snapshot: %v\n%s", err, e.out)
		}
	}
}
