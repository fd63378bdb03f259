package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// dumped is what a dump has of the database, in this order. Numbers that only
// link rows are replaced by what they stand for, so two stores with the same
// content give the same dump.
var dumped = []struct{ name, query string }{
	{"meta", "SELECT key, value FROM meta ORDER BY key"},
	{"stream", "SELECT name, session, seq, time, hash, runnable, wake FROM streams ORDER BY name"},
	{"event", "SELECT s.name, e.seq, e.pos, e.time, t.name, e.version, e.requires, e.ids, e.refs, e.data, e.hash " +
		"FROM events e LEFT JOIN streams s ON s.id=e.stream LEFT JOIN types t ON t.id=e.type ORDER BY e.pos"},
	{"inbox", "SELECT s.name, i.id, i.principal, i.time, i.name, i.body FROM inbox i LEFT JOIN streams s ON s.id=i.stream ORDER BY i.num"},
	{"command", "SELECT id, sum FROM commands ORDER BY id"},
	{"key", "SELECT s.name, k.key, k.pos FROM keys k LEFT JOIN streams s ON s.id=k.stream ORDER BY s.name, k.key"},
	{"epoch", "SELECT key, epoch FROM owners ORDER BY key"},
	{"tombstone", "SELECT session, pos, time, principal, facts, epoch, restored, heads, pending FROM tombstones ORDER BY pos"},
	{"blob", "SELECT digest, data FROM blobs ORDER BY digest"},
}

// Dump writes what a store holds, one line for each stream, fact, waiting or
// known command, key, epoch and content. Equal dumps mean equal stores; caches
// and views aren't in it. Like Verify it works on a copy.
func Dump(ctx context.Context, dir string, w io.Writer) (err error) {
	snap, err := layout.NewCopy(ctx, layout.Path(dir), "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Remove()) }()
	return layout.Guard(func() (err error) {
		pool, conn, err := snap.Open(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, conn.Close(), pool.Close()) }()
		for _, d := range dumped {
			if err := dumpRows(ctx, conn, w, d.name, d.query); err != nil {
				return fmt.Errorf("dump %s: %w", d.name, err)
			}
		}
		return dumpFiles(ctx, layout.BlobDir(dir), w)
	})
}

func dumpRows(ctx context.Context, conn *sql.Conn, w io.Writer, name, query string) error {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]sql.RawBytes, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var line []byte
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		line = append(line[:0], name...)
		for i, v := range values {
			line = append(line, ' ')
			switch {
			case v == nil:
				line = append(line, "null"...)
			case name == "blob" && columns[i] == "data":
				sum := sha256.Sum256(v)
				line = fmt.Appendf(line, "%d %x", len(v), sum)
			default:
				line = strconv.AppendQuote(line, string(v))
			}
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return rows.Err()
}

func dumpFiles(ctx context.Context, root string, w io.Writer) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), layout.Unfinished) {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		size, err := io.Copy(sum, files.WithContext(ctx, f))
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		_, err = fmt.Fprintf(w, "file %q %d %s\n", name, size, hex.EncodeToString(sum.Sum(nil)))
		return err
	})
}
