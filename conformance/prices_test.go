package conformance

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model/catalog"
)

// differences are the costs that another library computes otherwise, and why.
var differences = []struct{ request, models, why string }{
	{"written", "gpt-5.5 gpt-5.4 gpt-5.4-mini gpt-5.3-codex gpt-5.2 gpt-5.1 gpt-5 gpt-5-mini gpt-5-nano o3 o4-mini gpt-4.1 gpt-4.1-mini gpt-4.1-nano gpt-4o gpt-4o-mini " +
		"gemini-3.8-flash gemini-3.5-flash gemini-3.1-pro-preview gemini-3.1-flash-lite gemini-3-flash-preview gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite",
		"the vendor has no price for what is written to its cache: ours is unknown, theirs is that of other input"},
	{"at 272000", "gpt-6-astra gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-5.5 gpt-5.4",
		"the vendor's pages of models have long requests begin above 272,000 tokens, its page of prices at them: ours takes the former, theirs the latter"},
	{"read", "claude-sonnet-5-5", sonnet}, {"written", "claude-sonnet-5-5", sonnet}, {"long", "claude-sonnet-5-5", sonnet},
	{"next year", "gpt-5.6-sol", "our price ends on 2026-11-21 and nothing is known of the next; theirs has no end"},
	{"all", "gpt-6.1-sol claude-haiku-5-5", "theirs doesn't know the model"},
}

const sonnet = "theirs takes every name that begins with claude-sonnet-5 for that model, whose cache is dearer"

// costsAlike reports whether a cost is an amount in dollars, rounded up to a
// millionth, but for what a sum of floating numbers is off.
func costsAlike(microUSD int64, usd float64) bool {
	over := float64(microUSD) - usd*1e6
	return over > -1e-6 && over < 1-1e-6
}

// Costs are those that another library computes from prices that others collected,
// but for the differences that are listed, which are all there.
func TestCostsAreThoseOfAnotherLibrary(t *testing.T) {
	var table struct {
		Usages map[string]struct {
			belay.Usage
			At time.Time
		}
		Models []struct {
			Provider, Model string
			USD             map[string]float64
		}
	}
	raw, err := os.ReadFile("testdata/prices.json") // prices/table.mjs writes it
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	models, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	differ, alike := map[string]bool{}, 0
	for _, m := range table.Models {
		ours, _ := models.Lookup(m.Model, m.Provider)
		same := 0
		for request, usd := range m.USD {
			u := table.Usages[request]
			u.Reported = true
			if got, ok := ours.Prices.Cost(u.Usage, u.At); ok && costsAlike(got, usd) {
				same++
				continue
			}
			differ[m.Model+" "+request] = true
		}
		if len(m.USD) == 0 {
			differ[m.Model+" all"] = true
		}
		if same >= 5 {
			alike++
		}
	}
	listed := map[string]bool{}
	for _, d := range differences {
		for name := range strings.FieldsSeq(d.models) {
			listed[name+" "+d.request] = true
		}
	}
	if d := cmp.Diff(listed, differ); d != "" {
		t.Errorf("what costs otherwise (-listed +found):\n%s", d)
	}
	if alike < 30 {
		t.Errorf("%d models cost the same", alike)
	}
}

// Costs are those that another agent recorded with each answer of a session that it
// led: 484 answers, most of them read from a cache and written to it. The file is
// what jq makes of the session with
//
//	select(.message.usage) | .message | [.provider+"/"+.model, (.usage | .input, .output, .cacheRead, .cacheWrite, .cost.total)] | @csv
func TestCostsAreThoseOfARecordedSession(t *testing.T) {
	f, err := os.Open("testdata/session.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 1+484 {
		t.Fatal(len(rows), err)
	}
	models, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[1:] {
		provider, name, _ := strings.Cut(row[0], "/")
		m, ok := models.Lookup(name, provider)
		if !ok {
			t.Fatalf("the catalogue has no %s", row[0])
		}
		var n [4]int64
		for k := range n {
			if n[k], err = strconv.ParseInt(row[1+k], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		usd, err := strconv.ParseFloat(row[5], 64)
		if err != nil {
			t.Fatal(err)
		}
		u := belay.Usage{Reported: true, Input: n[0] + n[2] + n[3], Output: n[1], Cached: n[2], CacheWrite: n[3]} // its input is without the cache's
		if got, ok := m.Prices.Cost(u, day); !ok || !costsAlike(got, usd) {
			t.Errorf("line %d: %+v costs %d, %v, recorded is %v", i+2, u, got, ok, usd)
		}
	}
}

// day is when the catalogue's prices held.
var day = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
