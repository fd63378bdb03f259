package storage

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store/retention"
)

// ListOutputs is what list_outputs takes.
type ListOutputs struct {
	Session belay.SessionID `json:"sessionId,omitempty" jsonschema:"only of this session"`
	All     bool            `json:"all,omitempty" jsonschema:"those that have expired too"`
	app.AsOf
}

// OutputsShown are outputs.
type OutputsShown struct {
	app.Fresh
	Outputs []retention.Output `json:"outputs"`
}

func listOutputs(ctx context.Context, r *app.Call, f app.Fresh, in *ListOutputs) (*OutputsShown, error) {
	if err := input.ID("sessionId", string(in.Session)); err != nil {
		return nil, err
	}
	if in.Session != "" {
		if _, err := r.Known(ctx, in.Session); err != nil {
			return nil, err
		}
	}
	all, err := Outputs(ctx, r, in)
	return &OutputsShown{f, all}, err
}

// Outputs returns what programs and tools printed that is kept beside the log.
func Outputs(ctx context.Context, r *app.Call, in *ListOutputs) ([]retention.Output, error) {
	all, err := retention.List(ctx, r.Store, in.Session)
	out := []retention.Output{}
	for _, o := range all {
		if in.All || !o.Gone() {
			out = append(out, o)
		}
	}
	return out, err
}
