package vault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/belay-run/belay"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func filled(t *testing.T) Vault {
	t.Helper()
	v := Vault{Dir: filepath.Join(t.TempDir(), "belay")}
	if err := v.Set(t.Context(), "b", "sk-the-value-of-b", noon); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWhatIsSetIsThereUntilItIsRemoved(t *testing.T) {
	v := Vault{Dir: filepath.Join(t.TempDir(), "a", "belay")}
	if list, err := v.List(); len(list) != 0 || err != nil || v.Exists() {
		t.Fatalf("before anything was set: %v %v", list, err)
	}
	if _, err := v.Get("a"); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("a name that was never set: %v", err)
	}
	if err := v.Remove(t.Context(), "a"); belay.CodeOf(err) != belay.CodeNotFound || v.Exists() {
		t.Errorf("removing what isn't there: %v", err)
	}
	for _, kv := range [][2]string{{"b", "sk-first-of-b"}, {"a", "sk-of-a"}, {"b", "sk-second-of-b"}} {
		if err := v.Set(t.Context(), kv[0], kv[1], noon); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := v.Get("b"); got != "sk-second-of-b" || err != nil {
		t.Errorf("b is %q %v", got, err)
	}
	if list, err := v.List(); err != nil || len(list) != 2 || list[0] != (Entry{"a", noon}) || list[1].Name != "b" {
		t.Errorf("%v %v", list, err)
	}
	if err := v.Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Get("b"); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("after it was removed: %v", err)
	}
	if got, err := v.Get("a"); got != "sk-of-a" || err != nil {
		t.Errorf("a is %q %v", got, err)
	}
}

// TestNothingIsOnDiskInTheClear: the files are the owner's alone, and the value
// is in none of them.
// Guarantee: X12.
func TestNothingIsOnDiskInTheClear(t *testing.T) {
	v := filled(t)
	files, err := os.ReadDir(v.Dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v %v", f.Name(), info.Mode(), err)
		}
		b, err := os.ReadFile(filepath.Join(v.Dir, f.Name()))
		if err != nil || bytes.Contains(b, []byte("the-value")) {
			t.Errorf("%s holds the value in the clear (%v)", f.Name(), err)
		}
	}
	if info, err := os.Stat(v.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v %v", info.Mode(), err)
	}
}

// TestAgeItselfOpensIt: the file is plain age, for whoever has to do without us.
func TestAgeItselfOpensIt(t *testing.T) {
	v := filled(t)
	key, err := os.Open(v.identityPath())
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	ids, err := age.ParseIdentities(key)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	sealed, err := os.ReadFile(v.path())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := unseal(sealed, ids[0])
	if err != nil || !bytes.Contains(plain, []byte(`"value":"sk-the-value-of-b"`)) {
		t.Errorf("%s %v", plain, err)
	}
}

// TestSettingAtOnceLosesNothing: each process reads what the one before wrote.
// Guarantee: X12.
func TestSettingAtOnceLosesNothing(t *testing.T) {
	v := Vault{Dir: t.TempDir()}
	const n = 24
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := v.Set(t.Context(), fmt.Sprintf("n%02d", i), fmt.Sprintf("sk-value-%02d", i), noon); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range n {
		if got, err := v.Get(fmt.Sprintf("n%02d", i)); got != fmt.Sprintf("sk-value-%02d", i) {
			t.Errorf("n%02d is %q %v", i, got, err)
		}
	}
}

