package conformance

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/model/tokens"
)

// others is what other libraries say of texts; window/table.mjs writes it.
type others struct {
	Packed []struct {
		File   string
		Limit  int
		Groups [][2]int // where each ends, and its tokens
	}
	Documents []string
	Scored    []struct {
		Question string
		Scores   []float64
	}
}

func readOthers(t *testing.T) (o others) {
	t.Helper()
	raw, err := os.ReadFile("testdata/window.json")
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Entries are packed as js-tiktoken's counts pack them, also where an entry is larger
// than a group.
func TestEntriesArePackedAsByAnotherLibrary(t *testing.T) {
	for _, p := range readOthers(t).Packed {
		raw, err := os.ReadFile("../" + p.File)
		if err != nil {
			t.Fatal(err)
		}
		var groups [][2]int
		pack := window.Packer{Limit: p.Limit}
		for i, line := range slices.Collect(strings.Lines(string(raw))) {
			n := tokens.Whole("cl100k_base", line)
			if pack.Add(n) {
				groups = append(groups, [2]int{})
			}
			g := &groups[len(groups)-1]
			g[0], g[1] = i+1, g[1]+n
		}
		if !slices.Equal(groups, p.Groups) {
			t.Errorf("%s, %d: groups %v, want %v", p.File, p.Limit, groups, p.Groups)
		}
	}
}

// Scores are those of okapibm25, whose documents are the lines of a text.
func TestScoresAreThoseOfAnotherLibrary(t *testing.T) {
	o := readOthers(t)
	text := strings.Join(o.Documents, "\n")
	x := window.NewIndex(text, 1)
	if len(x.Chunks) != len(o.Documents) || len(o.Scored) < 20 {
		t.Fatalf("%d chunks of %d documents, %d questions", len(x.Chunks), len(o.Documents), len(o.Scored))
	}
	for _, q := range o.Scored {
		scores, _ := x.Scores(text, q.Question)
		for i, want := range q.Scores {
			if math.Abs(scores[i]-want) > 1e-9 {
				t.Errorf("%q, document %d: %v, want %v", q.Question, i, scores[i], want)
			}
		}
	}
}
