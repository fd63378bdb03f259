package cli

import (
	"context"
	"time"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/server"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/retention"
)

// retainer lets the outputs go that the setting of a store doesn't keep, while a
// server holds it.
type retainer struct {
	db    store.Admin
	now   func() time.Time
	most  int  // outputs of a round
	clean bool // nothing that expired is left to be removed
}

// retainedAtOnce is how many outputs expire in a round at most.
const retainedAtOnce = 1000

// round does what belay store compact does for outputs: facts first, then bytes.
// It is another owner than the engine, so a session that the engine drives, or
// takes meanwhile, keeps its outputs until a later round.
func (r *retainer) round(ctx context.Context) (did server.Retained, err error) {
	p, err := policyOf(ctx, r.db)
	if err != nil || p.Outputs == (retention.Outputs{}) {
		return did, err
	}
	all, err := retention.List(ctx, retention.Gently(r.db), "")
	if err != nil {
		return did, err
	}
	wish := retention.ExpiryTarget{Reason: event.ExpiredByRetention, Owner: store.ThisProcess(), Most: r.most}
	chosen, err := retention.Expire(ctx, r.db, wish, p.Outputs.Due(r.now(), all))
	for _, c := range chosen {
		switch c.Kept {
		case "":
			did.Outputs++
		case retention.Later:
			did.More = true
		}
	}
	if err != nil || r.clean && did.Outputs == 0 {
		return did, err
	}
	dropped, err := r.db.DropExpired(ctx)
	did.Contents, did.Bytes = dropped.Contents, dropped.Bytes
	r.clean = err == nil && dropped.Left == 0
	return did, err
}
