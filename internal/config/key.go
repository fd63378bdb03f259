package config

import (
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/files"
)

// maxKey bounds a key, in bytes.
const maxKey = 16 << 10

// Typed is a provider's key as a person typed it.
type Typed struct{ Provider, Key string }

// SecretOf is the name of the secret that holds a provider's key. A provider that wants
// none, or has it elsewhere, is an error.
func (s Service) SecretOf() (string, error) {
	switch {
	case s.Key.Kind == "secret":
		return s.Key.Name, nil
	case s.Key.Kind != "":
		return "", belay.Errorf(belay.CodeUsage, "the key of %s is in %s", s.Name, s.Key).At(s.Key.Where).WithHint("key: secret:NAME, then belay login %s", s.Name)
	case len(s.Keys) == 0 && s.Where == "":
		return "", belay.Errorf(belay.CodeUsage, "%s wants no key", s.Name).WithHint("belay models test --provider %s --model NAME", s.Name)
	case len(s.Keys) == 0:
		return "", belay.Errorf(belay.CodeUsage, "the description of %s names no place for a key", s.Name).At(s.Where).WithHint("key: secret:NAME, then belay login %s", s.Name)
	}
	return s.Keys[0], nil
}

// keyVariable is the variable that holds a provider's key, if one does.
func (e Env) keyVariable(s Service) (name, value string) {
	for _, name := range s.Keys {
		if v := strings.TrimSpace(e.Get(name)); v != "" {
			return name, v
		}
	}
	return "", ""
}

// keyOf is a provider's key: as it was typed, else where its description says, else in the vendor's
// variables, else a secret that has the name of one of these. Empty is none.
func (in Input) keyOf(s Service) (string, error) {
	if in.Typed.Key != "" && in.Typed.Provider == s.Name {
		return in.Typed.Key, in.hide(s.Name, in.Typed.Key, s.Name)
	}
	if s.Key != (manifest.Reference{}) {
		return in.Resolve(s.Key)
	}
	if name, v := in.keyVariable(s); name != "" {
		return v, in.hide(name, v, name)
	}
	if len(s.Keys) == 0 {
		return "", nil
	}
	v, err := in.keptKey(s.Keys)
	if v == "" && err == nil && !s.Open {
		err = belay.Errorf(belay.CodeNoKey, "it wants a key, and there is none").At(s.Name).
			WithHint("%s", s.keyHint())
	}
	return v, err
}

// keptKey is the first of some names that is a kept secret; empty: none is. Who
// never kept one pays nothing for this.
func (in Input) keptKey(names []string) (string, error) {
	v, err := in.Vault("", in.Secrets)
	if err != nil || !v.Exists() {
		return "", nil //nolint:nilerr // no home directory, no secrets
	}
	for _, name := range names {
		switch key, err := v.Get(name); {
		case belay.CodeOf(err) == belay.CodeNotFound:
		case err != nil:
			return "", err
		default:
			return key, in.hide(name, key, name)
		}
	}
	return "", nil
}

func (in Input) headerOf(h manifest.Header) (string, error) {
	if h.Ref == (manifest.Reference{}) {
		return h.Text, nil
	}
	v, err := in.Resolve(h.Ref)
	return h.Text + v, err
}

// Resolve finds the secret that a reference names.
func (in Input) Resolve(r manifest.Reference) (string, error) {
	bad := func(hint, format string, args ...any) error {
		return belay.Errorf(belay.CodeNoKey, format, args...).At(r.Where).WithHint("%s", hint)
	}
	var v string
	switch r.Kind {
	case "env":
		if v = strings.TrimSpace(in.Get(r.Name)); v == "" {
			return "", bad("set "+r.Name+" in the environment", "the variable %s is not set", r.Name)
		}
	case "file":
		b, err := files.ReadUpTo(in.keyFile(r), maxKey)
		if err != nil {
			return "", bad("name a file that holds the key and nothing else", "%s: %s", r.Name, files.Reason(err))
		}
		if v = strings.TrimSpace(string(b)); v == "" {
			return "", bad("name a file that holds the key and nothing else", "%s is empty", r.Name)
		}
	case "secret":
		kept, err := in.Vault("", in.Secrets)
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
	return v, in.hide(strings.TrimPrefix(r.Name, "~"), v, r.Where)
}

// keyFile is the file of a reference: from the home directory, or from the
// folder of the file that names it.
func (in Input) keyFile(r manifest.Reference) string {
	if rest, ok := strings.CutPrefix(r.Name, "~/"); ok {
		return filepath.Join(in.Get("HOME"), rest)
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
func (in Input) hide(name, value, where string) error {
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
		return belay.Errorf(belay.CodeNoKey, "a key is one line of plain characters").At(where).WithHint("copy it again from the vendor's page")
	}
	in.Secrets.Add(name, value)
	return nil
}

// keyHint is how a provider gets its key.
func (s Service) keyHint() string {
	if _, ok := vendor(s.Name); ok {
		return "set " + s.Keys[0] + ", or belay login " + s.Name
	}
	return "set " + s.Keys[0] + ", or belay secret set " + s.Keys[0]
}
