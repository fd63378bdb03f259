package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// Responses speaks the Responses protocol, without state at the far end:
// nothing is stored there, and each request has the whole conversation.
// Reasoning comes encrypted and goes back as it came.
// Source: https://platform.openai.com/docs/api-reference/responses, November 2026.
type Responses struct {
	wire.Service

	silent atomic.Bool // the account may not read summaries of reasoning
}

var (
	_ model.Provider = (*Responses)(nil)
	_ model.Able     = (*Responses)(nil)
)

// Abilities are the model's as far as they are known.
func (p *Responses) Abilities(name string) model.Abilities {
	can := p.Service.Abilities(name)
	can.Search = true
	return can
}

// Stream sends one request and yields the answer as it comes.
func (p *Responses) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return wire.Stream(ctx, r, p.post, func(out *wire.Out) wire.Decoder[happening] { return newDecoder(out, dialect(r.Model)) })
}

// post sends the request. An account that isn't verified is refused when it asks
// for summaries of reasoning; it is then asked without, now and from then on.
func (p *Responses) post(ctx context.Context, r model.Request) (*wire.Answer, error) {
	h := authorized(p.Endpoint.Key)
	silent := p.silent.Load()
	body, err := p.body(ctx, r, !silent)
	if err != nil {
		return nil, err
	}
	a, err := p.Endpoint.Post(ctx, "/responses", h, body)
	if f, ok := errors.AsType[*model.Error](err); !ok || silent || !reasons(r.Model) || !refusesSummary(f) {
		return a, err
	}
	p.silent.Store(true)
	if body, err = p.body(ctx, r, false); err != nil {
		return nil, err
	}
	return p.Endpoint.Post(ctx, "/responses", h, body)
}

func refusesSummary(f *model.Error) bool {
	return f.Class == "bad_request" && (strings.Contains(f.Message, "reasoning summar") || strings.Contains(f.Message, "reasoning.summary"))
}

func authorized(key string) http.Header {
	h := http.Header{}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}

// dialect names what a model of the vendor understands besides plain messages:
// the reasoning that it encrypted itself.
func dialect(name string) string { return "openai/" + name }

// reasons reports whether a model may reason. Those known not to refuse every
// word about reasoning in a request.
func reasons(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, p := range [...]string{"gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat", "gpt-5.1-chat", "gpt-5.2-chat", "computer-use"} {
		if strings.HasPrefix(name, p) {
			return false
		}
	}
	return true
}
