package sqlite

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/belay-run/belay/internal/store"
)

// settingPrefix begins the keys of what a person decided about the store. They
// are beside what the store says of itself, each with a checksum of its own.
const settingPrefix = "set:"

type settingOp struct{ key, value string }

// Set keeps a decision about the store; an empty value takes it back.
func (db *DB) Set(ctx context.Context, key, value string) error {
	return db.do(ctx, &settingOp{settingPrefix + key, value})
}

func (s *settingOp) apply(w *writer) (refused, broken error) {
	if s.value == "" {
		return nil, w.exec("DELETE FROM meta WHERE key=?", s.key)
	}
	return nil, w.exec("INSERT INTO meta (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value=excluded.value", s.key, sealed(s.key, s.value))
}

// Setting is a decision that was kept, or empty.
func (db *DB) Setting(ctx context.Context, key string) (value string, err error) {
	err = db.query(ctx, "SELECT value FROM meta WHERE key=?", []any{settingPrefix + key}, func(rows *sql.Rows) error {
		var raw string
		if err := rows.Scan(&raw); err != nil {
			return err
		}
		var ok bool
		if value, ok = opened(settingPrefix+key, raw); !ok {
			return store.Damaged("meta/"+settingPrefix+key, "a setting isn't what was written")
		}
		return nil
	})
	return value, err
}

// sealed puts a checksum in front of a value.
func sealed(key, value string) string {
	return strconv.FormatInt(sumOf(key+"\x00"+value), 10) + " " + value
}

func opened(key, raw string) (value string, ok bool) {
	_, value, ok = strings.Cut(raw, " ")
	return value, ok && sealed(key, value) == raw
}
