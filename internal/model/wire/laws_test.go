package wire_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/openai"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// A provider behind the gateway keeps the laws of providers.
func TestTheLawsOfProviders(t *testing.T) {
	modeltest.Run(t, modeltest.Config{
		Stage: func(t *testing.T, s modeltest.Scene) (model.Provider, model.Request) {
			return far(t, modelserver.Scene{Scene: s})
		},
		Fails: []string{"transient", "rate_limited", "overflow", "bad_request", "auth", "refused"},
	})
}

// far is a provider behind the gateway, at a server that says a scene.
func far(t *testing.T, s modelserver.Scene) (model.Provider, model.Request) {
	srv := httptest.NewServer(modelserver.New(func(modelserver.Asked) modelserver.Scene { return s }))
	t.Cleanup(srv.Close)
	base, err := netdial.ParseBase(srv.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	p := &openai.Chat{Service: wire.Service{Endpoint: wire.Endpoint{Name: "far", Base: base, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}, Prefixes: wire.NewPrefixes(lru.New(1 << 20))}}
	return wire.NewGateway(time.Now).Wrap(wire.Account{Provider: "far"}, p, wire.Limits{Concurrent: 8}),
		model.Request{Model: "m", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}, Attempt: 1}
}

// Each way to refuse a request for its length is an overflow, over HTTP, and the
// context that it names is known from then on.
func TestRefusalsForLengthAreOverflows(t *testing.T) {
	for _, r := range modelserver.Refusals() {
		p, req := far(t, r.Scene())
		for _, err := range p.Stream(t.Context(), req) {
			if f := model.AsError(err); f.Class != "overflow" || f.Limit != r.Limit {
				t.Errorf("%s: %s with the limit %d, want %d: %v", r.Name, f.Class, f.Limit, r.Limit, err)
			}
		}
	}
}
