package effect

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/model"
)

// Bounds of the pictures of one answer.
const (
	maxPictures     = 8
	maxPictureBytes = 32 << 20 // together
)

// draw takes a picture that a model made.
func (a *answer) draw(p *model.Image) {
	a.pictures = append(a.pictures, p)
	a.pictureBytes += len(p.Data)
}

// checkPictureCount is the failure of an answer with more pictures than are kept.
func (a *answer) checkPictureCount() error {
	if len(a.pictures) <= maxPictures && a.pictureBytes <= maxPictureBytes {
		return nil
	}
	return &model.Error{Class: "transient", Message: fmt.Sprintf("the answer has more than %d pictures or %d MiB of them", maxPictures, maxPictureBytes>>20)}
}

// drawn keeps an answer's pictures. Each is published like an artifact, in the
// append that completes the answer, under a name that follows from what it shows.
func (a *answer) drawn(ctx context.Context) (facts []core.Fact, list []belay.Attachment, err error) {
	for _, p := range a.pictures {
		if a.v.e.c.Secrets.Holds(p.Data) {
			return nil, nil, &model.Error{Class: "transient", Message: "a picture of the answer holds a secret of this machine"}
		}
		media, ending := pictureMedia(p.Media)
		ref, err := a.v.e.c.Store.Put(ctx, p.Data, media)
		if err != nil {
			return nil, nil, err
		}
		at := belay.Attachment{Name: "image-" + ref.Digest.Short() + ending, Ref: ref}
		ids := a.eff.IDs
		ids.Artifact = artifactID(ids.Thread, at.Name)
		facts = append(facts, core.Fact{IDs: ids, Data: event.ArtifactChanged{Kind: "artifact", Op: "published", Name: at.Name, Version: "1", After: &ref, Digest: ref.Digest, Note: "made by the model"}})
		list = append(list, at)
	}
	return facts, list, nil
}

// pictureMedia is a picture's media type, and how its name ends. What isn't
// known is bytes: a type comes from the far end and is shown to programs.
func pictureMedia(media string) (kind, ending string) {
	switch media = strings.ToLower(media); media {
	case "image/png", "image/webp", "image/gif", "image/jpeg":
		return media, "." + strings.TrimPrefix(media, "image/")
	}
	return "application/octet-stream", ".bin"
}

// artifactID is the id of what a thread publishes under a name.
func artifactID(thread belay.ThreadID, name string) string {
	return belay.DeriveID(belay.PrefixArtifact, belay.StreamID(string(thread)+"/"+name), 0, 0)
}
