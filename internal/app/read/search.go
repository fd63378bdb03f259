package read

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/view"
)

// Found are sessions that have all words of a question, the one that changed
// last first.
type Found struct {
	Fresh
	Hits []Hit `json:"hits"`
	More bool  `json:"more"` // there are others
}

// Hit is a session that was found. Without an excerpt the words are not among
// its newest facts.
type Hit struct {
	Session belay.SessionID `json:"sessionId"`
	Title   string          `json:"title,omitempty"`
	Updated time.Time       `json:"updated"`
	Thread  belay.ThreadID  `json:"threadId,omitempty"`
	Event   belay.EventID   `json:"eventId,omitempty"` // of the excerpt
	Excerpt string          `json:"excerpt,omitempty"`
}

// Bounds of a search.
const (
	maxQuestion = 500 // bytes
	mostHits    = 50
)

// found are the sessions that have all words of a question.
func (v *Reads) found(ctx context.Context, words string) (map[belay.SessionID]bool, error) {
	if err := v.Words.Catchup(ctx); err != nil {
		return nil, err
	}
	return view.Search(ctx, v.Store, words)
}

func (v *Reads) search(ctx context.Context, q Query) (*Found, error) {
	words := q.Values.Get("q")
	if len(words) > maxQuestion {
		return nil, input.At("query q", belay.Errorf(belay.CodeTooLarge, "the question has %d bytes; at most %d are taken", len(words), maxQuestion).WithHint("ask for fewer words"))
	}
	limit, err := number(q, "limit", 20, 1, mostHits)
	if err != nil {
		return nil, err
	}
	f, err := v.folded(ctx, q)
	if err != nil {
		return nil, err
	}
	found, err := v.found(ctx, words)
	if err != nil {
		return nil, input.At("query q", err)
	}
	all, err := view.Newest(ctx, v.Store, found, int(limit)+1)
	if err != nil {
		return nil, err
	}
	out := &Found{Fresh: f, Hits: []Hit{}, More: len(all) > int(limit)}
	for i := range all[:min(len(all), int(limit))] {
		h := Hit{Session: all[i].ID, Title: all[i].Title, Updated: all[i].Updated}
		at, err := view.Excerpt(ctx, v.Store, h.Session, words)
		if err != nil {
			return nil, err
		}
		if at != nil {
			h.Thread, h.Event, h.Excerpt = at.Thread, at.Event, at.Excerpt
		}
		out.Hits = append(out.Hits, h)
	}
	return out, nil
}
