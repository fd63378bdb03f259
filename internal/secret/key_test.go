package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay/internal/secret"
)

var signed = regexp.MustCompile(`^\{"k":"\[redacted:TOKEN:[0-9a-f]{16}\]"\}$`)

// What stands for a secret in arguments tells values of one name apart, is the
// same for every spelling of one, and means nothing under another key.
// Guarantee: X31.
func TestArgumentsTellSecretsApart(t *testing.T) {
	var s secret.Scrubber
	s.Add("TOKEN", "first-value-1")
	s.Add("TOKEN", "second-value-2")
	key, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	args := func(v string, key []byte) string {
		raw, _ := json.Marshal(map[string]string{"k": v})
		return string(s.Args(raw, key))
	}
	one, two := args("first-value-1", key), args("second-value-2", key)
	if one == two || !signed.MatchString(one) || !signed.MatchString(two) {
		t.Errorf("%s and %s", one, two)
	}
	if again := args("first-value-1", key); again != one {
		t.Errorf("the same value is %s and %s", one, again)
	}
	if encoded := args(base64.StdEncoding.EncodeToString([]byte("first-value-1")), key); !strings.HasPrefix(encoded, strings.TrimSuffix(one, `"}`)) {
		t.Errorf("another spelling is %s, not %s", encoded, one)
	}
	if args("first-value-1", other) == one || strings.Count(args("first-value-1", nil), ":") != 2 {
		t.Errorf("another key: %s; none: %s", args("first-value-1", other), args("first-value-1", nil))
	}
	if got := string(s.JSON([]byte(`{"k":"first-value-1"}`))); got != `{"k":"[redacted:TOKEN]"}` {
		t.Errorf("elsewhere: %s", got)
	}
	if escaped := string(s.Args([]byte(`{"k":"\u0066irst-value-1"}`), key)); escaped != one {
		t.Errorf("escaped: %s, not %s", escaped, one)
	}
}

// Guarantee: X31.
func TestTheKeyOfAStoreIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	keys := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() { keys[i], _ = secret.StoreKey(dir) })
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != 32 || !bytes.Equal(k, keys[0]) {
			t.Fatalf("keys differ: %x", keys)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	path := filepath.Join(dir, files[0].Name())
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if other, err := secret.StoreKey(t.TempDir()); err != nil || bytes.Equal(other, keys[0]) {
		t.Errorf("another store has the same key, %v", err)
	}
	for _, bad := range []string{"", "xyz", strings.Repeat("ab", 31), strings.Repeat("zz", 32)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := secret.StoreKey(dir); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := secret.StoreKey(filepath.Join(dir, "not-there")); err == nil {
		t.Error("a folder that isn't there has a key")
	}
}
