package mcpserve

import (
	"context"
	"net/http"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// idle is how long a session over HTTP lasts without a request.
const idle = 10 * time.Minute

// withoutSessions is the protocol from which each request stands for itself: the server
// sends none of its own, and answers a call with what it wants to know.
const withoutSessions = "2026-07-28"

// Handler serves clients over streamable HTTP. serverOf makes the server of one, or
// returns nil where there is none for it. What stands before it has checked host and
// origin, and has given the request's context its principal; a session belongs to the
// token that opened it.
func Handler(serverOf func(*http.Request) *sdk.Server) http.Handler {
	o := sdk.StreamableHTTPOptions{SessionTimeout: idle, MaxRequestBodyBytes: app.MaxBody, PropagateRequestCancellation: true, DisableLocalhostProtection: true}
	older := sdk.NewStreamableHTTPHandler(serverOf, &o)
	o.Stateless = true
	newer := sdk.NewStreamableHTTPHandler(serverOf, &o)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= withoutSessions {
			newer.ServeHTTP(w, r)
			return
		}
		older.ServeHTTP(w, r)
	})
	return sdkauth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		p, ok := auth.From(ctx)
		if !ok {
			return nil, sdkauth.ErrInvalidToken
		}
		return &sdkauth.TokenInfo{UserID: p.TokenID}, nil
	}, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
}
