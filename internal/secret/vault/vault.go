// Package vault keeps named secrets of a person in one file that is encrypted
// with age. It promises that a value is never on disk in the clear, that a
// change is there whole or not at all, that changes of several processes at
// once don't lose one another, and that a file which is damaged, which others
// may read or which another identity encrypted is refused with a reason.
//
// What that protects: copies of the encrypted file, in a backup, a repository
// or a synchronised folder. What it doesn't: a program that runs as the same
// user can read the identity beside the file, unless that is kept elsewhere.
// Nothing here is touched, and no key is made, before a secret is wanted.
package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/secret"
)

// Names of the files, in one folder.
const (
	File         = "secrets.age"
	IdentityFile = "secrets.key"
	lockFile     = "secrets.lock"
)

// Bounds of what is kept.
const (
	MaxValue = 16 << 10 // bytes of a value
	maxName  = 64       // bytes of a name, see secretName
	maxFile  = 4 << 20
)

// Vault is a person's secrets. Only Dir must be set.
type Vault struct {
	Dir          string // the folder of the files; it is made when the first secret is
	Identity     string // the identity itself; empty: it is in a file
	IdentityPath string // of that file; empty: IdentityFile in Dir

	// Loaded, if set, gets every secret that comes into memory, the identity
	// too, before it can be used.
	Loaded func(name, value string)
}

// Entry is a stored secret, without its value.
type Entry struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"` // when it was set
}

// kept is the content of the file.
type kept struct {
	Version int     `json:"version"`
	Secrets []entry `json:"secrets"`
}

type entry struct {
	Entry
	Value string `json:"value"`
}

// version of the content.
const version = 1

var secretName = match.Lazy(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// CheckName returns an error if a secret's name is invalid.
func CheckName(name string) error {
	if !secretName.Match(name) {
		return belay.Errorf(belay.CodeUsage, "a secret's name is at most %d letters, digits, hyphens, underscores and dots", maxName).WithHint("such as OPENAI_API_KEY")
	}
	return nil
}

// CheckValue returns an error if a value is invalid. The error never repeats it.
func CheckValue(value string) error {
	bad := func(format string, args ...any) error {
		return belay.Errorf(belay.CodeUsage, format, args...).WithHint("give the key and nothing else, such as: belay secret set NAME <FILE")
	}
	switch {
	case value == "":
		return bad("the value is empty")
	case len(value) < secret.MinLength:
		return bad("the value is shorter than %d characters: it could not be taken out of a text", secret.MinLength)
	case len(value) > MaxValue:
		return bad("the value is longer than %d KiB", MaxValue>>10)
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }):
		return bad("the value is not one line of plain characters")
	}
	return nil
}

// Exists reports whether anything was ever kept.
func (v Vault) Exists() bool {
	_, err := os.Stat(v.path())
	return err == nil
}

func (v Vault) path() string { return filepath.Join(v.Dir, File) }

func (v Vault) identityPath() string {
	if v.IdentityPath != "" {
		return v.IdentityPath
	}
	return filepath.Join(v.Dir, IdentityFile)
}

// Get is the value of a name. One that isn't there is a belay.CodeNotFound.
func (v Vault) Get(name string) (string, error) {
	k, _, err := v.open()
	if err != nil {
		return "", err
	}
	if i := k.find(name); i >= 0 {
		return k.Secrets[i].Value, nil
	}
	return "", missing(name)
}

func missing(name string) error {
	return belay.Errorf(belay.CodeNotFound, "there is no secret %q", name).WithHint("belay secret set %s", name)
}

// List returns the secrets without their values, by name.
func (v Vault) List() ([]Entry, error) {
	k, _, err := v.open()
	if err != nil {
		return nil, err
	}
	out := make([]Entry, len(k.Secrets))
	for i, e := range k.Secrets {
		out[i] = e.Entry
	}
	return out, nil
}

