package sqlite

import (
	"context"

	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

type settingOp struct{ key, value string }

// Set keeps a decision about the store; an empty value takes it back.
func (db *DB) Set(ctx context.Context, key, value string) error {
	return db.do(ctx, &settingOp{layout.SettingPrefix + key, value})
}

func (s *settingOp) apply(w *writer) error {
	if s.value == "" {
		return w.exec("DELETE FROM meta WHERE key=?", s.key)
	}
	return w.exec("INSERT INTO meta (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value=excluded.value", s.key, layout.SealSetting(s.key, s.value))
}

// Setting is a decision that was kept, or empty.
func (db *DB) Setting(ctx context.Context, key string) (value string, err error) {
	key = layout.SettingPrefix + key
	found, err := db.one(ctx, "SELECT value FROM meta WHERE key=?", []any{key}, &value)
	if err != nil || !found {
		return "", err
	}
	value, whole := layout.OpenSetting(key, value)
	if !whole {
		return "", store.Damaged("meta/"+key, "a setting isn't what was written")
	}
	return value, nil
}
