// Package anthropic speaks Anthropic's protocol: Messages.
package anthropic

import (
	"context"
	"iter"
	"net/http"

	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// Messages speaks the Messages API. Source:
// https://platform.claude.com/docs/en/api/messages, November 2026.
//
// Thinking blocks go back as they came, at their place. A tool can't be forced
// while the model thinks: a request that forces one doesn't think, and a model
// that always thinks, or refuses to be forced, is asked in words instead.
//
// Newer models bind their thinking to the conversation before it. Where that is
// another one since, because a turn was taken back, instructions changed or the
// account is another, the vendor refuses the request; it is then sent once more
// without the thinking so far, and from there on that stays away.
type Messages struct {
	wire.Service

	unbound unbound
}

var (
	_ model.Provider = (*Messages)(nil)
	_ model.Able     = (*Messages)(nil)
)

// version is the protocol's.
const version = "2023-06-01"

// Abilities are the model's as far as they are known.
func (p *Messages) Abilities(name string) model.Abilities {
	can := p.Service.Abilities(name)
	can.Search = true
	return can
}

// Stream sends one request and yields the answer as it comes.
func (p *Messages) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return wire.Stream(ctx, r, p.ask, func(out *wire.Out) wire.Decoder[event] { return newDecoder(out, dialect(r.Model)) })
}

// ask sends a request, and once more without the thinking that the vendor refuses.
func (p *Messages) ask(ctx context.Context, r model.Request) (*wire.Answer, error) {
	a, err := p.post(ctx, r)
	if refusesThinking(err) && p.unbound.add(r.Messages) {
		return p.post(ctx, r)
	}
	return a, err
}

// dialect names the protocol and the model: thinking belongs to the model that
// thought, so each model is sent something else.
func dialect(name string) string { return "anthropic/" + name }

func (p *Messages) post(ctx context.Context, r model.Request) (*wire.Answer, error) {
	body, err := p.body(ctx, r)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	h.Set("Anthropic-Version", version)
	if p.Endpoint.Key != "" {
		h.Set("X-Api-Key", p.Endpoint.Key)
	}
	return p.Endpoint.Post(ctx, "/messages", h, body)
}
