package view

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/store"
)

// used is the kind of the sums of what was used in an hour by all sessions. A sum's name is
// the hour and where the number stands in an Hour, as a JSON list of names.
const used = "used"

// maxAdded bounds what a row adds to a sum, so that sums stay numbers.
const maxAdded = 1 << 46

// entry is the row as it is saved: what it counts is added to that of its hour. When a rule
// was met last is no sum, so rules are left out.
func (h *Hour) entry(key string) (r store.ViewRow, err error) {
	counted := *h
	counted.Rules = nil
	data, err := json.Marshal(counted)
	if err != nil {
		return r, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return r, err
	}
	hour, _, _ := strings.Cut(strings.TrimPrefix(key, hourKey), "/")
	return r, leaves(tree, nil, func(path []string, n int64) error {
		name, err := json.Marshal(path)
		r.Adds = append(r.Adds, store.Sum{Kind: used, Name: hour + string(name), N: max(min(n, maxAdded), -maxAdded)})
		return err
	})
}

// leaves hands on the numbers of a tree that aren't 0, and what is true as 1.
func leaves(tree map[string]any, path []string, each func(path []string, n int64) error) error {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		var n int64
		var err error
		at := append(slices.Clip(path), name)
		switch v := tree[name].(type) {
		case map[string]any:
			err = leaves(v, at, each)
		case json.Number:
			n, err = v.Int64()
		case bool:
			n = map[bool]int64{true: 1}[v]
		}
		if err == nil && n != 0 {
			err = each(at, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HoursOfAll hands on what all sessions together used from a time on until another, but for
// rules, the oldest hour first.
func HoursOfAll(ctx context.Context, st store.Store, from, to time.Time, take func(*Hour)) error {
	all, err := st.ViewSums(ctx, figuresName, store.ViewSums{Kind: used, From: from.UTC().Format(hourForm)})
	if err != nil {
		return err
	}
	for len(all) > 0 {
		hour := all[0].Name[:len(hourForm)]
		start, err := time.Parse(hourForm, hour)
		if err != nil {
			return err
		}
		if !start.Before(to) {
			return nil
		}
		tree := map[string]any{}
		for len(all) > 0 && strings.HasPrefix(all[0].Name, hour) {
			var path []string
			if err := json.Unmarshal([]byte(all[0].Name[len(hourForm):]), &path); err != nil {
				return err
			}
			plant(tree, path, all[0].N)
			all = all[1:]
		}
		h := Hour{Start: start}
		data, err := json.Marshal(tree)
		if err == nil {
			err = json.Unmarshal(data, &h)
		}
		if err != nil {
			return err
		}
		take(&h)
	}
	return nil
}

// plant puts a number where it stands in a tree.
func plant(tree map[string]any, path []string, n int64) {
	for _, name := range path[:len(path)-1] {
		below, ok := tree[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			tree[name] = below
		}
		tree = below
	}
	if name := path[len(path)-1]; name == "reported" { // the one that is true or not
		tree[name] = n > 0
	} else {
		tree[name] = n
	}
}
