package storage

import (
	"context"
	"errors"
	"io"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
)

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.DefineDocument(app.Read{Name: "getContent", Path: "/v1/contents/{id}", Tag: "reads", Doc: "Read a content that a fact names.", ID: "Its digest."}, readContent),
	}
}

func readContent(ctx context.Context, c *app.Call, _ app.Fresh, q app.Query) (*app.Document, error) {
	d := belay.Digest(q.ID)
	if !d.Valid() {
		return nil, input.At("path id", belay.Errorf(belay.CodeBadID, "%q is no digest", input.Shown(q.ID)).WithHint("sha256: and 64 hexadecimal digits, as facts have it"))
	}
	content, err := c.Store.Get(ctx, d)
	if errors.Is(err, store.ErrNotFound) {
		err = belay.Errorf(belay.CodeNotFound, "no content has this digest, or it isn't kept any more").At(q.ID)
	}
	if err != nil {
		return nil, input.At("path id", err)
	}
	return &app.Document{Media: "application/octet-stream", Write: func(_ context.Context, w io.Writer) error {
		_, err := w.Write(content)
		return err
	}}, nil
}
