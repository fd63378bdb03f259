package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// fileSize is the size of a large content's file.
func (v *verification) fileSize(d [32]byte) (int64, bool) {
	name := hex.EncodeToString(d[:])
	info, err := os.Stat(filepath.Join(cmp.Or(v.o.Blobs, layout.BlobDir(v.dir)), name[:2], name[2:]))
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// files reads every file of content against the digest that is its name.
func (v *verification) files(ctx context.Context) {
	root := layout.BlobDir(v.dir)
	buf := make([]byte, 64<<10)
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return fs.SkipAll
		}
		place, _ := filepath.Rel(filepath.Dir(root), path)
		switch {
		case err != nil:
			v.problem(place, "it can't be read: %v", err)
			return nil
		case d.IsDir() || strings.HasPrefix(d.Name(), layout.Unfinished):
			return nil
		}
		v.file(ctx, path, place, buf)
		return nil
	})
}

func (v *verification) file(ctx context.Context, path, place string, buf []byte) {
	want := filepath.Base(filepath.Dir(path)) + filepath.Base(path)
	if raw, err := hex.DecodeString(want); err != nil || len(raw) != sha256.Size || want != strings.ToLower(want) {
		v.problem(place, "the file's name is no digest")
		return
	}
	f, err := os.Open(path)
	if err != nil {
		v.problem(place, "it can't be read: %v", err)
		return
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.CopyBuffer(sum, files.WithContext(ctx, f), buf)
	var is [32]byte
	sum.Sum(is[:0])
	v.Blobs++
	v.remember(is, size)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		v.problem(place, "it can't be read after byte %d: %v", size, err)
	case hex.EncodeToString(is[:]) != want:
		v.problem(place, "the content (%d bytes) isn't what its digest names", size)
	}
}
