package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/lib/match"
)

// Token is what is kept of a token: never the token itself.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"` // what a person calls it
	Role    Role      `json:"role"`
	Tenant  string    `json:"tenant"`
	Hash    string    `json:"hash"` // SHA-256 of the token, in hexadecimal digits
	Created time.Time `json:"created"`
	Until   time.Time `json:"until,omitzero"` // zero is for ever
	Revoked time.Time `json:"revoked,omitzero"`
	Used    time.Time `json:"used,omitzero"` // last, to the hour

	Lasts time.Duration `json:"lasts,omitempty"` // not 0: it is a code, and how long the token is good that it is traded for
}

// DefaultTenant is whose store the program itself uses.
const DefaultTenant = "default"

// prefix begins every token, so that a leaked one is recognised.
const prefix = "belay_"

// PrefixID begins the id of every token.
const PrefixID = "tok"

// MaxName is how long the name of a token may be, in bytes.
const MaxName = 100

// Bounds of the file.
const (
	maxTokens = 10_000
	maxFile   = 16 << 20 // bytes
)

// Tokens are the tokens of a store directory: a file that only its owner may
// read. Processes that change it take turns; one that reads it sees a change
// with the next request.
type Tokens struct {
	path string
	now  func() time.Time

	mu     sync.Mutex
	stamp  stamp
	byHash map[[32]byte]Token
	all    []Token
	noted  map[string]time.Time // uses that this process noted
}

// stamp tells one version of the file from another.
type stamp struct {
	at   time.Time
	size int64
	node uint64
}

// OpenTokens are the tokens of a store directory, which exists. now may be nil.
func OpenTokens(dir string, now func() time.Time) *Tokens {
	if now == nil {
		now = time.Now
	}
	return &Tokens{path: filepath.Join(dir, "tokens.json"), now: now}
}

var tenantName = match.Lazy(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// CheckTenant reports whether a name can be a tenant's: it is a folder's name.
func CheckTenant(name string) error {
	if !tenantName.Match(name) {
		return belay.Errorf(belay.CodeBadID, "%q can't be a tenant's name", name).WithHint("use up to 64 small letters, digits, - and _, a letter or digit first")
	}
	return nil
}

// Create makes a token and keeps its hash. The token is returned once and is
// nowhere else.
func (t *Tokens) Create(name string, role Role, tenant string, until time.Time) (string, Token, error) {
	return t.CreateOnce(Token{ID: belay.NewID(PrefixID), Name: name, Role: role, Tenant: tenant, Until: until})
}

// CreateOnce is Create with an id that the caller chose; it reads the name, role, tenant
// and end of what it is given. Where there is a token of this id already, it is returned
// without its text, or refused if it is another one.
func (t *Tokens) CreateOnce(want Token) (string, Token, error) {
	if !slices.Contains(Roles, want.Role) {
		return "", Token{}, belay.Errorf(belay.CodeUsage, "%q is none of %s", want.Role, rolesText()).WithHint("use one of them; an operator gives work")
	}
	if err := CheckTenant(want.Tenant); err != nil {
		return "", Token{}, err
	}
	if len(want.Name) > MaxName {
		return "", Token{}, belay.Errorf(belay.CodeTooLarge, "the name has %d bytes; at most %d are taken", len(want.Name), MaxName)
	}
	text, hash := random(prefix, 32)
	made := Token{ID: want.ID, Name: want.Name, Role: want.Role, Tenant: want.Tenant, Hash: hash, Created: t.now().UTC().Truncate(time.Second), Until: want.Until.UTC()}
	err := t.change(func(all []Token) ([]Token, error) {
		if i := slices.IndexFunc(all, func(x Token) bool { return x.ID == made.ID }); i >= 0 {
			have := all[i]
			if have.Name != made.Name || have.Role != made.Role || have.Tenant != made.Tenant || !have.Until.Equal(made.Until) {
				return nil, belay.Errorf(belay.CodeIDConflict, "another token was made under this id").At(made.ID)
			}
			text, made = "", have
			return all, nil
		}
		if len(all) >= maxTokens {
			return nil, belay.Errorf(belay.CodeTooLarge, "there are %d tokens already", len(all)).At(t.path).WithHint("belay token revoke ID, and remove the revoked ones from the file")
		}
		return append(all, made), nil
	})
	if err != nil {
		return "", Token{}, err
	}
	return text, made, nil
}

// random is a text of so many random bytes after a beginning, and its hash.
func random(begins string, bytes int) (text, hash string) {
	secret := make([]byte, bytes)
	rand.Read(secret) //nolint:errcheck // it never fails
	text = begins + base64.RawURLEncoding.EncodeToString(secret)
	return text, hashOf(text)
}

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

// First makes an owner's token if there is no token at all. It returns "" when
// there is one.
func (t *Tokens) First(tenant string) (string, Token, error) {
	all, err := t.List()
	if err != nil || len(all) > 0 {
		return "", Token{}, err
	}
	return t.Create("first", Owner, tenant, time.Time{})
}

// Revoke makes a token worthless, from the next request on. The beginning of
// the id is enough when no other begins so.
func (t *Tokens) Revoke(id string) (Token, error) {
	var gone Token
	err := t.change(func(all []Token) ([]Token, error) {
		var at []int
		for i := range all {
			if all[i].ID == id {
				at = []int{i}
				break
			}
			if id != "" && strings.HasPrefix(all[i].ID, id) {
				at = append(at, i)
			}
		}
		switch len(at) {
		case 1:
		case 0:
			return nil, belay.Errorf(belay.CodeNotFound, "no token has this id").At(id).WithHint("belay token list")
		default:
			return nil, belay.Errorf(belay.CodeNotFound, "%d tokens have ids that begin so", len(at)).At(id).WithHint("say more of the id; belay token list")
		}
		if all[at[0]].Revoked.IsZero() {
			all[at[0]].Revoked = t.now().UTC().Truncate(time.Second)
		}
		gone = all[at[0]]
		return all, nil
	})
	return gone, err
}

// Drop removes a token from the file: one that was made for a single use and
// needs no record. A token that doesn't exist is no error.
func (t *Tokens) Drop(id string) error {
	return t.change(func(all []Token) ([]Token, error) {
		return slices.DeleteFunc(all, func(x Token) bool { return x.ID == id }), nil
	})
}

// List are all tokens, the oldest first, revoked ones too.
func (t *Tokens) List() ([]Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return nil, err
	}
	return slices.Clone(t.all), nil
}

