package config

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/core/budget"
	"github.com/belay-run/belay/internal/core/quota"
)

// Quotas are those that the machine's file and the user's describe. All of them
// count. A workspace's file can't describe any.
func (w *Workspace) Quotas() ([]belay.Quota, error) {
	if w.filesErr != nil {
		return nil, w.filesErr
	}
	var all []belay.Quota
	for _, f := range w.files {
		if f.inside {
			continue
		}
		for _, m := range f.Quotas {
			q, err := quotaOf(m)
			if err != nil {
				return nil, err
			}
			all = append(all, q)
		}
	}
	return all, nil
}

// quotaOf is a quota as a file describes it: its limit is of one kind.
func quotaOf(m manifest.Quota) (belay.Quota, error) {
	bad := func(try, format string, args ...any) (belay.Quota, error) {
		return belay.Quota{}, belay.Errorf(belay.CodeBadConfig, format, args...).At(m.Where).WithHint("%s", try)
	}
	l, err := budget.Parse(m.Limit)
	if err != nil {
		return bad("limit: 50usd", "limit: %v", err)
	}
	q := belay.Quota{Of: m.Of, Per: m.Per, Zone: m.Zone, Warn: m.Action == "warn"}
	for _, k := range belay.BudgetKinds() {
		if n := *l.Of(k); n > 0 && q.Kind == "" {
			q.Kind, q.Limit = k, n
		} else if n > 0 || l.Raise {
			return bad("limit: 50usd; another quota for another kind", "the limit %q isn't one of a single kind", m.Limit)
		}
	}
	switch {
	case m.Kind != "" && m.Kind != string(q.Kind):
		return bad("leave kind out", "the kind is %q, and the limit %s is of %s", m.Kind, m.Limit, q.Kind)
	case q.Of != "tenant" && q.Of != "user":
		return bad("of: tenant, or of: user", "%q has no quotas", q.Of)
	case m.Action != "" && m.Action != "block" && m.Action != "warn":
		return bad("action: block, or action: warn", "%q is no action", m.Action)
	}
	if _, err := quota.WindowOf(q, time.Unix(0, 0)); err != nil {
		return bad("per: day, and zone: Europe/Berlin", "%v", err)
	}
	return q, nil
}