func TestTheIdentityMayBeElsewhere(t *testing.T) {
	v := filled(t)
	text, err := os.ReadFile(v.identityPath())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "key")
	if err := os.Rename(v.identityPath(), elsewhere); err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]Vault{
		"in a file":         {Dir: v.Dir, IdentityPath: elsewhere},
		"in an environment": {Dir: v.Dir, Identity: string(text)},
	} {
		if got, err := w.Get("b"); got != "sk-the-value-of-b" || err != nil {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if err := w.Set(t.Context(), "c", "sk-of-"+strings.Fields(name)[1], noon); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(v.identityPath()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an identity was made beside the file: %v", err)
	}
	if _, err := (Vault{Dir: t.TempDir(), IdentityPath: filepath.Join(t.TempDir(), "none")}).List(); belay.CodeOf(err) != belay.CodeBadSecrets {
		t.Errorf("an identity that was named and isn't there: %v", err)
	}
}

// TestAFileThatCannotBeTrustedIsRefused: each with its reason, and none is
// replaced by a change.
// Guarantee: X12.
func TestAFileThatCannotBeTrustedIsRefused(t *testing.T) {
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, content string) func(t *testing.T, v Vault) {
		return func(t *testing.T, v Vault) {
			if err := os.WriteFile(filepath.Join(v.Dir, path), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, Vault)
		want  string
		code  belay.Code
	}{
		"of another identity": {write(IdentityFile, other.String()), "for another identity", belay.CodeBadSecrets},
		"no identity":         {write(IdentityFile, "AGE-SECRET-KEY-1QQPQ"), "not one identity of age", belay.CodeBadSecrets},
		"two identities":      {write(IdentityFile, other.String()+"\n"+other.String()), "not one identity of age", belay.CodeBadSecrets},
		"an empty identity":   {write(IdentityFile, "# nothing\n"), "no identity of age", belay.CodeBadSecrets},
		"a missing identity": {func(t *testing.T, v Vault) {
			if err := os.Remove(v.identityPath()); err != nil {
				t.Fatal(err)
			}
		}, "is missing", belay.CodeBadSecrets},
		"cut off": {func(t *testing.T, v Vault) {
			if err := os.Truncate(v.path(), 190); err != nil {
				t.Fatal(err)
			}
		}, "is damaged", belay.CodeBadSecrets},
		"a changed byte": {func(t *testing.T, v Vault) {
			b, err := os.ReadFile(v.path())
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)-3] ^= 1
			write(File, string(b))(t, v)
		}, "is damaged", belay.CodeBadSecrets},
		"garbage": {write(File, "garbage"), "is damaged", belay.CodeBadSecrets},
		"empty":   {write(File, ""), "is damaged", belay.CodeBadSecrets},
		"no list": {func(t *testing.T, v Vault) { seal(t, v, "[]") }, "no list of secrets", belay.CodeBadSecrets},
		"newer":   {func(t *testing.T, v Vault) { seal(t, v, `{"version":2}`) }, "a newer version", belay.CodeRequires},
		"readable by others": {func(t *testing.T, v Vault) {
			if err := os.Chmod(v.path(), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "others may read or change it (mode 0644)", belay.CodeBadSecrets},
		"identity readable by others": {func(t *testing.T, v Vault) {
			if err := os.Chmod(v.identityPath(), 0o640); err != nil {
				t.Fatal(err)
			}
		}, "others may read or change it (mode 0640)", belay.CodeBadSecrets},
	} {
		t.Run(name, func(t *testing.T) {
			v := filled(t)
			c.spoil(t, v)
			before, err := os.ReadFile(v.path())
			if err != nil {
				t.Fatal(err)
			}
			for what, err := range map[string]error{
				"get":  second(v.Get("b")),
				"list": second(v.List()),
				"set":  v.Set(t.Context(), "c", "sk-of-c-sk-of-c", noon),
				"rm":   v.Remove(t.Context(), "b"),
			} {
				if belay.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want %s", what, err, c.want)
				}
				if err != nil && (strings.Contains(err.Error(), "AGE-SECRET-KEY-1") || strings.Contains(err.Error(), "the-value")) {
					t.Errorf("%s: the error tells a secret: %v", what, err)
				}
			}
			if after, err := os.ReadFile(v.path()); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// seal puts a content into the file.
func seal(t *testing.T, v Vault, plain string) {
	t.Helper()
	id, err := v.identity()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := age.Encrypt(&b, id.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(plain)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(v.path(), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsLoadedIsToldBeforeItIsUsed(t *testing.T) {
	v := filled(t)
	told := map[string]string{}
	v.Loaded = func(name, value string) { told[name] = value }
	if _, err := v.Get("no such name"); belay.CodeOf(err) != belay.CodeNotFound {
		t.Fatal(err)
	}
	if told["b"] != "sk-the-value-of-b" || !strings.HasPrefix(told[IdentityFile], "AGE-SECRET-KEY-1") {
		t.Errorf("told: %v", told)
	}
}

func TestNamesAndValuesAreChecked(t *testing.T) {
	v := Vault{Dir: filepath.Join(t.TempDir(), "none")}
	for name, value := range map[string]string{
		"":                      "sk-long-enough",
		"-a":                    "sk-long-enough",
		"a b":                   "sk-long-enough",
		"a/b":                   "sk-long-enough",
		strings.Repeat("n", 65): "sk-long-enough",
		"a":                     "",
		"b":                     "k3y!",
		"c":                     "two\nlines-of-it",
		"d":                     "not plain: é",
		"e":                     strings.Repeat("x", MaxValue+1),
	} {
		err := v.Set(t.Context(), name, value, noon)
		if belay.CodeOf(err) != belay.CodeUsage {
			t.Errorf("%q: %v", name, err)
		}
		if err != nil && value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("%q: the error tells the value: %v", name, err)
		}
	}
	if _, err := os.Stat(v.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
	if err := v.Set(t.Context(), "OPENAI_API_KEY", "sk-ok/+=~ with blanks", noon); err != nil {
		t.Error(err)
	}
}
