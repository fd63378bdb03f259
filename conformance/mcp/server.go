package main

import (
	"fmt"
	"net"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/mcpserve"
)

// serve serves the fixtures of the suite as Belay serves MCP clients, and prints the
// address.
func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fixtures := newFixtures()
	h := mcpserve.Handler(func(*http.Request) *sdk.Server { return fixtures })
	judge := auth.Person("user:judge")
	fmt.Printf("http://%s/mcp\n", l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer judge") // the suite has no token
		h.ServeHTTP(w, r.WithContext(auth.With(r.Context(), judge)))
	}))
}
