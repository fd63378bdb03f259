package effect

import (
	"context"
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// inlineEcho is how much a fact holds itself of what a vendor wants back.
const inlineEcho = 1 << 10

// keepEcho keeps what the vendor wants back with an answer. What has a secret
// in it isn't kept: changed it would be refused, and unchanged it may not be
// recorded. The vendor then gets the answer without it.
func (e *Performers) keepEcho(ctx context.Context, list []event.ModelEcho) (belay.Content, error) {
	if len(list) == 0 {
		return belay.Content{}, nil
	}
	b, err := json.Marshal(list)
	if err != nil || e.c.Secrets.Holds(b) {
		return belay.Content{}, nil //nolint:nilerr // a vendor's data that is no JSON is left out as well
	}
	if len(b) <= inlineEcho && event.TextLen(string(b)) <= 2*inlineEcho {
		return belay.Content{Text: string(b)}, nil
	}
	ref, err := e.c.Store.Put(ctx, b, "application/json")
	return belay.Content{Ref: &ref}, err
}
