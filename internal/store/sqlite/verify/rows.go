package verify

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

func (v *verification) meta(ctx context.Context) error {
	values := map[string]string{}
	err := v.each(ctx, "SELECT key, value FROM meta LIMIT 100", nil, func(rows *sql.Rows) error {
		var key, value string
		err := rows.Scan(&key, &value)
		values[key] = value
		return err
	})
	if err != nil {
		return err
	}
	for key, raw := range values {
		if !strings.HasPrefix(key, layout.SettingPrefix) {
			continue
		}
		delete(values, key)
		if _, ok := layout.OpenSetting(key, raw); !ok {
			v.problem("meta/"+strings.ToValidUTF8(key, "?"), "a setting isn't what was written")
		}
	}
	v.Runtime = belay.RuntimeID(values["runtime"])
	if got := slices.Sorted(maps.Keys(values)); !slices.Equal(got, []string{"created", "runtime", "sum"}) {
		v.problem("meta", "it holds %q", got)
		return nil
	}
	if values["sum"] != layout.MetaSum(values["runtime"], values["created"]) {
		v.problem("meta", "the store's id or date isn't what was written")
	}
	if _, err := time.Parse(time.RFC3339, values["created"]); err != nil {
		v.problem("meta/created", "this is no time: %q", values["created"])
	}
	return nil
}

func (v *verification) typeNames(ctx context.Context) error {
	v.types = map[int64]string{}
	return v.each(ctx, "SELECT id, name FROM types LIMIT 100000", nil, func(rows *sql.Rows) error {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		v.types[id] = name
		return err
	})
}

// streams checks every stream's row and then its facts.
func (v *verification) streams(ctx context.Context) error {
	after := int64(-1 << 63)
	for {
		var part []layout.Stream
		err := v.each(ctx, "SELECT "+layout.StreamColumns+" FROM streams WHERE id>? ORDER BY id LIMIT 512", []any{after}, func(rows *sql.Rows) error {
			var s layout.Stream
			err := s.Scan(rows.Scan)
			damaged := belay.CodeOf(err) == belay.CodeStoreDamaged
			if err != nil && !damaged {
				return err
			}
			if s.ID <= after {
				return errOrder
			}
			after = s.ID
			if damaged {
				v.problem("streams/"+string(s.Name), "its row isn't what was written")
			}
			part = append(part, s)
			return nil
		})
		if err != nil {
			return err
		}
		for i := range part {
			if err := v.stream(ctx, &part[i]); ctx.Err() != nil {
				return err
			} else if err != nil { // the other streams may be whole
				v.problem("streams/"+string(part[i].Name), "it can't be read: %v", err)
			}
		}
		if len(part) < 512 {
			return nil
		}
	}
}

