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
	quotaTries     = 12 // which wait longer than those before
)

// askQuota asks the quotas for a slice. What can't be given is refused: for the window, or
// because others returned nothing for a while, longer each time.
func (v *performer) askQuota(ctx context.Context, eff core.AskQuota) []core.Fact {
	late := v.e.c.Now().Add(longQuotaPause * time.Duration(min(eff.Try, quotaTries)))
	for try := 1; ctx.Err() == nil; try++ {
		fact, known := v.askOnce(ctx, eff)
		again := fact.Op == event.LimitRefused && !fact.Until.IsZero() && (eff.Needed || !known)
		if again && fact.Until.Before(late) && pause(ctx, try) {
			continue
		}
		if !known && ctx.Err() != nil {
			break
		}
		return []core.Fact{{IDs: eff.IDs, Data: fact}}
	}
	return nil
}

// askOnce is what the quotas say of a slice. known is false when they couldn't be asked:
// the store is busy, say. The fact names no quota then.
func (v *performer) askOnce(ctx context.Context, eff core.AskQuota) (fact event.LimitChanged, known bool) {
	now := v.e.c.Now()
	fact = event.LimitChanged{Op: event.LimitRefused, Scope: "quota", GrantID: eff.ID, Until: now}
	c := belay.AskQuota{Session: v.session, User: eff.User, ID: eff.ID, Least: eff.Least, Most: eff.Most, Drawn: eff.Drawn, Windows: windowsOf(eff.Quotas, now)}
	whole, end := context.WithTimeout(context.WithoutCancel(ctx), longQuotaPause) // what is lent is known, or the next process asks again
	defer end()
	s, facts, err := v.decideQuota(whole, c)
	if err != nil {
		return fact, false
	}
	for _, f := range facts {
		if p, ok := f.Data.(event.LimitChanged); ok {
			fact.Low = p.Low
		}
	}
	if g := s.Grants.Find(v.session, eff.ID); g != nil {
		fact.Op, fact.Amount, fact.Until = event.LimitGranted, g.Amount, time.Time{}
	} else if short, wait := s.Short(c); short != nil {
		fact.Windows = []belay.QuotaWindow{*short}
		if !wait {
			fact.Until = time.Time{}
		}
	}
	return fact, true
}

// pause waits before the quotas are asked again; false: ctx ended.
func pause(ctx context.Context, try int) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(min(quotaPause<<min(try, 10), longQuotaPause)):
		return true
	}
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
		if !pause(ctx, try) {
			return nil
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
