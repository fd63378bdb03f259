package sessions

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/view"
)

// UsageShown is what was used in a time.
type UsageShown struct {
	app.Fresh
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	By    string    `json:"by"`
	Total Used      `json:"total"`
	Rows  []Used    `json:"rows"`           // by time, the oldest first; else those that cost or are most first
	More  int       `json:"more,omitempty"` // rows that aren't listed
}

// Used is what was used of one kind, or by one. What doesn't apply is left out.
type Used struct {
	Of       string        `json:"of,omitempty"`    // a day, an hour, a model, a session, a tool, an outcome
	Title    string        `json:"title,omitempty"` // of a session
	Requests int           `json:"requests,omitempty"`
	Turns    int           `json:"turns,omitempty"` // that ended
	Calls    int           `json:"calls,omitempty"` // that ended
	Failed   int           `json:"failed,omitempty"`
	MS       int64         `json:"ms,omitempty"`   // of turns driven, of calls run
	Cost     event.CostSum `json:"cost,omitzero"`  // of requests whose price isn't known it says how many there are
	Usage    belay.Usage   `json:"usage,omitzero"` // tokens
}

const mostUsed = 500 // rows of an answer

func usage(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*UsageShown, error) {
	out := &UsageShown{Fresh: f, To: c.Now().UTC(), By: cmp.Or(q.Values.Get("by"), "day"), Rows: []Used{}}
	var err error
	if err = timeOf(q, "to", &out.To); err == nil {
		out.From = out.To.Add(-24 * time.Hour)
		err = timeOf(q, "from", &out.From)
	}
	if err != nil {
		return nil, err
	}
	zone, err := strconv.Atoi(cmp.Or(q.Values.Get("zone"), "0"))
	if err != nil || zone < -24*60 || zone > 24*60 {
		return nil, input.At("query zone", belay.Errorf(belay.CodeUsage, "%q is no number of minutes of a day", input.Shown(q.Values.Get("zone"))).WithHint("zone=60"))
	}
	if out.Stale, err = c.Reads.Summed(ctx, f); err != nil {
		return nil, err
	}
	rows := map[string]*Used{}
	hours := view.HoursOfAll
	if out.By == "session" {
		hours = view.Hours
	}
	if err := hours(ctx, c.Store, out.From, out.To, func(h *view.Hour) { out.add(rows, h, time.Duration(zone)*time.Minute) }); err != nil {
		return nil, err
	}
	return out, out.list(ctx, c, rows)
}

// timeOf reads a time of the query, if it has one.
func timeOf(q app.Query, name string, to *time.Time) error {
	v := q.Values.Get(name)
	if v == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return input.At("query "+name, belay.Errorf(belay.CodeUsage, "%q is no time", input.Shown(v)).WithHint("%s=2026-11-27T00:00:00Z", name))
	}
	*to = t.UTC()
	return nil
}

// add counts an hour.
func (u *UsageShown) add(rows map[string]*Used, h *view.Hour, zone time.Duration) {
	in := func(kind, of string) []*Used {
		switch u.By {
		case "day":
			of = h.Start.Add(zone).Format(time.DateOnly)
		case "hour":
			of = h.Start.Format(time.RFC3339)
		case "session":
			of = string(h.Session)
		case kind:
		default:
			return []*Used{&u.Total}
		}
		if rows[of] == nil {
			rows[of] = &Used{Of: of}
		}
		return []*Used{&u.Total, rows[of]}
	}
	for name, s := range h.Models {
		for _, x := range in("model", name) {
			x.Requests, x.Cost, x.Usage = x.Requests+s.Requests, x.Cost.Add(s.Cost), x.Usage.Add(s.Usage)
		}
	}
	for name, t := range h.Tools {
		for _, x := range in("tool", name) {
			x.Calls, x.Failed = x.Calls+t.Ended, x.Failed+t.Failed
			if u.By == "tool" {
				x.MS += t.MS
			}
		}
	}
	for how, t := range h.Ends {
		for i, x := range in("outcome", string(how)) {
			x.Turns += t.Ended
			if u.By != "tool" {
				x.MS += t.MS
			}
			if u.By == "outcome" && i > 0 { // of the total, requests say it
				x.Cost, x.Usage = x.Cost.Add(t.Cost), x.Usage.Add(t.Usage)
			}
		}
	}
}

// list orders the rows.
func (u *UsageShown) list(ctx context.Context, c *app.Call, rows map[string]*Used) error {
	u.Total.clear()
	for _, of := range slices.Sorted(maps.Keys(rows)) {
		rows[of].clear()
		u.Rows = append(u.Rows, *rows[of])
	}
	if u.By != "day" && u.By != "hour" {
		slices.SortStableFunc(u.Rows, func(a, b Used) int {
			return cmp.Or(cmp.Compare(b.Cost.MicroUSD, a.Cost.MicroUSD), cmp.Compare(b.Usage.Total(), a.Usage.Total()), cmp.Compare(b.Calls+b.Turns, a.Calls+a.Turns))
		})
	}
	if n := len(u.Rows) - mostUsed; n > 0 {
		u.Rows, u.More = u.Rows[:mostUsed], n
	}
	if u.By != "session" {
		return nil
	}
	ids := make([]belay.SessionID, 0, len(u.Rows))
	for _, r := range u.Rows {
		ids = append(ids, belay.SessionID(r.Of))
	}
	all, err := view.SessionsByID(ctx, c.Store, ids)
	titles := map[string]string{}
	for _, s := range all {
		titles[string(s.ID)] = s.Title
	}
	for i, r := range u.Rows {
		u.Rows[i].Title = titles[r.Of]
	}
	return err
}

// clear takes away what the recording of an answer's price in a later hour left: fewer
// unknown prices than none.
func (u *Used) clear() { u.Cost.Unpriced = max(0, u.Cost.Unpriced) }
