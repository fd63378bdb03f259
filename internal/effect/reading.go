package effect

import (
	"context"
	"errors"

	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// reading is what a thread's conversation has in part only, as its tools read it.
type reading struct{ v *performer }

func (r reading) Answer(ctx context.Context, source string, q tool.Question) (string, error) {
	text, x, err := r.v.e.convs.Source(ctx, r.v.stream, source)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", tool.Failf(tool.NotFound, "NOT_FOUND", "there is no source %q, or it is kept no more", source).
			WithHint("sources are named where a text was cut")
	case err != nil:
		return "", err
	}
	said, err := x.Answer(text, window.Question(q))
	if err != nil {
		return "", tool.Failf(tool.NotFound, "NOT_FOUND", "%s", err)
	}
	return said, nil
}
