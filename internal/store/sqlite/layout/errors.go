package layout

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Primary result codes of SQLite.
const (
	CodeBusy     = 5
	CodeLocked   = 6
	CodeReadOnly = 8
	CodeIO       = 10
	CodeCorrupt  = 11
	CodeFull     = 13
	CodeCantOpen = 14
	CodeNotADB   = 26
)

// Extended result codes.
const (
	CodeIOTruncate = CodeIO | 6<<8  // the file couldn't be made shorter; nothing is lost
	codeIOShm      = CodeIO | 19<<8 // the shared-memory file couldn't grow: no space
)

// ResultCode is SQLite's primary result code in err, or 0.
func ResultCode(err error) int {
	code := ExtendedCode(err)
	if code == codeIOShm {
		return CodeFull
	}
	return code & 0xff
}

// ExtendedCode is SQLite's extended result code in err, or 0.
func ExtendedCode(err error) int {
	if coded, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return coded.Code()
	}
	return 0
}

// noSpace is the error for a full disk.
func noSpace(where string, err error) error {
	return belay.Errorf(belay.CodeStoreFull, "there is no space left for the store").At(where).
		WithHint("free some space and repeat the command; nothing was lost").Wrap(err)
}

// DirectoryError is the error for a directory or a file of the store that can't be written.
func DirectoryError(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return belay.Errorf(belay.CodeStoreReadOnly, "the store's directory can't be written").At(dir).
			WithHint("make it writable, or choose another one with --store").Wrap(err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return noSpace(dir, err)
	}
	return belay.Errorf(belay.CodeStoreFailed, "the store's directory can't be made").At(dir).
		WithHint("choose another directory with --store").Wrap(err)
}

// FileError is DirectoryError, unless the error has a code already.
func FileError(path string, err error) error {
	if _, ok := errors.AsType[*belay.Error](err); ok {
		return err
	}
	return DirectoryError(path, err)
}

// Unreadable is the error for a file of the store, or of the copy, that the
// system doesn't let through.
func Unreadable(path string, err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return belay.Errorf(belay.CodeStoreFull, "there is no space for a copy of the store").At(path).
			WithHint("set TMPDIR to a directory with more space").Wrap(err)
	}
	return belay.Errorf(belay.CodeStoreFailed, "the store can't be read").At(path).
		WithHint("check the permissions and the disk").Wrap(err)
}

// Failed turns what SQLite says of a database into an error as a user meets it.
func Failed(path string, err error, doing string) error {
	switch ResultCode(err) {
	case CodeFull:
		return noSpace(path, err)
	case CodeReadOnly:
		return belay.Errorf(belay.CodeStoreReadOnly, "the store can't be written").At(path).
			WithHint("make the file and its directory writable").Wrap(err)
	case CodeBusy, CodeLocked:
		return belay.Errorf(belay.CodeStoreBusy, "another process keeps the store locked").At(path).
			WithHint("repeat the command; nothing was written").Wrap(err)
	case CodeCorrupt, CodeNotADB:
		return store.Damaged(path, "the database file is damaged").Wrap(err)
	case CodeIO:
		return belay.Errorf(belay.CodeStoreFailed, "the disk failed: %s", doing).At(path).
			WithHint("look at the disk, then start again: the store is checked before it is written again").Wrap(err)
	case CodeCantOpen:
		return belay.Errorf(belay.CodeStoreFailed, "the database file can't be opened").At(path).
			WithHint("check the path and its permissions").Wrap(err)
	}
	return belay.Errorf(belay.CodeStoreFailed, "%s", doing).At(path).Wrap(err)
}
