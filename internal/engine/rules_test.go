package engine_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
)

// TestRulesAreKeptAsTheyAre: what is kept of rules is what they say, whatever
// their texts hold, and tools that come again are the same bytes.
func TestRulesAreKeptAsTheyAre(t *testing.T) {
	r := newRig(t, 1)
	specs := []belay.ToolSpec{{Name: "a", Doc: `says "tools":null`, Input: json.RawMessage(`{ "type": "object" }`)}, {Name: "b", Input: json.RawMessage(`{}`)}}
	for name, rules := range map[string]*thread.Rules{
		"no tools":   {System: "alone", Workspace: "/ws"},
		"tools":      {System: "alone", Workspace: "/ws", Tools: specs},
		"one fewer":  {System: "alone", Workspace: "/ws", Tools: specs[:1]},
		"again":      {System: `"tools":[]}`, Workspace: "/w", Tools: specs, Settings: belay.Settings{Tools: []string{"full"}, Model: "<m>"}},
		"everything": {System: "s", Workspace: "/w", Tools: specs, Output: json.RawMessage(`{"type":"string"}`), Grants: []policy.Grant{{Tool: "a", Tier: policy.TierUser, Kind: "rule"}}, Agent: "x", ByOther: true, UntrustedWorkspace: true, Home: "/h", Shadowed: true},
	} {
		ref, err := r.e.KeepRules(t.Context(), rules)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kept, err := r.db.Get(t.Context(), ref.Digest)
		if err != nil || int64(len(kept)) != ref.Size {
			t.Fatalf("%s: %d bytes of %d, %v", name, len(kept), ref.Size, err)
		}
		want, err := json.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		var got, direct thread.Rules
		if err := json.Unmarshal(kept, &got); err != nil {
			t.Fatalf("%s: %v in %s", name, err, kept)
		}
		if err := json.Unmarshal(want, &direct); err != nil {
			t.Fatal(err)
		}
		if len(direct.Tools) == 0 {
			direct.Tools, got.Tools = nil, nil
		}
		if !reflect.DeepEqual(got, direct) {
			t.Errorf("%s: kept as\n%s\nwhich isn't\n%s", name, kept, want)
		}
		if n := strings.Count(string(kept), `"tools":`) - strings.Count(string(want), `"tools":`); n != 0 {
			t.Errorf("%s: tools are named %d times more in %s", name, n, kept)
		}
	}
}

// TestCachedRulesAreNotReadAgain: who keeps rules and drives their turn doesn't
// read them again.
func TestCachedRulesAreNotReadAgain(t *testing.T) {
	r := newRig(t, 1)
	raw, err := r.db.Get(t.Context(), r.ref.Digest)
	if err != nil {
		t.Fatal(err)
	}
	var rules thread.Rules
	if err := json.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	rules.System = "others"
	all := rules.Tools
	if r.ref, err = r.e.KeepRules(t.Context(), &rules); err != nil {
		t.Fatal(err)
	}
	rules.Tools = rules.Tools[:1] // a turn is told by the digest of its tools which they were
	if fewer, err := r.e.KeepRules(t.Context(), &rules); err != nil || fewer.Digest == r.ref.Digest {
		t.Fatal(fewer, err)
	}
	f, err := r.e.Begin(t.Context(), store.Claim{Keep: engine.Lease}, r.first("AA")...)
	if err != nil || f == nil {
		t.Fatal(f, err)
	}
	before := r.contents.Load()
	if err := r.e.Session(t.Context(), "sess_AA", nil); err != nil {
		t.Fatal(err)
	}
	if n := r.contents.Load() - before; n != 0 {
		t.Errorf("%d contents were read, none was promised", n)
	}
	if err := f.Release(); err != nil {
		t.Fatal(err)
	}
	catalogs := 0
	for rec, err := range r.db.Window(t.Context(), store.Window{Session: "sess_AA"}) {
		if err != nil {
			t.Fatal(err)
		}
		p, ok := rec.Event.Data.(event.ToolCatalogResolved)
		if !ok {
			continue
		}
		catalogs++
		raw, err := json.Marshal(all)
		if err != nil || p.Digest != belay.DigestOf(raw) {
			t.Errorf("the catalog %v is called %s, and isn't %s", p.Tools, p.Digest, raw)
		}
	}
	if catalogs != 1 {
		t.Errorf("%d catalogs", catalogs)
	}
}
