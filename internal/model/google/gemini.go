// Package google speaks Google's protocol for its Gemini models.
package google

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// Gemini speaks the Gemini API: streamGenerateContent with server-sent events.
// Source: https://ai.google.dev/api/generate-content, November 2026.
//
// Calls have no ids there: results go back in the order of the calls. What the
// vendor signs, parts of text and calls, goes back with its signature.
type Gemini struct{ wire.Service }

var (
	_ model.Provider = (*Gemini)(nil)
	_ model.Able     = (*Gemini)(nil)
)

// Stream sends one request and yields the answer as it comes.
func (p *Gemini) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return wire.Stream(ctx, r, p.post, func(out *wire.Out) wire.Decoder[piece] { return newDecoder(out, dialect(r.Model)) })
}

func (p *Gemini) post(ctx context.Context, r model.Request) (*wire.Answer, error) {
	body, err := p.body(ctx, r)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	if p.Endpoint.Key != "" {
		h.Set("X-Goog-Api-Key", p.Endpoint.Key) // the protocol would take it in the address too, where logs have it
	}
	return p.Endpoint.Post(ctx, path(r.Model), h, body)
}

// path is where a model answers.
func path(name string) string {
	kind := "models/"
	if rest, ok := strings.CutPrefix(name, "tunedModels/"); ok {
		kind, name = "tunedModels/", rest
	}
	return "/" + kind + url.PathEscape(strings.TrimPrefix(name, "models/")) + ":streamGenerateContent?alt=sse"
}

// dialect names the protocol and the model: a signature belongs to the model
// that signed.
func dialect(name string) string { return "google/" + strings.TrimPrefix(name, "models/") }
