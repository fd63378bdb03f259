package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// Bounds of what a call may have a model answer, in bytes.
const (
	maxAsked = 1 << 20
	maxSaid  = 256 << 10
)

// wanted keeps what a call wants a model to answer, without secrets.
func (v *performer) wanted(ctx context.Context, in *event.InputAsked, r *tool.ModelRequest) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(b) > maxAsked {
		return tool.Failf(tool.Internal, "BAD_QUESTION", "the request for a model has %d bytes; %d are the most", len(b), maxAsked)
	}
	b = v.e.c.Secrets.JSON(b)
	ref, err := v.e.c.Store.Put(ctx, b, "application/json")
	in.Request, in.Tokens, in.MaxTokens = &ref, tokens.Text(string(b)), r.MaxTokens
	return err
}

// sample has a model answer what a call's server asked, and keeps the answer.
func (v *performer) sample(ctx context.Context, c policy.Checker, eff core.CheckCall) (ref *belay.Ref, used belay.Usage, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, checkerSilence, fmt.Errorf("it gave no answer within %s", checkerSilence))
	defer cancel()
	b, err := v.e.c.Store.Get(ctx, eff.Request.Digest)
	if err != nil {
		return nil, used, err
	}
	var asked tool.ModelRequest
	if err := json.Unmarshal(b, &asked); err != nil {
		return nil, used, err
	}
	prov, err := v.e.provider(ctx, eff.Dir, belay.Settings{Provider: c.Provider, Model: c.Model, BaseURL: eff.BaseURL})
	if err != nil {
		return nil, used, err
	}
	req := model.Request{Model: c.Model, System: asked.System, Attempt: 1, Key: string(eff.IDs.Call) + "/" + c.ID, MaxOutput: int(eff.MaxOutput), Messages: asked.Messages, Content: v.e.c.Store.Get}
	said := tool.ModelAnswer{Model: c.Model}
	var text strings.Builder
	for chunk, err := range bounded(prov.Stream(ctx, req)) {
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, used, err
		}
		text.WriteString(chunk.Text)
		if chunk.Usage != nil {
			used = reported(*chunk.Usage)
		}
		if said.Stop = chunk.Stop; said.Stop != "" {
			break
		}
		if text.Len() > maxSaid {
			return nil, used, fmt.Errorf("its answer has more than %d bytes", maxSaid)
		}
	}
	if ctx.Err() != nil {
		return nil, used, context.Cause(ctx)
	}
	if said.Text = v.e.c.Secrets.String(text.String()); said.Text == "" {
		return nil, used, errors.New("it said nothing")
	}
	if b, err = json.Marshal(said); err != nil {
		return nil, used, err
	}
	kept, err := v.e.c.Store.Put(context.WithoutCancel(ctx), b, "application/json")
	return &kept, used, err
}
