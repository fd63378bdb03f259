package auth

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// Guarantee: V1.
func TestATokenIsGoodByItsValueUntilItIsRevokedOrExpires(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := t.TempDir()
	tokens := OpenTokens(dir, func() time.Time { return now })
	text, made, err := tokens.Create("ci", Operator, "team-a", now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	p, err := tokens.Principal(text)
	if err != nil || p != (Principal{Tenant: "team-a", Role: Operator, TokenID: made.ID}) {
		t.Fatalf("principal %+v, %v", p, err)
	}
	for name, bad := range map[string]string{"none": "", "another": prefix + strings.Repeat("A", 43), "cut": text[:len(text)-1], "longer": text + "A",
		"upper": strings.ToUpper(text), "its id": made.ID, "its hash": made.Hash} {
		if _, err := tokens.Principal(bad); belay.CodeOf(err) != belay.CodeUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	now = now.Add(time.Hour)
	if _, err := tokens.Principal(text); belay.CodeOf(err) != belay.CodeUnauthorized {
		t.Errorf("expired: %v", err)
	}
	now = now.Add(-time.Hour)
	if _, err := OpenTokens(dir, nil).Revoke(made.ID[:20]); err != nil { // another process
		t.Fatal(err)
	}
	if _, err := tokens.Principal(text); belay.CodeOf(err) != belay.CodeUnauthorized {
		t.Errorf("revoked: %v", err)
	}
}

// TestTheLastUseOfATokenIsKept to the hour, for all processes.
func TestTheLastUseOfATokenIsKept(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := t.TempDir()
	tokens := OpenTokens(dir, func() time.Time { return now })
	text, _, err := tokens.Create("ci", Viewer, DefaultTenant, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	used := func() time.Time {
		t.Helper()
		all, err := OpenTokens(dir, nil).List()
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Used
	}
	if at := used(); !at.IsZero() {
		t.Errorf("used before it was: %s", at)
	}
	for _, later := range []struct{ after, noted time.Duration }{{0, 0}, {59 * time.Minute, 0}, {time.Minute, time.Hour}} {
		now = now.Add(later.after)
		if _, err := tokens.Principal(text); err != nil {
			t.Fatal(err)
		}
		if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(later.noted); !used().Equal(want) {
			t.Errorf("at %s: used %s, not %s", now, used(), want)
		}
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700) //nolint:errcheck // so that it can be removed
	now = now.Add(2 * time.Hour)
	if _, err := tokens.Principal(text); err != nil {
		t.Errorf("where nothing can be written: %v", err)
	}
}

// Guarantee: V4.
func TestTheFileOfTokensHoldsNoToken(t *testing.T) {
	dir := t.TempDir()
	text, _, err := OpenTokens(dir, nil).First(DefaultTenant)
	if err != nil || text == "" {
		t.Fatalf("%q, %v", text, err)
	}
	if again, _, err := OpenTokens(dir, nil).First(DefaultTenant); again != "" || err != nil {
		t.Errorf("a second first token: %q, %v", again, err)
	}
	path := filepath.Join(dir, "tokens.json")
	b, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(b), strings.TrimPrefix(text, prefix)) {
		t.Errorf("%v: the file has the token: %s", err, b)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTokens(dir, nil).Principal(text); belay.CodeOf(err) != belay.CodeBadConfig {
		t.Errorf("a file that others can read: %v", err)
	}
}

// Guarantee: V4.
func TestADamagedTokenFileRefusesEveryRequest(t *testing.T) {
	dir := t.TempDir()
	text, _, err := OpenTokens(dir, nil).First(DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", "{}", `[{"id":"x","role":"owner","hash":"00"}]`} {
		if err := os.WriteFile(filepath.Join(dir, "tokens.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens := OpenTokens(dir, nil)
		if _, err := tokens.Principal(text); belay.CodeOf(err) != belay.CodeBadConfig {
			t.Errorf("%q: %v", content, err)
		}
		if _, _, err := tokens.First(DefaultTenant); belay.CodeOf(err) != belay.CodeBadConfig {
			t.Errorf("%q: a new first token: %v", content, err)
		}
	}
}

func TestTokensAreMadeByManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, _, err := OpenTokens(dir, nil).Create("", Viewer, DefaultTenant, time.Time{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := OpenTokens(dir, nil).List(); err != nil || len(all) != 20 {
		t.Errorf("%d tokens, %v", len(all), err)
	}
}

func TestWhatCannotBeAToken(t *testing.T) {
	tokens := OpenTokens(t.TempDir(), nil)
	for _, c := range []struct {
		name, tenant string
		role         Role
		want         belay.Code
	}{
		{"", "default", "root", belay.CodeUsage},
		{"", "../other", Owner, belay.CodeBadID},
		{"", "", Owner, belay.CodeBadID},
		{"", "A", Owner, belay.CodeBadID},
		{strings.Repeat("n", 101), "default", Owner, belay.CodeTooLarge},
	} {
		if _, _, err := tokens.Create(c.name, c.role, c.tenant, time.Time{}); belay.CodeOf(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := tokens.Revoke(""); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("revoke nothing: %v", err)
	}
}

func TestADroppedTokenIsGone(t *testing.T) {
	tokens := OpenTokens(t.TempDir(), nil)
	keeps, _, err := tokens.Create("", Viewer, DefaultTenant, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	text, made, err := tokens.Create("", Owner, DefaultTenant, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tokens.Drop(made.ID), tokens.Drop(made.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Principal(text); belay.CodeOf(err) != belay.CodeUnauthorized {
		t.Errorf("it still counts: %v", err)
	}
	if _, err := tokens.Principal(keeps); err != nil {
		t.Errorf("another one doesn't any more: %v", err)
	}
	if all, err := tokens.List(); err != nil || len(all) != 1 {
		t.Errorf("%d tokens are left, %v", len(all), err)
	}
}
