package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strconv"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// conn is a connection that writes, with the statements that were prepared on it.
type conn struct {
	db    *place
	pool  *sql.DB
	raw   *sql.Conn
	stmts statements
	args  []any  // room for the parameters of a statement
	buf   []byte // room for what a checksum or a hash covers
}

func newConn(p *place) (*conn, error) {
	pool, err := sql.Open("sqlite", dsn(p.path, "rwc", url.Values{
		"_pragma": {"busy_timeout(" + strconv.FormatInt(p.o.BusyTimeout.Milliseconds(), 10) + ")"},
	}))
	if err != nil {
		return nil, p.wrap(err, "open")
	}
	pool.SetMaxOpenConns(1)
	raw, err := pool.Conn(p.life)
	if err != nil {
		return nil, errors.Join(p.wrap(err, "open"), pool.Close())
	}
	return &conn{db: p, pool: pool, raw: raw}, nil
}

// each runs a query that isn't worth preparing and hands over its rows.
func (c *conn) each(query string, args []any, row func(*sql.Rows) error) error {
	rows, err := c.raw.QueryContext(c.db.life, query, args...)
	return layout.EachRow(rows, err, row)
}

// thoroughly runs a statement that leaves nothing of what it deletes in the file.
func (c *conn) thoroughly(query string, args ...any) error {
	if err := c.exec(secureDeleteOn); err != nil {
		return err
	}
	err := c.exec(query, args...)
	return cmp.Or(err, c.exec(secureDeleteFast))
}

// count runs a statement and tells how many rows it changed.
func (c *conn) count(query string, args ...any) (int64, error) {
	result, err := c.execute(query, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// wal runs a checkpoint and returns the frames in the log and those of them
// that are in the database.
func (c *conn) wal(kind string) (frames, folded int64, err error) {
	var busy int64
	err = c.raw.QueryRowContext(c.db.life, "PRAGMA wal_checkpoint("+kind+")").Scan(&busy, &frames, &folded)
	return frames, folded, err
}

func (c *conn) disconnect() error {
	c.stmts.close()
	err := errors.Join(c.raw.Close(), c.pool.Close())
	return c.db.wrap(err, "close")
}

// exec runs a prepared statement.
func (c *conn) exec(query string, args ...any) error {
	_, err := c.execute(query, args)
	return err
}

// insert runs a prepared INSERT and returns the new row's number.
func (c *conn) insert(query string, args ...any) (int64, error) {
	result, err := c.execute(query, args)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (c *conn) execute(query string, args []any) (sql.Result, error) {
	s, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(c.db.life, args...)
}

// row reads the one row of a prepared query.
func (c *conn) row(query string, args []any, into ...any) (found bool, err error) {
	s, err := c.prepared(query)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(c.db.life, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// checked reads the row of a name. One that isn't what was written is a refusal.
func (c *conn) checked(query, name string, scan func(*sql.Row) error) (found bool, err error) {
	s, err := c.prepared(query)
	if err != nil {
		return false, err
	}
	if err = scan(s.QueryRowContext(c.db.life, name)); err == sql.ErrNoRows {
		return false, nil
	}
	return err == nil, damageRefused(err)
}

// damageRefused makes a refusal of an error about damage: it concerns one caller.
func damageRefused(err error) error {
	if belay.CodeOf(err) == belay.CodeStoreDamaged {
		return refusal{err}
	}
	return err
}

// prepared is a statement that is prepared when it is first used.
func (c *conn) prepared(query string) (*sql.Stmt, error) {
	c.db.stats.statements.Add(1)
	return c.stmts.get(c.db.life, c.raw, query)
}

// statements are prepared on first use, on a connection or on several.
type statements struct {
	mu   sync.Mutex
	made map[string]*sql.Stmt
}

func (s *statements) get(ctx context.Context, on interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, known := s.made[query]
	if known {
		return st, nil
	}
	st, err := on.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if s.made == nil {
		s.made = map[string]*sql.Stmt{}
	}
	s.made[query] = st
	return st, nil
}

func (s *statements) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.made {
		_ = st.Close()
	}
	s.made = nil
}

// script runs statements that aren't worth preparing.
func (c *conn) script(statements ...string) error {
	for _, s := range statements {
		if _, err := c.raw.ExecContext(c.db.life, s); err != nil {
			return c.db.wrap(err, "prepare the store")
		}
	}
	return nil
}

func (c *conn) number(query string) (n int, err error) {
	err = c.raw.QueryRowContext(c.db.life, query).Scan(&n)
	return n, c.db.wrap(err, "read the store's version")
}
