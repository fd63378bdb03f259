package sessions

import (
	"context"

	"github.com/belay-run/belay/internal/app"
)

// QuotasShown are the quotas that work has met.
type QuotasShown struct {
	app.Fresh
	Quotas []app.QuotaShown `json:"quotas"`
}

func quotas(ctx context.Context, c *app.Call, f app.Fresh, _ app.Query) (*QuotasShown, error) {
	return Quotas(ctx, c.Runtime, f)
}

// Quotas are the quotas that work has met, in the windows that they count in now.
func Quotas(ctx context.Context, r *app.Runtime, f app.Fresh) (*QuotasShown, error) {
	all, err := r.Quotas(ctx)
	if err != nil {
		return nil, err
	}
	return &QuotasShown{Fresh: f, Quotas: all}, nil
}
