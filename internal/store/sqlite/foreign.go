package sqlite

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"net/url"
	"os"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// refuseForeign refuses a database of another program before anything is done to
// it: to connect as usual would switch it to a write-ahead log, or fold its log. It
// is read through SQLite, but as an immutable file, so that no file appears
// beside it and no lock of this process is lost.
func (p *place) refuseForeign() (err error) {
	if info, err := os.Stat(p.path); err != nil || info.Size() == 0 {
		return nil // whoever opens it finds out
	}
	probe, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: p.path, RawQuery: "mode=ro&immutable=1"}).String())
	if err != nil {
		return p.wrap(err, "open")
	}
	defer func() { err = errors.Join(err, p.wrap(probe.Close(), "close")) }()
	var objects, own int
	err = probe.QueryRowContext(p.life, "SELECT count(*), count(*) FILTER (WHERE type='table' AND name IN ('meta','streams','events')) FROM sqlite_schema").Scan(&objects, &own)
	switch {
	case layout.ResultCode(err) == layout.CodeNotADB:
		return p.wrap(err, "open")
	case err != nil:
		return nil // opening it reports damage
	case own == 3, objects == 0 && !p.foreignLog():
		return nil
	}
	return p.foreign()
}

// foreignLog reports whether a database that is empty but for its log has tables
// there that a store hasn't: a store's come with its version.
func (p *place) foreignLog() bool {
	f, err := os.Open(p.path + "-wal")
	if err != nil {
		return false
	}
	defer f.Close()
	log, err := layout.ScanLog(f, "")
	if err != nil || len(log.First) < 108 {
		return false
	}
	version, rows := binary.BigEndian.Uint32(log.First[60:]), binary.BigEndian.Uint16(log.First[103:])
	return version == 0 && rows > 0
}

func (p *place) foreign() error {
	return belay.Errorf(belay.CodeStoreDamaged, "the database file belongs to another program").At(p.path).
		WithHint("choose another directory with --store")
}
