package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
	"github.com/belay-run/belay/internal/store/storetest"
)

// TestRowsOutOfOrderEndAReadInsteadOfRepeatingIt exchanges the pages of a
// table. Each page is well-formed, but who reads on after the last row that a
// query returned would come by the same rows for ever.
func TestRowsOutOfOrderEndAReadInsteadOfRepeatingIt(t *testing.T) {
	const facts = 1500
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	w := newWork(t, db, "a")
	for i := range facts {
		if _, err := db.Put(t.Context(), fmt.Appendf(nil, "content %030d", i), ""); err != nil {
			t.Fatal(err)
		}
		if err := w.try(t.Context(), db, "x"); err != nil {
			t.Fatal(err)
		}
	}
	rows := map[string][]byte{}
	for i := range facts {
		rows[fmt.Sprintf("row %05d", i)] = []byte("x")
	}
	if err := db.SaveView(t.Context(), "v", 0, 1, storetest.DataRows(rows)); err != nil {
		t.Fatal(err)
	}
	roots := map[string]int{}
	for _, name := range []string{"events", "sqlite_autoindex_events_1", "blobs", "sqlite_autoindex_view_rows_1"} {
		n, err := db.writer.number("SELECT rootpage FROM sqlite_schema WHERE name='" + name + "'")
		if err != nil {
			t.Fatal(err)
		}
		roots[name] = n
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	children := 12
	if raceEnabled {
		children = 2
	}
	for name, root := range roots {
		for child := 1; child <= children; child++ {
			patched(t, layout.Path(dir), func(b []byte) []byte { return exchanged(t, b, root, child) }, func() {
				readAll(t, dir, facts, fmt.Sprintf("%s: child %d", name, child))
			})
		}
	}
}

// exchanged exchanges the first child of an interior page with another.
func exchanged(t *testing.T, file []byte, root, child int) []byte {
	t.Helper()
	page := file[(root-1)*4096:][:4096]
	cells := int(binary.BigEndian.Uint16(page[3:]))
	if page[0] != 5 && page[0] != 2 {
		t.Fatalf("page %d is no interior page: %d", root, page[0])
	}
	child = 1 + (child-1)%(cells-1)
	cell := func(n int) []byte { return page[binary.BigEndian.Uint16(page[12+2*n:]):][:4] }
	a, b := cell(0), cell(child)
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
	return file
}

// readAll wants every read to end, with whatever result.
func readAll(t *testing.T, dir string, facts int, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := verify.Run(ctx, dir, verify.Options{})
	if err != nil || r.OK() {
		t.Errorf("%s: Verify: %v, %v", what, err, r.Problems)
	}
	db, err := Open(ctx, dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	n := 0
	for _, err := range db.Scan(ctx, 0) {
		if n++; err != nil && belay.CodeOf(err) != belay.CodeStoreDamaged {
			t.Errorf("%s: Scan: %v", what, err)
		}
		if n > 2*facts {
			t.Errorf("%s: Scan repeats itself", what)
			break
		}
	}
	n = 0
	for range db.ViewRows(ctx, "v", "") {
		if n++; n > 2*facts {
			t.Errorf("%s: ViewRows repeats itself", what)
			break
		}
	}
	if err := db.Check(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("%s: Check: %v", what, err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
