package secret

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// keyFile is the file of a store's folder that holds its key. It is in no export
// and no backup.
const keyFile = "arguments.key"

const keyBytes = 32

// StoreKey is the key by which a store's digests of secrets are made, from the
// store's folder. The first call makes it; it is readable by its user alone. A
// key that was lost is made anew: digests before it can't be compared with those
// after it.
func StoreKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, keyFile)
	for range 3 {
		raw, err := os.ReadFile(path)
		if err == nil {
			key, err := hex.DecodeString(strings.TrimSpace(string(raw)))
			if err != nil || len(key) != keyBytes {
				return nil, fmt.Errorf("%s holds no key of %d bytes in hexadecimal; without the file a new key is made", path, keyBytes)
			}
			return key, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := makeKey(dir, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s keeps disappearing", path)
}

// makeKey writes a new key beside its place and gives it its name, unless
// another process was first: a half-written key is never seen.
func makeKey(dir, path string) error {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	f, err := os.CreateTemp(dir, keyFile+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}
