package quota

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/coretest"
)

func instant(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestWindowsFollowTheClocksOfTheirZone: where clocks change, days are longer or
// shorter, and a day whose midnight they skip begins later.
// Guarantee: E71.
func TestWindowsFollowTheClocksOfTheirZone(t *testing.T) {
	for _, c := range []struct{ per, zone, at, from, until string }{
		{"hour", "", "2026-11-23T10:59:59Z", "2026-11-23T10:00:00Z", "2026-11-23T11:00:00Z"},
		{"hour", "Asia/Kolkata", "2026-11-23T10:59:59Z", "2026-11-23T10:30:00Z", "2026-11-23T11:30:00Z"},
		{"day", "", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z"},
		{"day", "Europe/Berlin", "2026-03-29T10:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},     // 23 hours
		{"day", "Europe/Berlin", "2026-10-25T10:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},     // 25 hours
		{"day", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}, // no midnight
		{"day", "America/Havana", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},    // midnight twice
		{"week", "Europe/Berlin", "2026-03-29T10:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"week", "", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{"month", "America/New_York", "2026-12-31T23:00:00Z", "2026-12-01T05:00:00Z", "2027-01-01T05:00:00Z"},
	} {
		w, err := WindowOf(belay.Quota{Per: c.per, Zone: c.zone}, instant(t, c.at))
		if err != nil || !w.From.Equal(instant(t, c.from)) || !w.Until.Equal(instant(t, c.until)) {
			t.Errorf("%s %s at %s: %s to %s (%v), want %s to %s", c.per, c.zone, c.at, w.From.Format(time.RFC3339), w.Until.Format(time.RFC3339), err, c.from, c.until)
		}
	}
	for _, q := range []belay.Quota{{Per: "year"}, {Per: "day", Zone: "Mars/Olympus"}} {
		if _, err := WindowOf(q, time.Now()); belay.CodeOf(err) != belay.CodeUsage {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// TestWindowsFollowOneAnother: also where clocks change a time is in one window, and
// the next one begins where it ends.
// Guarantee: E71.
func TestWindowsFollowOneAnother(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "Asia/Gaza"}
	rapid.Check(t, func(t *rapid.T) {
		q := belay.Quota{Zone: rapid.SampledFrom(zones).Draw(t, "zone"), Per: rapid.SampledFrom([]string{"hour", "day", "week", "month"}).Draw(t, "per")}
		at := time.Unix(rapid.Int64Range(1.5e9, 1.9e9).Draw(t, "at"), 0)
		if zone, err := time.LoadLocation(q.Zone); err != nil {
			t.Fatal(err)
		} else if _, change := at.In(zone).ZoneBounds(); !change.IsZero() && rapid.Bool().Draw(t, "at a change") {
			at = change.Add(time.Duration(rapid.IntRange(-120, 120).Draw(t, "minutes")) * time.Minute)
		}
		w := Current(q, at)
		if at.Before(w.From) || !at.Before(w.Until) {
			t.Fatalf("%s isn't in %s to %s", at, w.From, w.Until)
		}
		for _, edge := range []struct {
			at   time.Time
			same bool
		}{{w.From, true}, {w.Until.Add(-1), true}, {w.Until, false}, {w.From.Add(-1), false}} {
			x := Current(q, edge.at)
			if edge.same != (x == w) || edge.at.Equal(w.Until) && !x.From.Equal(w.Until) || edge.at.Before(w.From) && !x.Until.Equal(w.From) {
				t.Fatalf("%s %s: at %s %s to %s, beside %s to %s", q.Per, q.Zone, edge.at, x.From, x.Until, w.From, w.Until)
			}
		}
	})
}

// TestQuotasLendSlices: no more than they have left, to each user what is the user's,
// and in a new window again.
// Guarantee: E71.
func TestQuotasLendSlices(t *testing.T) {
	d := New(Stream)
	var log []event.Envelope
	do := func(c belay.Command) []core.Fact {
		t.Helper()
		facts, _, err := d.Handle(belay.Order{Command: c}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range facts {
			log = append(log, event.Envelope{Stream: Stream, Seq: d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
			d.Apply(log[len(log)-1])
		}
		return facts
	}
	windows := func(at string) []belay.QuotaWindow {
		day, err := WindowOf(belay.Quota{Of: "tenant", Kind: belay.BudgetCost, Limit: 100, Per: "day"}, instant(t, at))
		if err != nil {
			t.Fatal(err)
		}
		own := day
		own.Of, own.Limit = "user", 60
		return []belay.QuotaWindow{day, own}
	}
	today, tomorrow := windows("2026-11-23T10:00:00Z"), windows("2026-11-24T10:00:00Z")
	ask := func(session belay.SessionID, user, id string, least, most int64, w []belay.QuotaWindow) int64 {
		t.Helper()
		do(belay.AskQuota{Session: session, User: user, ID: id, Least: belay.Amounts{MicroUSD: least}, Most: belay.Amounts{MicroUSD: most, Tokens: 5}, Windows: w})
		if g := d.s.Grants.Find(session, id); g != nil {
			return g.Amount.MicroUSD
		}
		return 0
	}
	for _, c := range []struct {
		session     belay.SessionID
		user, id    string
		least, most int64
		want        int64
	}{
		{"s1", "ann", "a", 10, 50, 50},
		{"s1", "ann", "a", 10, 50, 50}, // told twice
		{"s2", "ann", "b", 20, 50, 0},  // ann's 60
		{"s2", "ann", "c", 10, 50, 10},
		{"s3", "bob", "d", 10, 90, 40}, // the tenant's 100
		{"s4", "eve", "e", 1, 90, 0},
	} {
		if got := ask(c.session, c.user, c.id, c.least, c.most, today); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if facts := do(belay.AskQuota{Session: "s4", User: "eve", ID: "z", Least: belay.Amounts{MicroUSD: -9}, Most: belay.Amounts{MicroUSD: -9}, Windows: today}); len(facts) != 1 || facts[0].Data.(event.LimitChanged).Amount != (belay.Amounts{}) {
		t.Errorf("less than nothing is lent: %+v", facts)
	}
	do(belay.ReturnQuota{Session: "s4", User: "eve", Return: belay.BudgetReturn{Closed: []string{"z"}}, Windows: today})
	do(belay.ReturnQuota{Session: "s1", User: "ann", Return: belay.BudgetReturn{Closed: []string{"a"}, Spent: belay.Amounts{MicroUSD: 45}, Back: belay.Amounts{MicroUSD: 5}}, Windows: today})
	if facts := do(belay.ReturnQuota{Session: "s1", User: "ann", Return: belay.BudgetReturn{Closed: []string{"a"}, Spent: belay.Amounts{MicroUSD: 45}}, Windows: today}); facts != nil {
		t.Errorf("returned twice: %v", facts)
	}
	do(belay.ReturnQuota{Session: "s3", User: "bob", Return: belay.BudgetReturn{Closed: []string{"d"}, Spent: belay.Amounts{MicroUSD: 38}}, Windows: today})
	if got := ask("s4", "eve", "f", 1, 90, today); got != 7 {
		t.Errorf("7 are left, and %d are lent", got)
	}
	low := func() (low []belay.QuotaLeft) {
		return log[len(log)-1].Data.(event.LimitChanged).Low
	}
	if l := low(); len(l) != 1 || l[0].Of != "tenant" || l[0].Left != 17 {
		t.Errorf("low: %+v", l)
	}
	do(belay.ReturnQuota{Session: "s4", User: "eve", Return: belay.BudgetReturn{Closed: []string{"f"}, Back: belay.Amounts{MicroUSD: 7}}, Windows: today})
	if got := ask("s4", "eve", "g", 1, 90, today); got != 7 || low() != nil {
		t.Errorf("%d, said to be low again: %+v", got, low())
	}
	if got := ask("s5", "eve", "h", 1, 60, tomorrow); got != 53 { // 7 of her 60 are lent still
		t.Errorf("in a new window: %d", got)
	}
	// A deleted session returns nothing: what it has is spent, in the window that there is.
	if got := ask("s6", "bob", "i", 1, 20, tomorrow); got != 20 {
		t.Errorf("%d are lent", got)
	}
	for _, c := range d.s.Close("s6", instant(t, "2026-11-24T23:59:59Z")) {
		do(c)
		if facts := do(c); facts != nil {
			t.Errorf("closed twice: %v", facts)
		}
	}
	if l := d.s.Left("bob", tomorrow); l[0].Left != 10 || l[1].Left != 40 || len(d.s.Close("s6", time.Time{})) > 0 {
		t.Errorf("after a deletion there are %+v left", l)
	}
	coretest.FromEveryCut(t, func() core.Decider { return New(Stream) }, log)
}

// borrower is a session that asks for one slice after the other, keeps them until it
// has all, or is told that there are no more, and then returns them.
type borrower struct {
	id      belay.SessionID
	user    string
	needs   []belay.Amounts // still to be asked for
	has     belay.Amounts
	slices  []string
	waiting bool
	over    bool
}

// TestSessionsDontWaitForEachOther: however the steps of sessions follow one another,
// all come to an end, and never more than a quota is lent and spent.
// Guarantee: E71.
func TestSessionsDontWaitForEachOther(t *testing.T) {
	windows := []belay.QuotaWindow{
		{Quota: belay.Quota{Of: "tenant", Kind: belay.BudgetCost, Limit: 100, Per: "day"}},
		{Quota: belay.Quota{Of: "user", Kind: belay.BudgetTokens, Limit: 60, Per: "day"}},
	}
	users := []string{"ann", "bob"}
	rapid.Check(t, func(t *rapid.T) {
		d := New(Stream)
		do := func(c belay.Command) {
			facts, _, err := d.Handle(belay.Order{Command: c}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range facts {
				d.Apply(event.Envelope{Stream: Stream, Seq: d.s.Seq + 1, IDs: f.IDs, Data: f.Data})
			}
		}
		amount := func(of string) belay.Amounts {
			return belay.Amounts{MicroUSD: rapid.Int64Range(0, 70).Draw(t, of+" cost"), Tokens: rapid.Int64Range(0, 50).Draw(t, of+" tokens")}
		}
		all := make([]*borrower, rapid.IntRange(2, 6).Draw(t, "sessions"))
		for i := range all {
			all[i] = &borrower{id: belay.SessionID(rune('a' + i)), user: users[i%2], needs: make([]belay.Amounts, rapid.IntRange(1, 4).Draw(t, "needs"))}
			for n := range all[i].needs {
				all[i].needs[n] = amount("need")
			}
		}
		step := func(b *borrower) {
			if b.waiting = false; len(b.needs) > 0 {
				ask := belay.AskQuota{Session: b.id, User: b.user, ID: string(rune('0' + len(b.needs))), Least: b.needs[0], Most: b.needs[0].Add(amount("more")), Windows: windows}
				do(ask)
				if g := d.s.Grants.Find(b.id, ask.ID); g != nil {
					b.has, b.slices, b.needs = b.has.Add(g.Amount), append(b.slices, ask.ID), b.needs[1:]
					return
				}
				short, wait := d.s.Short(ask)
				if short == nil {
					t.Fatalf("%+v is refused for no quota", ask)
				}
				if b.waiting = wait; !wait {
					b.needs = nil
				}
				return
			}
			part := rapid.Int64Range(0, 3).Draw(t, "spent")
			spent := belay.Amounts{MicroUSD: b.has.MicroUSD * part / 3, Tokens: b.has.Tokens * part / 3}
			do(belay.ReturnQuota{Session: b.id, User: b.user, Return: belay.BudgetReturn{Closed: b.slices, Spent: spent, Back: b.has.Sub(spent)}, Windows: windows})
			b.over = true
		}
		for {
			var open, awake []*borrower
			for _, b := range all {
				if !b.over {
					open = append(open, b)
				}
				if !b.over && !b.waiting {
					awake = append(awake, b)
				}
			}
			if len(open) == 0 {
				break
			}
			if len(awake) > 0 {
				step(rapid.SampledFrom(awake).Draw(t, "next"))
				if rapid.Bool().Draw(t, "all ask again") {
					for _, b := range all {
						b.waiting = false
					}
				}
			} else { // as at the end of their pauses
				for _, b := range open {
					step(b)
				}
				if !slices.ContainsFunc(open, func(b *borrower) bool { return !b.waiting }) {
					t.Fatalf("%d sessions wait for each other: %+v", len(open), d.s.Grants)
				}
			}
			for _, user := range users {
				for _, l := range d.s.Left(user, windows) {
					if l.Left < 0 {
						t.Fatalf("%d more than %+v is lent and spent", -l.Left, l.Quota)
					}
				}
			}
		}
		if len(d.s.Grants) > 0 {
			t.Errorf("at the end there are %+v", d.s.Grants)
		}
	})
}

// TestQuotasForgetUsersWhoseWindowsAreOver: a tenant of many users has a state of those who
// work, and of the window that runs.
// Guarantee: O12.
func TestQuotasForgetUsersWhoseWindowsAreOver(t *testing.T) {
	d := New(Stream)
	at := instant(t, "2026-11-23T10:00:00Z")
	for day := range 30 {
		for n := range 20 {
			user := "user:" + string(rune('a'+n)) + string(rune('a'+day%26))
			w := Current(belay.Quota{Of: "user", Kind: "tokens", Per: "day", Limit: 1000}, at)
			session := belay.SessionID("sess_" + user)
			apply := func(c belay.Command) {
				facts, _, err := d.Handle(belay.Order{Stream: Stream, Command: c}, at)
				if err != nil || len(facts) != 1 {
					t.Fatalf("%+v: %v %v", c, facts, err)
				}
				d.Apply(event.Envelope{Stream: Stream, Seq: d.s.Seq + 1, Time: at, IDs: facts[0].IDs, Data: facts[0].Data})
			}
			id := user + at.String()
			apply(belay.AskQuota{Session: session, ID: id, User: user, Least: belay.Amounts{Tokens: 1}, Most: belay.Amounts{Tokens: 100}, Windows: []belay.QuotaWindow{w}})
			apply(belay.ReturnQuota{Session: session, User: user, Windows: []belay.QuotaWindow{w}, Return: belay.BudgetReturn{Closed: []string{id}, Spent: belay.Amounts{Tokens: 60}}})
			if left := d.s.Left(user, []belay.QuotaWindow{w}); left[0].Left != 940 {
				t.Fatalf("day %d: %s has %+v", day, user, left)
			}
		}
		if len(d.s.Windows) != 20 {
			t.Fatalf("day %d: %d windows are known", day, len(d.s.Windows))
		}
		at = at.Add(24 * time.Hour)
	}
}
