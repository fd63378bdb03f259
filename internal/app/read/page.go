package read

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/feed"
	"github.com/belay-run/belay/internal/view/story"
)

// Bounds of a page.
const (
	pageFacts  = 200     // when the request doesn't say
	mostFacts  = 1000    // that a request may ask for
	pageBytes  = 1 << 20 // of facts
	pageLooked = 20000   // facts that are looked at for one page
	otherEnd   = "a page begins at one end: first, last, before or behind"
)

// Page is a window of a history, the oldest fact first. Older and Newer are
// cursors for the pages beside it; a stream that begins at Newer continues where
// the page ends.
type Page struct {
	Fresh
	Session   belay.SessionID  `json:"sessionId"`
	Events    []event.Envelope `json:"events,omitempty"`
	Items     []*story.Item    `json:"items,omitempty"`
	Older     string           `json:"older"`
	Newer     string           `json:"newer"`
	MoreOlder bool             `json:"moreOlder"` // there are facts before the page
	MoreNewer bool             `json:"moreNewer"`
}

// wanted is which page a request asks for.
type wanted struct {
	scope  feed.Scope
	filter feed.Filter
	about  string                                              // an id that a fact carries; empty: any
	says   func(context.Context, event.Envelope) (bool, error) // nil: any
	most   int
	window store.Window
}

// page reads the query: first=N, last=N, before=CURSOR, behind=CURSOR,
// limit=N and types. Without any of them it is the last page.
func (v *Reads) page(ctx context.Context, q Query, of scoped) (*wanted, error) {
	scope, err := of(ctx, q)
	if err != nil {
		return nil, err
	}
	w := &wanted{scope: scope, window: store.Window{Session: scope.Session, Stream: scope.Stream, Newest: true}}
	values := q.Values
	if w.filter, err = filter(values); err != nil {
		return nil, err
	}
	if w.about = values.Get("about"); w.about != "" {
		if err := belay.CheckID("the id", w.about); err != nil {
			return nil, input.At("query about", err)
		}
	}
	if words := values.Get("q"); words != "" {
		if len(words) > maxQuestion {
			return nil, input.At("query q", belay.Errorf(belay.CodeTooLarge, "the question has %d bytes; at most %d are taken", len(words), maxQuestion).WithHint("ask for fewer words"))
		}
		w.says = view.Saying(v.Store, words)
	}
	limit := "limit"
	ends := 0
	for _, name := range []string{"first", "last", "before", "behind"} {
		if !values.Has(name) {
			continue
		}
		if ends++; ends > 1 {
			return nil, input.At("query "+name, belay.Errorf(belay.CodeUsage, otherEnd).WithHint("say one of them"))
		}
		switch name {
		case "first", "last":
			limit, w.window.Newest = name, name == "last"
			continue
		}
		at, err := feed.Place(ctx, v.Store, scope, values.Get(name))
		if err != nil {
			return nil, input.At("query "+name, err)
		}
		if name == "before" {
			w.window.Before = max(at, 1)
		} else {
			w.window.After, w.window.Newest = at, false
		}
	}
	if limit != "limit" && values.Has("limit") {
		return nil, input.At("query limit", belay.Errorf(belay.CodeUsage, "%s says how many facts the page has", limit).WithHint("limit goes with before and behind"))
	}
	n, err := number(q, limit, pageFacts, 1, mostFacts)
	w.most = int(n)
	return w, err
}

// events is a page of facts as they are.
func (v *Reads) events(of scoped) func(context.Context, Query) (*Page, error) {
	return func(ctx context.Context, q Query) (*Page, error) {
		p, records, err := v.turn(ctx, q, of)
		if err != nil {
			return nil, err
		}
		p.Events = make([]event.Envelope, len(records))
		for i := range records {
			p.Events[i] = records[i].Event
		}
		return p, nil
	}
}

// story is a page of facts, as items. An item whose beginning lies before the
// page says so; the page before has it under the same id.
func (v *Reads) story(of scoped) func(context.Context, Query) (*Page, error) {
	return func(ctx context.Context, q Query) (*Page, error) {
		p, records, err := v.turn(ctx, q, of)
		if err != nil {
			return nil, err
		}
		var f story.Items
		at := make(map[belay.EventID]store.Position, len(records))
		for i := range records {
			f.Apply(records[i].Event)
			at[records[i].Event.ID()] = records[i].Position
		}
		p.Items = append([]*story.Item{}, f.List()...)
		for _, it := range p.Items {
			it.Position = int64(at[it.First])
		}
		return p, nil
	}
}

// turn reads the page that a request asks for.
func (v *Reads) turn(ctx context.Context, q Query, of scoped) (*Page, []store.Record, error) {
	f, err := v.fresh(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	w, err := v.page(ctx, q, of)
	if err != nil {
		return nil, nil, err
	}
	records, looked, more, err := w.collect(ctx, v.Store.Window(ctx, w.window))
	if err != nil {
		return nil, nil, err
	}
	p := &Page{Fresh: f, Session: w.scope.Session}
	older, newer := looked.first, looked.last
	if older.Position > newer.Position {
		older, newer = newer, older
	}
	if looked.first.Position == 0 { // there was nothing
		older.Position, newer.Position = w.window.After+1, w.window.Before-1
		if w.window.Before == 0 {
			newer.Position = max(w.window.After, f.Position)
		}
	}
	p.Older, p.Newer = v.cursor(w.scope, older), v.cursor(w.scope, newer)
	if w.window.Newest {
		slices.Reverse(records)
		p.MoreOlder, p.MoreNewer = more, w.window.Before > 0
	} else {
		p.MoreOlder, p.MoreNewer = w.window.After > 0, more
	}
	return p, records, nil
}

func (v *Reads) cursor(s feed.Scope, at feed.Cursor) string {
	return s.Text(v.Store.Runtime(), at)
}

// carries reports whether a fact has an id.
func carries(e event.Envelope, id string) bool {
	ids := e.IDs
	return slices.Contains([]string{string(e.ID()), string(ids.Thread), string(ids.Turn), string(ids.Task), string(ids.Run), string(ids.Step), string(ids.Call), string(ids.Action), string(ids.Process)}, id)
}

// span is the places of the first and the last fact that were looked at, in the
// order of reading.
type span struct{ first, last feed.Cursor }

// collect takes facts until the page is full.
func (w *wanted) collect(ctx context.Context, facts iter.Seq2[store.Record, error]) (out []store.Record, looked span, more bool, err error) {
	size, n := 0, 0
	for rec, err := range facts {
		if err != nil {
			return nil, looked, false, err
		}
		if len(out) >= w.most || size >= pageBytes || n >= pageLooked {
			return out, looked, true, nil
		}
		looked.last = feed.CursorOf(rec)
		if n++; n == 1 {
			looked.first = looked.last
		}
		if !w.filter.Takes(rec.Event.Type()) || w.about != "" && !carries(rec.Event, w.about) {
			continue
		}
		if w.says != nil {
			if is, err := w.says(ctx, rec.Event); err != nil {
				return nil, looked, false, err
			} else if !is {
				continue
			}
		}
		raw, err := json.Marshal(rec.Event)
		if err != nil {
			return nil, looked, false, err
		}
		size += len(raw)
		out = append(out, rec)
	}
	return out, looked, false, nil
}
