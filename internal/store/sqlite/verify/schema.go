package verify

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// fixed are the bytes of a database's header that never change in a store.
var fixed = []struct {
	at   int
	want string
	what string
}{
	{0, "SQLite format 3\x00", "the file's kind"},
	{16, "\x10\x00", "the page size"},
	{18, "\x02\x02", "the journal's kind"},
	{20, "\x00", "the reserved space"},
	{21, "\x40\x20\x20", "the payload fractions"},
	{44, "\x00\x00\x00\x04", "the schema's format"},
	{56, "\x00\x00\x00\x01", "the text encoding"},
	{64, "\x00\x00\x00\x01", "the vacuum mode"},
	{68, "\x00\x00\x00\x00", "the application"},
	{72, strings.Repeat("\x00", 20), "what is reserved"},
}

// header looks at the first page itself and returns the store's version.
func (v *verification) header() (version int, err error) {
	name := filepath.Base(v.snap.Path)
	page := v.snap.Page
	if len(page) < 100 {
		v.problem(name+": header, byte 0", "the database has %d bytes, less than its header", len(page))
		return 0, nil
	}
	for _, f := range fixed {
		if got := string(page[f.at : f.at+len(f.want)]); got != f.want {
			v.problem(fmt.Sprintf("%s: header, byte %d", name, f.at), "%s is %x, not %x", f.what, got, f.want)
		}
	}
	be := binary.BigEndian
	if pages := int64(be.Uint32(page[28:])); v.snap.Log.Frames == 0 && pages*4096 != v.snap.Size {
		v.problem(name+": header, byte 28", "the database has %d bytes, its header says %d pages", v.snap.Size, pages)
	}
	version = int(int32(be.Uint32(page[60:])))
	switch {
	case version > len(layout.Migrations) && len(v.Problems) == 0:
		return version, belay.Errorf(belay.CodeStoreNewer, "the store has version %d, this program knows up to %d", version, len(layout.Migrations)).
			At(layout.Path(v.dir)).WithHint("use the program that last wrote it, or a newer one")
	case version < 1 || version > len(layout.Migrations):
		v.problem(name+": header, byte 60", "the store's version is %d", version)
	}
	return version, nil
}

// structure is SQLite's own check.
func (v *verification) structure(ctx context.Context) error {
	return v.each(ctx, "PRAGMA integrity_check(20)", nil, func(rows *sql.Rows) error {
		var lines string
		if err := rows.Scan(&lines); err != nil || lines == "ok" {
			return err
		}
		for line := range strings.SplitSeq(lines, "\n") {
			if line != "" && !strings.HasPrefix(line, "*** in database") {
				v.problem("belay.db", "the structure is damaged: %s", strings.ToValidUTF8(line, "?"))
			}
		}
		return nil
	})
}

// schemaRow is what SQLite keeps of a table or an index.
type schemaRow struct{ kind, name, table, text string }

func schemaOf(ctx context.Context, q interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}) (schema []schemaRow, err error) {
	rows, err := q.QueryContext(ctx, "SELECT type, name, tbl_name, coalesce(sql,'') FROM sqlite_schema ORDER BY type, name, tbl_name LIMIT 1000")
	err = layout.EachRow(rows, err, func(rows *sql.Rows) error {
		var r schemaRow
		err := rows.Scan(&r.kind, &r.name, &r.table, &r.text)
		schema = append(schema, r)
		return err
	})
	return schema, err
}

// expected is the schema that the migrations up to a version make.
func expected(ctx context.Context, version int) (schema []schemaRow, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, m := range layout.Migrations[:version] {
		if _, err := db.ExecContext(ctx, string(m)); err != nil {
			return nil, err
		}
	}
	return schemaOf(ctx, db)
}

func (v *verification) schema(ctx context.Context, version int) error {
	if version < 1 || version > len(layout.Migrations) {
		return nil // told already
	}
	got, err := schemaOf(ctx, v.conn)
	if err != nil {
		return err
	}
	want, err := expected(ctx, version)
	if err != nil {
		return err
	}
	missing := map[schemaRow]bool{}
	for _, r := range want {
		missing[r] = true
	}
	for _, r := range got {
		if !missing[r] {
			v.problem("belay.db: schema", "%s %q isn't one of a store of version %d", r.kind, r.name, version)
		}
		delete(missing, r)
	}
	for r := range missing {
		v.problem("belay.db: schema", "%s %q is not as it was made, or not there", r.kind, r.name)
	}
	return nil
}

// columns wants in every column what its declaration says. SQLite keeps a
// value's kind with the value, and a changed kind makes equal bytes differ.
func (v *verification) columns(ctx context.Context) error {
	tests := map[string]string{}
	err := v.each(ctx, "SELECT m.name, c.name, lower(c.type), c.\"notnull\" FROM sqlite_schema m, pragma_table_info(m.name) c "+
		"WHERE m.type='table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'", nil, func(rows *sql.Rows) error {
		var table, column, kind string
		var never bool
		if err := rows.Scan(&table, &column, &kind, &never); err != nil {
			return err
		}
		test := "typeof(" + strconv.Quote(column) + ")<>'" + layout.Quote(kind) + "'"
		if !never && column == "refs" {
			test = "(" + test + " AND refs IS NOT NULL)"
		}
		if before := tests[table]; before != "" {
			test = before + " OR " + test
		}
		tests[table] = test
		return nil
	})
	if err != nil {
		return err
	}
	for table, test := range tests {
		err := v.each(ctx, "SELECT count(*) FROM "+strconv.Quote(table)+" WHERE "+test, nil, func(rows *sql.Rows) error {
			var n int
			if err := rows.Scan(&n); err != nil || n == 0 {
				return err
			}
			v.problem(table, "%d rows hold a value of another kind than their column", n)
			return nil
		})
		if err != nil {
			v.problem(table, "it can't be read: %v", err)
		}
	}
	return nil
}
