package effect

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/quota"
)

// How long a session waits before it asks the quotas again, because other sessions
// may give something back: longer each time.
const (
	quotaPause     = 100 * time.Millisecond
	longQuotaPause = 5 * time.Second
)

// askQuota asks the quotas for a slice. What can't be given is refused: until others
// return theirs, if the session may wait for them, else for the window.
func (v *performer) askQuota(ctx context.Context, eff core.AskQuota) []core.Fact {
	now := v.e.c.Now()
	fact := event.LimitChanged{Op: event.LimitRefused, Scope: "quota", GrantID: eff.ID, Until: now.Add(min(quotaPause<<min(eff.Try, 10), longQuotaPause))}
	c := belay.AskQuota{Session: v.session, User: eff.User, ID: eff.ID, Least: eff.Least, Most: eff.Most, Windows: windowsOf(eff.Quotas, now)}
	if ctx.Err() != nil {
		return nil
	}
	whole, end := context.WithTimeout(context.WithoutCancel(ctx), longQuotaPause) // what is lent is known, or the next process asks again
	defer end()
	s, facts, err := v.decideQuota(whole, c)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil
	case err != nil: // the store is busy, say: it is asked again, because the fact names no quota
	default:
		if g := s.Grants.Find(v.session, eff.ID); g != nil {
			fact.Op, fact.Amount, fact.Until = event.LimitGranted, g.Amount, time.Time{}
		}
		for _, f := range facts {
			if p, ok := f.Data.(event.LimitChanged); ok {
				fact.Low = p.Low
			}
		}
	}
	if err == nil && fact.Op == event.LimitRefused {
		if short, wait := s.Short(c); short != nil {
			fact.Windows = []belay.QuotaWindow{*short}
			if !wait {
				fact.Until = time.Time{}
			}
		}
	}
	return []core.Fact{{IDs: eff.IDs, Data: fact}}
}

// returnQuota says what became of a session's slices.
func (v *performer) returnQuota(ctx context.Context, eff core.ReturnQuota) []core.Fact {
	c := belay.ReturnQuota{Session: v.session, User: eff.User, Return: eff.Return, Windows: windowsOf(eff.Quotas, v.e.c.Now())}
	for try := 1; ; try++ {
		_, _, err := v.decideQuota(ctx, c)
		if err == nil {
			r := eff.Return
			return []core.Fact{{IDs: eff.IDs, Data: event.LimitChanged{Op: event.LimitReturned, Scope: "quota", Closed: r.Closed, Spent: r.Spent, Amount: r.Back}}}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(quotaPause<<min(try, 10), longQuotaPause)):
		}
	}
}

// windowsOf are those that quotas count in now.
func windowsOf(all []belay.Quota, now time.Time) (windows []belay.QuotaWindow) {
	for _, q := range all {
		windows = append(windows, quota.Current(q, now))
	}
	return windows
}

func (v *performer) decideQuota(ctx context.Context, c belay.Command) (*quota.State, []event.Envelope, error) {
	d, facts, err := v.e.decide(ctx, belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: "stream:" + string(v.stream), Time: v.e.c.Now(), Session: belay.SystemSession, Stream: quota.Stream, Command: c})
	if err != nil {
		return nil, nil, err
	}
	return d.(*quota.Decider).State(), facts, nil
}