// Principal is who a token is, by its value. The token must be known, in force
// and written exactly as it was given out.
func (t *Tokens) Principal(token string) (Principal, error) {
	known, unused, err := t.good(token)
	if err != nil {
		return Principal{}, err
	}
	if unused {
		t.use(known.ID)
	}
	return Principal{Tenant: known.Tenant, Role: known.Role, TokenID: known.ID}, nil
}

// usedEvery is how exactly the last use of a token is noted.
const usedEvery = time.Hour

// use notes that a token was used. A store that can't be written is no reason to refuse it.
func (t *Tokens) use(id string) {
	t.change(func(all []Token) ([]Token, error) { //nolint:errcheck // the next use is noted
		for i := range all {
			if all[i].ID == id {
				all[i].Used = t.now().UTC().Truncate(time.Second)
			}
		}
		return all, nil
	})
}

// good is the token of a text, and whether this use of it is to be noted.
func (t *Tokens) good(token string) (known Token, unused bool, err error) {
	hash := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return known, false, err
	}
	known, ok := t.byHash[hash]
	bad := func(format string, args ...any) error {
		return belay.Errorf(belay.CodeUnauthorized, format, args...).WithHint("belay token create --role ROLE makes a token")
	}
	switch {
	case !ok:
		return known, false, bad("the token is not known here")
	case !known.Revoked.IsZero():
		return known, false, bad("the token was revoked")
	case !known.Until.IsZero() && !t.now().Before(known.Until):
		return known, false, bad("the token has expired")
	}
	now := t.now()
	if now.Sub(known.Used) < usedEvery || now.Sub(t.noted[known.ID]) < usedEvery {
		return known, false, nil
	}
	if t.noted == nil {
		t.noted = map[string]time.Time{}
	}
	t.noted[known.ID] = now
	return known, true, nil
}

// refresh reads the file if it isn't the one that was read last.
func (t *Tokens) refresh() error {
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.stamp, t.all, t.byHash = stamp{}, nil, nil
		return nil
	}
	if err != nil {
		return t.broken(err)
	}
	now := stampOf(info)
	if now == t.stamp {
		return nil
	}
	all, err := t.read()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, Token.isCode)
	byHash := make(map[[32]byte]Token, len(all))
	for _, x := range all {
		raw, err := hex.DecodeString(x.Hash)
		if err != nil || len(raw) != 32 {
			return t.broken(fmt.Errorf("token %s has no hash", x.ID))
		}
		byHash[[32]byte(raw)] = x
	}
	t.stamp, t.all, t.byHash = now, all, byHash
	return nil
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{at: info.ModTime(), size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.node = sys.Ino
	}
	return s
}

// read takes the file as it is; one that others may read is refused.
func (t *Tokens) read() ([]Token, error) {
	b, err := files.ReadPrivate(t.path, maxFile, belay.CodeBadConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Token
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, t.broken(err)
	}
	return all, nil
}

func (t *Tokens) broken(err error) error {
	return belay.Errorf(belay.CodeBadConfig, "the tokens can't be read").At(t.path).WithHint("repair the file or move it away; without it every request is refused").Wrap(err)
}

// change lets one process at a time change the file.
func (t *Tokens) change(how func([]Token) ([]Token, error)) error {
	unlock, err := files.Lock(context.Background(), t.path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	all, err := t.read()
	if err != nil {
		return err
	}
	if all, err = how(all); err != nil {
		return err
	}
	err = files.WriteWhole(files.System{}, t.path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(all)
	})
	if err != nil {
		return belay.Errorf(belay.CodeNotWritten, "the tokens can't be written").At(t.path).Wrap(err)
	}
	return nil
}

func rolesText() string {
	names := make([]string, len(Roles))
	for i, r := range Roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}