// Set keeps a value under a name, in place of what was there. The first one
// makes the identity.
func (v Vault) Set(ctx context.Context, name, value string, now time.Time) error {
	if err := errors.Join(CheckName(name), CheckValue(value)); err != nil {
		return err
	}
	return v.change(ctx, func(k *kept) error {
		e := entry{Entry{name, now.UTC().Truncate(time.Second)}, value}
		if i := k.find(name); i >= 0 {
			k.Secrets[i] = e
			return nil
		}
		k.Secrets = append(k.Secrets, e)
		slices.SortFunc(k.Secrets, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
}

// Remove forgets a name. One that isn't there is a belay.CodeNotFound.
func (v Vault) Remove(ctx context.Context, name string) error {
	if !v.Exists() {
		return missing(name)
	}
	return v.change(ctx, func(k *kept) error {
		i := k.find(name)
		if i < 0 {
			return missing(name)
		}
		k.Secrets = slices.Delete(k.Secrets, i, i+1)
		return nil
	})
}

func (k *kept) find(name string) int {
	return slices.IndexFunc(k.Secrets, func(e entry) bool { return e.Name == name })
}

// change reads, changes and writes while no other process does.
func (v Vault) change(ctx context.Context, edit func(*kept) error) error {
	if err := os.MkdirAll(v.Dir, 0o700); err != nil {
		return belay.Errorf(belay.CodeNotWritten, "the folder can't be made").At(v.Dir).Wrap(err).WithHint("XDG_CONFIG_HOME names the folder of settings")
	}
	unlock, err := files.Lock(ctx, filepath.Join(v.Dir, lockFile))
	if err != nil {
		return err
	}
	defer unlock()
	k, id, err := v.open()
	if err != nil {
		return err
	}
	if err := edit(&k); err != nil {
		return err
	}
	if id == nil {
		if id, err = v.newIdentity(); err != nil {
			return err
		}
	}
	return v.write(k, id)
}

// open reads the file. Where there is none yet, there may be no identity either.
func (v Vault) open() (kept, *age.X25519Identity, error) {
	k := kept{Version: version}
	sealed, err := files.ReadPrivate(v.path(), maxFile, belay.CodeBadSecrets)
	if errors.Is(err, fs.ErrNotExist) {
		id, err := v.identity()
		if errors.Is(err, errNoIdentity) && v.IdentityPath == "" {
			return k, nil, nil
		}
		return k, id, err
	}
	if err != nil {
		return k, nil, err
	}
	id, err := v.identity()
	if err != nil {
		return k, nil, err
	}
	plain, err := unseal(sealed, id)
	if err != nil {
		return k, nil, v.refused(err)
	}
	if err := json.Unmarshal(plain, &k); err != nil || k.Version < 1 {
		return k, nil, v.refused(errors.New("what it holds is no list of secrets"))
	}
	if k.Version > version {
		return k, nil, belay.Errorf(belay.CodeRequires, "a newer version of the program wrote it").At(v.path()).WithHint("update belay")
	}
	if v.Loaded != nil {
		v.Loaded(IdentityFile, id.String())
		for _, e := range k.Secrets {
			v.Loaded(e.Name, e.Value)
		}
	}
	return k, id, nil
}

func unseal(sealed []byte, id age.Identity) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), id)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxFile))
}

// refused explains an error of decrypting the file.
func (v Vault) refused(err error) error {
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return belay.Errorf(belay.CodeBadSecrets, "it was encrypted for another identity than the one here").At(v.path()).
			WithHint("--identity FILE or BELAY_SECRET_KEY gives the right one; without it the secrets are lost: move the file away and set them again")
	}
	return belay.Errorf(belay.CodeBadSecrets, "it is damaged").At(v.path()).Wrap(err).WithHint("bring it back from a backup, or move it away and set the secrets again")
}

func (v Vault) write(k kept, id *age.X25519Identity) error {
	k.Version = version
	plain, err := json.Marshal(k)
	if err != nil {
		return err
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, id.Recipient())
	if err != nil {
		return err
	}
	if _, err = w.Write(plain); err == nil {
		err = w.Close()
	}
	if err != nil {
		return err
	}
	return put(v.path(), sealed.Bytes())
}

func put(path string, content []byte) error {
	return files.WriteWhole(files.System{}, path, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// errNoIdentity means that no identity was ever made here.
var errNoIdentity = errors.New("there is no identity")

// identity is what the file is encrypted for.
func (v Vault) identity() (*age.X25519Identity, error) {
	if v.Identity != "" {
		return parseIdentity(v.Identity, "BELAY_SECRET_KEY")
	}
	path := v.identityPath()
	b, err := files.ReadPrivate(path, maxName<<10, belay.CodeBadSecrets)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, belay.Errorf(belay.CodeBadSecrets, "the identity that opens %s is missing", File).At(path).Wrap(errNoIdentity).
			WithHint("bring the file back; --identity FILE or BELAY_SECRET_KEY gives it from elsewhere")
	}
	if err != nil {
		return nil, err
	}
	return parseIdentity(string(b), path)
}

// parseIdentity reads what age-keygen writes. The error repeats nothing of it.
func parseIdentity(s, where string) (*age.X25519Identity, error) {
	var found *age.X25519Identity
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
			continue
		}
		id, err := age.ParseX25519Identity(l)
		if err != nil || found != nil {
			return nil, belay.Errorf(belay.CodeBadSecrets, "it is not one identity of age").At(where).WithHint("one line that begins with AGE-SECRET-KEY-1, as age-keygen writes it")
		}
		found = id
	}
	if found == nil {
		return nil, belay.Errorf(belay.CodeBadSecrets, "it holds no identity of age").At(where).WithHint("one line that begins with AGE-SECRET-KEY-1, as age-keygen writes it")
	}
	return found, nil
}

// newIdentity makes the identity that secrets are encrypted for from now on. It
// never replaces one.
func (v Vault) newIdentity() (*age.X25519Identity, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("# opens %s beside it; both together give the secrets\n# public key: %s\n%s\n", File, id.Recipient(), id)
	return id, put(v.identityPath(), []byte(text))
}
