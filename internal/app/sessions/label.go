package sessions

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
)

// LabelSession is what label_session takes. What is left out stays.
type LabelSession struct {
	Session  belay.SessionID `json:"sessionId"`
	Title    string          `json:"title,omitempty" jsonschema:"what lists call it"`
	Tag      []string        `json:"tag,omitempty" jsonschema:"tags that it gets: a word each"`
	Untag    []string        `json:"untag,omitempty" jsonschema:"tags that it loses"`
	Archived *bool           `json:"archived,omitempty" jsonschema:"lists leave it out"`
}

// Label changes the place of a session in lists.
func Label(ctx context.Context, r *app.Call, in *LabelSession) (*app.Result, error) {
	if _, err := r.Known(ctx, in.Session); err != nil {
		return nil, err
	}
	return r.Send(ctx, in.Session, in.Session.Stream(), belay.LabelSession{Title: in.Title, Tag: in.Tag, Untag: in.Untag, Archived: in.Archived})
}
