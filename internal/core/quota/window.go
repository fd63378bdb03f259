package quota

import (
	"time"

	"github.com/belay-run/belay"
)

// WindowOf is the window of a quota that a time is in: an hour, a day, a week from
// Monday, or a month, as the clocks of the quota's zone show them. A day may so have
// 23 or 25 hours. An unknown zone is an error.
func WindowOf(q belay.Quota, at time.Time) (belay.QuotaWindow, error) {
	zone, err := time.LoadLocation(q.Zone) // UTC if it is empty
	if err != nil {
		return belay.QuotaWindow{}, belay.Errorf(belay.CodeUsage, "there is no time zone %q", q.Zone).Wrap(err)
	}
	w := belay.QuotaWindow{Quota: q}
	t := at.In(zone)
	year, month, day := t.Date()
	switch q.Per {
	case "hour":
		w.From = t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
		w.Until = w.From.Add(time.Hour)
		// Where clocks change by half an hour, an hour ends or begins with the change.
		if from, until := t.ZoneBounds(); from.After(w.From) {
			w.From = from
		} else if !until.IsZero() && until.Before(w.Until) {
			w.Until = until
		}
	case "day":
		w.From, w.Until = begins(year, month, day, zone), begins(year, month, day+1, zone)
	case "week":
		day -= (int(t.Weekday()) + 6) % 7
		w.From, w.Until = begins(year, month, day, zone), begins(year, month, day+7, zone)
	case "month":
		w.From, w.Until = begins(year, month, 1, zone), begins(year, month+1, 1, zone)
	default:
		return belay.QuotaWindow{}, belay.Errorf(belay.CodeUsage, "%q is none of hour, day, week, month", q.Per)
	}
	w.From, w.Until = w.From.UTC(), w.Until.UTC()
	return w, nil
}

// Current is the window of a quota that a time is in, by UTC if this machine doesn't
// know the zone.
func Current(q belay.Quota, at time.Time) belay.QuotaWindow {
	w, err := WindowOf(q, at)
	if err != nil {
		utc := q
		utc.Zone = ""
		w, _ = WindowOf(utc, at) // configuration has no other error
		w.Quota = q
	}
	return w
}

// begins is when a day begins: at midnight, or where clocks jump over midnight, when
// they have. Of two midnights it is the first.
func begins(year int, month time.Month, day int, zone *time.Location) time.Time {
	noon := time.Date(year, month, day, 12, 0, 0, 0, zone)
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	for t.Day() != noon.Day() {
		t = t.Add(30 * time.Minute)
	}
	for earlier := t.Add(-30 * time.Minute); earlier.Day() == noon.Day(); earlier = t.Add(-30 * time.Minute) {
		t = earlier
	}
	return t
}
