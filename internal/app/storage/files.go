package storage

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/store/sqlite/backup"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
)

// What is found and done.
type (
	Report   = verify.Report
	Problem  = verify.Problem
	Manifest = backup.Manifest
	Restored = backup.Restored
)

// Inspect opens the store in a directory for writing, and returns which it is, the
// version of its schema and the end of its log.
func Inspect(ctx context.Context, dir string, now func() time.Time) (id belay.RuntimeID, schema uint32, end store.Position, err error) {
	st, err := sqlite.Open(ctx, dir, sqlite.Options{Now: now})
	if err != nil {
		return id, 0, 0, err
	}
	id = st.Runtime()
	end, err = st.End(ctx)
	err = errors.Join(err, st.Close())
	return id, sqlite.SchemaVersion(dir), end, err
}

// Verify checks the store in a directory, without changing it, and whether the heads
// that were kept elsewhere are found in it.
func Verify(ctx context.Context, dir string, kept []store.Head) (Report, error) {
	return verify.Run(ctx, dir, verify.Options{Against: kept})
}

// WriteHeads writes the ends of streams, to be kept elsewhere.
func WriteHeads(w io.Writer, heads []store.Head) error { return verify.WriteHeads(w, heads) }

// ReadHeads reads what WriteHeads wrote.
func ReadHeads(r io.Reader) ([]store.Head, error) { return verify.ReadHeads(r) }

// Backup writes what a store holds into a file, while others write on. ok is false for
// a store that isn't kept in files.
func Backup(ctx context.Context, db store.Admin, file string, replace bool, now func() time.Time) (m Manifest, ok bool, err error) {
	from, ok := db.(backup.Source)
	if !ok {
		return m, false, nil
	}
	m, err = backup.Write(ctx, from, file, backup.Options{Replace: replace, Now: now})
	return m, true, err
}

// Restore makes the store in a directory from a backup. A store that is there is
// refused, or kept aside when it is to be replaced.
func Restore(ctx context.Context, file, dir string, replace bool, now func() time.Time) (Restored, error) {
	return backup.Restore(ctx, file, dir, backup.Options{Replace: replace, Now: now})
}
