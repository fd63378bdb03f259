package layout

import "strings"

// Migration is one step forward: the statements that make a store of the
// version before it one of its own version, which is its place in the list.
type Migration string

// Migrations only grow at the end.
//
// Facts are in a rowid table with a second index: a table ordered by its key
// is several times slower with rows of this size. Positions come from
// AUTOINCREMENT, so a position is never given twice, also not after the last
// facts were deleted, and so do the numbers of streams, which processes
// remember. A stream's row is its scheduling row besides. A tombstone has a
// position of its own; pending are the numbers of streams whose rows a deletion
// hasn't removed yet. Nothing writes or reads anchors: other versions of the
// program expect the table.
//
// The second version keeps of a view's row what session it is about, in which lists it
// stands and what it adds to sums (marks, as JSON): views are folded again.
var Migrations = []Migration{`
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE types (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE streams (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL UNIQUE,
	session TEXT NOT NULL,
	seq INTEGER NOT NULL,
	time INTEGER NOT NULL,
	hash BLOB NOT NULL,
	runnable INTEGER NOT NULL,
	wake INTEGER NOT NULL,
	sum INTEGER NOT NULL
);
CREATE INDEX lanes ON streams (session) WHERE runnable <> 0 OR wake <> 0;
CREATE INDEX of_session ON streams (session);
CREATE TABLE events (
	pos INTEGER PRIMARY KEY AUTOINCREMENT,
	stream INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	time INTEGER NOT NULL,
	type INTEGER NOT NULL,
	version INTEGER NOT NULL,
	requires INTEGER NOT NULL,
	ids BLOB NOT NULL,
	refs BLOB,
	data BLOB NOT NULL,
	hash BLOB NOT NULL,
	UNIQUE (stream, seq)
);
CREATE TABLE keys (stream INTEGER NOT NULL, key BLOB NOT NULL, pos INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (stream, key)) WITHOUT ROWID;
CREATE TABLE inbox (
	num INTEGER PRIMARY KEY,
	stream INTEGER NOT NULL,
	id TEXT NOT NULL,
	principal TEXT NOT NULL,
	time INTEGER NOT NULL,
	name TEXT NOT NULL,
	body BLOB NOT NULL,
	sum BLOB NOT NULL
);
CREATE INDEX waiting ON inbox (stream, num);
CREATE TABLE commands (id TEXT PRIMARY KEY, sum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE owners (
	key TEXT PRIMARY KEY,
	owner TEXT NOT NULL,
	host TEXT NOT NULL,
	pid INTEGER NOT NULL,
	start TEXT NOT NULL,
	since INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	lease INTEGER NOT NULL,
	sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX owned ON owners (owner) WHERE owner <> '';
CREATE TABLE writers (session TEXT PRIMARY KEY, epoch INTEGER NOT NULL, path TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE blobs (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, at INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE states (stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, version TEXT NOT NULL, data BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE views (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, pos INTEGER NOT NULL);
CREATE TABLE view_rows (view INTEGER NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, UNIQUE (view, key));
CREATE TABLE anchors (
	stream INTEGER PRIMARY KEY,
	seq INTEGER NOT NULL,
	hash BLOB NOT NULL,
	time INTEGER NOT NULL,
	state BLOB NOT NULL,
	version TEXT NOT NULL,
	sum INTEGER NOT NULL
);
CREATE TABLE tombstones (
	pos INTEGER PRIMARY KEY,
	session TEXT NOT NULL UNIQUE,
	time INTEGER NOT NULL,
	principal TEXT NOT NULL,
	facts INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	restored INTEGER NOT NULL,
	heads BLOB NOT NULL,
	pending BLOB NOT NULL,
	sum INTEGER NOT NULL
);
`, `
DROP TABLE view_rows;
DELETE FROM views;
CREATE TABLE view_rows (view INTEGER NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, about TEXT NOT NULL, marks BLOB NOT NULL, UNIQUE (view, key));
CREATE INDEX view_about ON view_rows (about, view) WHERE about <> '';
CREATE TABLE view_lists (view INTEGER NOT NULL, list TEXT NOT NULL, place INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (view, list, place, key)) WITHOUT ROWID;
CREATE TABLE view_sums (view INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (view, kind, name)) WITHOUT ROWID;
CREATE INDEX view_largest ON view_sums (view, kind, n);
`}

// Quote doubles the quotes of a text that stands in SQL.
func Quote(s string) string { return strings.ReplaceAll(s, "'", "''") }
