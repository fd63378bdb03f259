package engine_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/testkit/memory"
)

var newGolden = flag.String("golden", "", "record a golden log under this name; an existing one is never replaced")

// TestGoldenLogs folds the log that each release left behind: a later build
// must come to the same states, or it would read old sessions differently.
// Guarantee: O13.
func TestGoldenLogs(t *testing.T) {
	if *newGolden != "" {
		record(t, *newGolden)
	}
	logs, err := filepath.Glob("testdata/golden/*.jsonl")
	if err != nil || len(logs) == 0 {
		t.Fatal("no golden logs", err)
	}
	for _, log := range logs {
		var want map[belay.StreamID]belay.Digest
		raw, err := os.ReadFile(strings.TrimSuffix(log, ".jsonl") + ".digests.json")
		if err == nil {
			err = json.Unmarshal(raw, &want)
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, digests(t, log)); d != "" {
			t.Errorf("%s folds to other states (-recorded +now):\n%s", log, d)
		}
	}
}

func digests(t *testing.T, log string) map[belay.StreamID]belay.Digest {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	folds := map[belay.StreamID]core.Decider{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event.Envelope
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if folds[e.Stream] == nil {
			d, _, err := engine.NewDecider(e.Stream)
			if err != nil {
				t.Fatal(err)
			}
			folds[e.Stream] = d
		}
		folds[e.Stream].Apply(e)
	}
	out := map[belay.StreamID]belay.Digest{}
	for s, d := range folds {
		state, err := d.Save()
		if err != nil {
			t.Fatal(err)
		}
		var sorted any // the order of fields doesn't matter
		if err := json.Unmarshal(state, &sorted); err != nil {
			t.Fatal(err)
		}
		if state, err = json.Marshal(sorted); err != nil {
			t.Fatal(err)
		}
		out[s] = belay.DigestOf(state)
	}
	return out
}

// record keeps the log of a session with a crash in its at-most-once call.
func record(t *testing.T, name string) {
	t.Helper()
	base := filepath.Join("testdata/golden", name)
	if _, err := os.Stat(base + ".jsonl"); err == nil {
		t.Fatalf("%s exists: a golden log is never replaced", base)
	}
	for at := 1; ; at++ {
		m := newMachine(t)
		_, hit := m.run(at)
		lost := hit && m.check(at)
		m.discard()
		if !lost {
			continue
		}
		var out bytes.Buffer
		h := m.data.Open(memory.Options{})
		for r, err := range h.Scan(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(r.Event)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(bytes.ReplaceAll(line, []byte(m.dir), []byte("/workspace")))
			out.WriteByte('\n')
		}
		h.Close()
		if err := os.MkdirAll("testdata/golden", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(base+".jsonl", out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		sums, _ := json.MarshalIndent(digests(t, base+".jsonl"), "", "  ")
		if err := os.WriteFile(base+".digests.json", append(sums, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
}

// TestFactsAreValidUnderTheStandard holds every fact of the crash scenario
// against the standard's two event schemas.
// Guarantee: O14.
func TestFactsAreValidUnderTheStandard(t *testing.T) {
	n := 0
	for at := 1; at <= 60; at += 7 {
		m := newMachine(t)
		m.run(at)
		h := m.data.Open(memory.Options{})
		for r, err := range h.Scan(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			eventtest.Emitted(t, r.Event)
			n++
		}
		h.Close()
		m.discard()
	}
	t.Logf("%d facts", n)
}
