package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"reflect"
	"slices"

	"modernc.org/sqlite"

	"github.com/belay-run/belay"
)

// line connects to the database and keeps the connection, so that its only
// user can speak to it without database/sql in between: that layer locks,
// counts and copies for users that share connections, which costs a write a
// good part of what SQLite itself does.
type line struct {
	dsn  string
	conn driver.Conn
}

func (l *line) Connect(context.Context) (driver.Conn, error) {
	c, err := l.Driver().Open(l.dsn)
	l.conn = c
	return c, err
}

func (l *line) Driver() driver.Driver { return &sqlite.Driver{} }

// exec runs a prepared statement.
func (w *writer) exec(query string, args ...any) error {
	_, err := w.execute(query, args)
	return err
}

// insert runs a prepared INSERT and returns the new row's number.
func (w *writer) insert(query string, args ...any) (int64, error) {
	result, err := w.execute(query, args)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (w *writer) execute(query string, args []any) (driver.Result, error) {
	s, named, err := w.ready(query, args)
	if err != nil {
		return nil, err
	}
	return s.(driver.StmtExecContext).ExecContext(w.db.life, named)
}

// row reads the one row of a prepared query.
func (w *writer) row(query string, args []any, into ...any) (found bool, err error) {
	s, named, err := w.ready(query, args)
	if err != nil {
		return false, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(w.db.life, named)
	if err != nil {
		return false, err
	}
	defer func() { err = cmpErr(err, rows.Close()) }()
	clear(w.values[:cap(w.values)])
	w.values = slices.Grow(w.values[:0], len(into))[:len(into)]
	if err := rows.Next(w.values); err == io.EOF {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for i, v := range w.values {
		if err := assign(into[i], v); err != nil {
			return false, err
		}
	}
	return true, nil
}

// ready prepares a statement on first use, and its arguments.
func (w *writer) ready(query string, args []any) (s driver.Stmt, named []driver.NamedValue, err error) {
	w.db.stats.statements.Add(1)
	s, ok := w.lines[query]
	if !ok {
		if s, err = w.line.(driver.ConnPrepareContext).PrepareContext(w.db.life, query); err != nil {
			return nil, nil, err
		}
		w.lines[query] = s
	}
	named = w.named[:0]
	for i, a := range args {
		switch v := a.(type) {
		case int64, string, []byte, nil:
		case int:
			a = int64(v)
		default:
			if a, err = driver.DefaultParameterConverter.ConvertValue(a); err != nil {
				return nil, nil, err
			}
		}
		named = append(named, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	w.named = named
	return s, named, nil
}

// assign puts a column where it goes. SQLite lets a column hold a value of any
// type, so one of another type is damage.
func assign(to any, v driver.Value) error {
	switch to := to.(type) {
	case sql.Scanner:
		return to.Scan(v)
	case *[]byte:
		return assignBytes(to, v)
	case *int64:
		if n, ok := v.(int64); ok {
			*to = n
			return nil
		}
	case *string:
		if text, ok := v.(string); ok {
			*to = text
			return nil
		}
	case *belay.SessionID:
		if text, ok := v.(string); ok {
			*to = belay.SessionID(text)
			return nil
		}
	}
	return assignKind(reflect.ValueOf(to).Elem(), v)
}

func assignBytes(to *[]byte, v driver.Value) error {
	switch v := v.(type) {
	case nil:
		*to = nil
	case []byte:
		*to = v
	case string:
		*to = []byte(v)
	default:
		return misplaced(v, "bytes")
	}
	return nil
}

// assignKind is assign for other types of the same kinds.
func assignKind(to reflect.Value, v driver.Value) error {
	switch v := v.(type) {
	case int64:
		if to.CanInt() && !to.OverflowInt(v) {
			to.SetInt(v)
			return nil
		}
	case string:
		if to.Kind() == reflect.String {
			to.SetString(v)
			return nil
		}
	}
	return misplaced(v, to.Type().String())
}

func misplaced(v driver.Value, to string) error {
	return fmt.Errorf("a column holds %T where %s is expected", v, to)
}
