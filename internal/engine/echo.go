package engine

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// inlineEcho is how much a fact holds itself of what a vendor wants back.
const inlineEcho = 1 << 10

// keepEcho keeps what the vendor wants back with an answer. What has a secret
// in it isn't kept: changed it would be refused, and unchanged it may not be
// recorded. The vendor then gets the answer without it.
func (e *Engine) keepEcho(ctx context.Context, list []event.ModelEcho) (belay.Content, error) {
	if len(list) == 0 {
		return belay.Content{}, nil
	}
	b, err := json.Marshal(list)
	if err != nil || !bytes.Equal(e.c.Secrets.Bytes(b), b) {
		return belay.Content{}, nil //nolint:nilerr // a vendor's data that is no JSON is left out as well
	}
	if len(b) <= inlineEcho && event.TextLen(string(b)) <= 2*inlineEcho {
		return belay.Content{Text: string(b)}, nil
	}
	ref, err := e.c.Store.Put(ctx, b, "application/json")
	return belay.Content{Ref: &ref}, err
}

// echoes puts what the vendor wants back into the message of its answer: what
// stands before the answer as parts, the rest with its calls.
func echoes(ctx context.Context, st store.Run, c belay.Content, m *belay.Message) error {
	text, err := whole(ctx, st, c)
	if err != nil || text == "" {
		return err
	}
	var list []event.ModelEcho
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return store.Damaged("echo", "what a vendor wants back can't be read")
	}
	var before []belay.Part
	calls := m.Calls()
	for i := range list {
		switch n := list[i].Call; {
		case n == 0:
			before = append(before, belay.Part{Echo: &list[i].Echo})
		case n <= len(calls):
			calls[n-1].Echo = &list[i].Echo
		}
	}
	m.Parts = append(before, m.Parts...)
	return nil
}
