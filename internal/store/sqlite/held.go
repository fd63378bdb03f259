package sqlite

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// HoldContents keeps others from removing content, until release. One may hold it
// at a time: it is belay.CodeBusy for the second.
func (own *owners) HoldContents(ctx context.Context) (release func() error, err error) {
	if own.writer == nil {
		return func() error { return nil }, nil
	}
	epoch, err := own.Claim(ctx, layout.BackupKey, store.ThisProcess(), 24*time.Hour)
	if _, owned := errors.AsType[*store.OwnedError](err); owned {
		err = belay.Errorf(belay.CodeBusy, "another backup is being made").At(own.path).WithHint("repeat the command when it has ended").Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return own.Release(context.WithoutCancel(ctx), layout.BackupKey, epoch) }, nil
}

// mayDropContent refuses while a backup keeps content from being removed.
func (w *writer) mayDropContent() error {
	var r ownerRow
	if _, err := w.row("SELECT "+ownerColumns+" FROM owners WHERE key=?", []any{string(layout.BackupKey)}, r.into()...); err != nil || !r.live(w.now(), w.db.o.Alive) {
		return err
	}
	return refusal{belay.Errorf(belay.CodeBusy, "a backup is being made").At(w.db.path).WithHint("repeat the command when it has ended")}
}

// CopyDatabase writes the database, as one read transaction sees it, to a new file.
func (db *DB) CopyDatabase(ctx context.Context, path string) error {
	err := layout.Execute(ctx, db.dsn(url.Values{"_pragma": {"busy_timeout(5000)"}}), "VACUUM INTO '"+layout.Quote(path)+"'")
	return db.wrap(err, "copy the store")
}
