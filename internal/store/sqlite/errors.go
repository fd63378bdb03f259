package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

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
	if errors.Is(err, sql.ErrConnDone) || db.closed.Load() && layout.ResultCode(err) == 0 {
		return errClosed()
	}
	switch layout.ResultCode(err) {
	case layout.CodeFull:
		return layout.NoSpace(db.path, err)
	case layout.CodeReadOnly:
		return belay.Errorf(belay.CodeStoreReadOnly, "the store can't be written").At(db.path).
			WithHint("make the file and its directory writable").Wrap(err)
	case layout.CodeBusy, layout.CodeLocked:
		return belay.Errorf(belay.CodeStoreBusy, "another process keeps the store locked").At(db.path).
			WithHint("repeat the command; nothing was written").Wrap(err)
	case layout.CodeCorrupt, layout.CodeNotADB:
		return store.Damaged(db.path, "the database file is damaged").Wrap(err)
	case layout.CodeIO:
		return belay.Errorf(belay.CodeStoreFailed, "the disk failed: %s", doing).At(db.path).
			WithHint("look at the disk, then start again: the store is checked before it is written again").Wrap(err)
	case layout.CodeCantOpen:
		return belay.Errorf(belay.CodeStoreFailed, "the database file can't be opened").At(db.path).
			WithHint("check the path and its permissions").Wrap(err)
	}
	return belay.Errorf(belay.CodeStoreFailed, "%s", doing).At(db.path).Wrap(err)
}
