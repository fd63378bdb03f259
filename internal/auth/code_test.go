package auth

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// Guarantee: V45.
func TestACodeCountsOnceAndForFiveMinutes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := t.TempDir()
	tokens := OpenTokens(dir, func() time.Time { return now })
	for role, lasts := range map[Role]time.Duration{Operator: 30 * 24 * time.Hour, Viewer: 30 * 24 * time.Hour, Owner: 12 * time.Hour} {
		code, made, err := tokens.CreateCode("console on desk", role)
		if err != nil || len(code) != 22 {
			t.Fatalf("%q, %v", code, err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "tokens.json"))
		if err != nil || strings.Contains(string(b), code) {
			t.Errorf("%v: the file has the code", err)
		}
		if _, err := tokens.Principal(code); belay.CodeOf(err) != belay.CodeUnauthorized {
			t.Errorf("a code is taken for a token: %v", err)
		}
		if left, err := tokens.Untraded(made.ID); !left || err != nil {
			t.Errorf("it can be traded: %v, %v", left, err)
		}
		for name, bad := range map[string]string{"none": "", "cut": code[:21], "its id": made.ID, "its hash": made.Hash} {
			if _, _, err := tokens.Trade(bad); belay.CodeOf(err) != belay.CodeUnauthorized {
				t.Errorf("%s: %v", name, err)
			}
		}
		text, of, err := OpenTokens(dir, func() time.Time { return now }).Trade(code) // another process
		if err != nil || of.Role != role || of.Name != "console on desk" || !of.Until.Equal(now.Add(lasts)) {
			t.Fatalf("%+v, %v", of, err)
		}
		if p, err := tokens.Principal(text); err != nil || p != (Principal{Tenant: DefaultTenant, Role: role, TokenID: of.ID}) {
			t.Errorf("principal %+v, %v", p, err)
		}
		if _, _, err := tokens.Trade(code); belay.CodeOf(err) != belay.CodeUnauthorized {
			t.Errorf("it counts twice: %v", err)
		}
		if left, err := tokens.Untraded(made.ID); left || err != nil {
			t.Errorf("it was traded: %v, %v", left, err)
		}
	}
	code, _, err := tokens.CreateCode("", Operator)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(codeWithin)
	if _, _, err := tokens.Trade(code); belay.CodeOf(err) != belay.CodeUnauthorized {
		t.Errorf("after five minutes: %v", err)
	}
	if all, err := tokens.List(); err != nil || len(all) != 3 {
		t.Errorf("codes are listed: %v, %v", all, err)
	}
	if _, _, err := tokens.CreateCode("", "root"); belay.CodeOf(err) != belay.CodeUsage {
		t.Errorf("a role that isn't: %v", err)
	}
}

// TestOneOfManyTradesACode: whoever comes at the same time gets nothing.
// Guarantee: V45.
func TestOneOfManyTradesACode(t *testing.T) {
	dir := t.TempDir()
	code, _, err := OpenTokens(dir, nil).CreateCode("", Operator)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var got atomic.Int32
	for range 8 {
		all.Go(func() {
			if _, _, err := OpenTokens(dir, nil).Trade(code); err == nil {
				got.Add(1)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d tokens of one code", got.Load())
	}
}