// orphans looks for what belongs to no stream, and for positions and numbers
// that would be given twice.
func (v *verification) orphans(ctx context.Context) error {
	for _, table := range []string{"events", "keys", "inbox", "states"} {
		err := v.each(ctx, "SELECT DISTINCT stream FROM "+table+" WHERE stream NOT IN (SELECT id FROM streams) LIMIT 10000", nil, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			if err == nil && !v.gonestreams[id] {
				v.problem(table, "rows belong to stream number %d, which has no row", id)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, c := range []struct{ table, what, last string }{
		{"events", "position", "SELECT max(coalesce((SELECT max(pos) FROM events),0), coalesce((SELECT max(pos) FROM tombstones),0))"},
		{"streams", "number", "SELECT coalesce(max(id),0) FROM streams"},
	} {
		err := v.each(ctx, "SELECT ("+c.last+"), coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name=?),0)", []any{c.table}, func(rows *sql.Rows) error {
			var last, given int64
			if err := rows.Scan(&last, &given); err != nil {
				return err
			}
			if c.table == "events" {
				v.Position = store.Position(last)
			}
			if given < last {
				v.problem(c.table, "the last %s is %d, but the next would be after %d", c.what, last, given)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) inbox(ctx context.Context) error {
	named := map[string][]belay.Ref{} // by the command
	err := v.pages(ctx, "SELECT i.num, coalesce(s.name,''), coalesce(s.session,''), i.id, i.principal, i.time, i.name, i.body, i.sum, "+
		"EXISTS (SELECT 1 FROM commands c WHERE c.id=i.id), i.stream FROM inbox i LEFT JOIN streams s ON s.id=i.stream WHERE i.num>? ORDER BY i.num", portion,
		func(rows *sql.Rows) (num int64, err error) {
			var o belay.Order
			p := layout.Order{Order: &o}
			var known bool
			var stream int64
			var sum []byte
			if err := rows.Scan(&num, &o.Stream, &o.Session, &o.ID, &o.Principal, &p.Time, &p.Name, &p.Body, &sum, &known, &stream); err != nil || v.gonestreams[stream] {
				return num, err
			}
			place := "inbox/" + string(o.ID)
			if !bytes.Equal(sum, p.RowSum()) {
				v.problem(place, "a waiting command isn't what was written")
				return num, nil
			}
			if _, err := belay.DecodeCommand(p.Name, p.Body); err != nil {
				v.problem(place, "a waiting command can't be read: %v", err)
			}
			if !known {
				v.problem(place, "a waiting command's id isn't among those that came in")
			}
			named[place] = store.RefsIn(p.Body)
			return num, nil
		})
	for place, refs := range named {
		for _, ref := range refs {
			if err == nil {
				err = v.ref(ctx, place, ref)
			}
		}
	}
	return err
}

func (v *verification) commands(ctx context.Context) error {
	return v.each(ctx, "SELECT id, sum FROM commands", nil, func(rows *sql.Rows) error {
		var id string
		var sum []byte
		err := rows.Scan(&id, &sum)
		if err == nil && (len(sum) < 16 || !bytes.Equal(sum, layout.CommandSum(id, sum[:16]))) {
			v.problem("commands/"+strings.ToValidUTF8(id, "?"), "a command's id or digest isn't what was written")
		}
		return err
	})
}

func (v *verification) keys(ctx context.Context) error {
	return v.each(ctx, "SELECT stream, key, pos, sum FROM keys", nil, func(rows *sql.Rows) error {
		var stream, pos, sum int64
		var key []byte
		err := rows.Scan(&stream, &key, &pos, &sum)
		if err == nil && sum != layout.KeySum(stream, key, pos) {
			v.problem(fmt.Sprintf("keys/%d/%x", stream, key), "a batch's key isn't what was written")
		}
		return err
	})
}

// owners checks what must never go back: the epochs. Who owns what, and how
// long, changes all the time and ends by itself.
func (v *verification) owners(ctx context.Context) error {
	return v.each(ctx, "SELECT key, epoch, sum FROM owners", nil, func(rows *sql.Rows) error {
		var key string
		var epoch, sum int64
		err := rows.Scan(&key, &epoch, &sum)
		if err == nil && sum != layout.EpochSum(key, epoch) {
			v.problem("owners/"+strings.ToValidUTF8(key, "?"), "an owner's key or epoch isn't what was written")
		}
		return err
	})
}

// states are a cache: a bad one costs the time to fold the stream again.
func (v *verification) states(ctx context.Context) error {
	return v.pages(ctx, "SELECT t.stream, coalesce(s.name,''), coalesce(s.seq,0), t.seq, t.version, t.data, t.sum FROM states t LEFT JOIN streams s ON s.id=t.stream "+
		"WHERE t.stream>? ORDER BY t.stream", 64, func(rows *sql.Rows) (id int64, err error) {
		var name belay.StreamID
		var st store.State
		var last, sum int64
		if err := rows.Scan(&id, &name, &last, &st.Seq, &st.Version, &st.Data, &sum); err != nil || v.gonestreams[id] {
			return id, err
		}
		if layout.StateSum(name, &st) != sum || st.Seq > last {
			v.warn("states/"+string(name), "a cached state isn't what was written; it will be made anew")
		}
		return id, nil
	})
}
