package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Primary result codes of SQLite.
const (
	codeBusy     = 5
	codeLocked   = 6
	codeReadOnly = 8
	codeIO       = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26
)

// Extended result codes.
const (
	codeIOTruncate = codeIO | 6<<8  // the file couldn't be made shorter; nothing is lost
	codeIOShm      = codeIO | 19<<8 // the shared-memory file couldn't grow: no space
)

// resultCode is SQLite's primary result code in err, or 0.
func resultCode(err error) int {
	code := extendedCode(err)
	if code == codeIOShm {
		return codeFull
	}
	return code & 0xff
}

func extendedCode(err error) int {
	if coded, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return coded.Code()
	}
	return 0
}

// wrap turns what SQLite says into an error as a user meets it. Errors that
// have a code already, and ends of a context, pass unchanged.
func (db *DB) wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*belay.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, sql.ErrConnDone) || db.closed.Load() && resultCode(err) == 0 {
		return errClosed()
	}
	switch resultCode(err) {
	case codeFull:
		return full(db.path, err)
	case codeReadOnly:
		return belay.Errorf(belay.CodeStoreReadOnly, "the store can't be written").At(db.path).
			WithHint("make the file and its directory writable").Wrap(err)
	case codeBusy, codeLocked:
		return belay.Errorf(belay.CodeStoreBusy, "another process keeps the store locked").At(db.path).
			WithHint("repeat the command; nothing was written").Wrap(err)
	case codeCorrupt, codeNotADB:
		return store.Damaged(db.path, "the database file is damaged").Wrap(err)
	case codeIO:
		return belay.Errorf(belay.CodeStoreFailed, "the disk failed: %s", doing).At(db.path).
			WithHint("look at the disk, then start again: the store is checked before it is written again").Wrap(err)
	case codeCantOpen:
		return belay.Errorf(belay.CodeStoreFailed, "the database file can't be opened").At(db.path).
			WithHint("check the path and its permissions").Wrap(err)
	}
	return belay.Errorf(belay.CodeStoreFailed, "%s", doing).At(db.path).Wrap(err)
}

func full(where string, err error) error {
	return belay.Errorf(belay.CodeStoreFull, "there is no space left for the store").At(where).
		WithHint("free some space and repeat the command; nothing was lost").Wrap(err)
}
