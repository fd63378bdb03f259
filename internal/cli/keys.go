package cli

import (
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/secret"
)

// maxKey bounds a key, in bytes.
const maxKey = 16 << 10

// secrets removes secret values from everything that leaves: the environment's
// secrets from the start, keys as they are loaded.
func (a *app) secrets() *secret.Scrubber {
	a.hiding.Do(func() { a.hidden = secret.FromEnviron(a.Environ) })
	return a.hidden
}

// keyVariable is the variable that holds a provider's key, if one does.
func (a *app) keyVariable(s service) (name, value string) {
	for _, name := range s.keys {
		if v := strings.TrimSpace(a.Getenv(name)); v != "" {
			return name, v
		}
	}
	return "", ""
}

// keyOf is a provider's key: where its description says, else in the vendor's
// variables, else a secret that has the name of one of these. Empty is none.
func (a *app) keyOf(s service) (string, error) {
	if s.key != (manifest.Reference{}) {
		return a.resolve(s.key)
	}
	if name, v := a.keyVariable(s); name != "" {
		return v, a.hide(name, v, name)
	}
	if len(s.keys) == 0 {
		return "", nil
	}
	v, err := a.keptKey(s.keys)
	if v == "" && err == nil && !s.open {
		err = belay.Errorf(belay.CodeNoKey, "it wants a key, and there is none").At(s.name).
			WithHint("set %s, or belay secret set %s", s.keys[0], s.keys[0])
	}
	return v, err
}

// keptKey is the first of some names that is a kept secret; empty: none is. Who
// never kept one pays nothing for this.
func (a *app) keptKey(names []string) (string, error) {
	v, err := a.vault("")
	if err != nil || !v.Exists() {
		return "", nil //nolint:nilerr // no home directory, no secrets
	}
	for _, name := range names {
		switch key, err := v.Get(name); {
		case belay.CodeOf(err) == belay.CodeNotFound:
		case err != nil:
			return "", err
		default:
			return key, a.hide(name, key, name)
		}
	}
	return "", nil
}

func (a *app) headerOf(h manifest.Header) (string, error) {
	if h.Ref == (manifest.Reference{}) {
		return h.Text, nil
	}
	v, err := a.resolve(h.Ref)
	return h.Text + v, err
}

// resolve finds the secret that a reference names.
func (a *app) resolve(r manifest.Reference) (string, error) {
	bad := func(hint, format string, args ...any) error {
		return belay.Errorf(belay.CodeNoKey, format, args...).At(r.Where).WithHint("%s", hint)
	}
	var v string
	switch r.Kind {
	case "env":
		if v = strings.TrimSpace(a.Getenv(r.Name)); v == "" {
			return "", bad("set "+r.Name+" in the environment", "the variable %s is not set", r.Name)
		}
	case "file":
		b, err := readfile.UpTo(a.keyFile(r), maxKey)
		if err != nil {
			return "", bad("name a file that holds the key and nothing else", "%s: %s", r.Name, readfile.Reason(err))
		}
		if v = strings.TrimSpace(string(b)); v == "" {
			return "", bad("name a file that holds the key and nothing else", "%s is empty", r.Name)
		}
	case "secret":
		kept, err := a.vault("")
		if err != nil {
			return "", err
		}
		if v, err = kept.Get(r.Name); belay.CodeOf(err) == belay.CodeNotFound {
			return "", bad("belay secret set "+r.Name, "there is no secret %q", r.Name)
		}
		if err != nil {
			return "", err
		}
	}
	return v, a.hide(strings.TrimPrefix(r.Name, "~"), v, r.Where)
}

// keyFile is the file of a reference: from the home directory, or from the
// folder of the file that names it.
func (a *app) keyFile(r manifest.Reference) string {
	if rest, ok := strings.CutPrefix(r.Name, "~/"); ok {
		return filepath.Join(a.Getenv("HOME"), rest)
	}
	if filepath.IsAbs(r.Name) {
		return r.Name
	}
	from, _, _ := strings.Cut(r.Where, ".yaml:")
	return filepath.Join(filepath.Dir(from+".yaml"), r.Name)
}

// hide registers a key before it is used. A key that couldn't be sent in a
// header field is refused. One that is too short to be removed from texts is
// taken for a placeholder, which many local servers want and which needs no
// hiding.
func (a *app) hide(name, value, where string) error {
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
		return belay.Errorf(belay.CodeNoKey, "a key is one line of plain characters").At(where).WithHint("copy it again from the vendor's page")
	}
	a.secrets().Add(name, value)
	return nil
}
