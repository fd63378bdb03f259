package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/retention"
)

// retainSetting is the name of the store's setting.
const retainSetting = "retain"

// RetentionPolicy returns what a store's setting keeps; the zero policy keeps all.
func RetentionPolicy(ctx context.Context, db store.Admin) (p retention.Policy, err error) {
	text, err := db.Setting(ctx, retainSetting)
	if err != nil || text == "" {
		return p, err
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, belay.Errorf(belay.CodeStoreDamaged, "the retention setting can't be read").WithHint("belay store retain --off").Wrap(err)
	}
	return p, nil
}

// Retain sets what a store keeps; the zero policy keeps all.
func Retain(ctx context.Context, db store.Admin, p retention.Policy) error {
	if p.None() {
		return db.Set(ctx, retainSetting, "")
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return db.Set(ctx, retainSetting, string(b))
}

// Retainer lets the outputs go that the setting of a store doesn't keep, while a
// server holds it.
type Retainer struct {
	DB    store.Admin
	Now   func() time.Time
	most  int  // outputs of a round, if it isn't atOnce
	clean bool // nothing that expired is left to be removed
}

// atOnce is how many outputs expire in a round at most.
const atOnce = 1000

// Round does what belay store compact does for outputs: facts first, then bytes.
// It is another owner than the engine, so a session that the engine drives, or
// takes meanwhile, keeps its outputs until a later round.
func (r *Retainer) Round(ctx context.Context) (did app.Retained, err error) {
	p, err := RetentionPolicy(ctx, r.DB)
	if err != nil || p.Outputs == (retention.Outputs{}) {
		return did, err
	}
	all, err := retention.List(ctx, retention.Gently(r.DB), "")
	if err != nil {
		return did, err
	}
	wish := retention.ExpiryTarget{Reason: event.ExpiredByRetention, Owner: store.ThisProcess(), Most: cmp.Or(r.most, atOnce)}
	chosen, err := retention.Expire(ctx, r.DB, wish, p.Outputs.Due(r.Now(), all))
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
	dropped, err := r.DB.DropExpired(ctx)
	did.Contents, did.Bytes = dropped.Contents, dropped.Bytes
	r.clean = err == nil && dropped.Left == 0
	return did, err
}
