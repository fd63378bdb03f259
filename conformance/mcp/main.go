// Command mcp is what the protocol's own conformance suites judge: Belay's client of MCP
// servers, and the way in which Belay serves one. mcp client URL plays a scenario of the
// suite; mcp server serves fixtures, and prints its address.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "client":
		err = client(context.Background(), os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "server":
		err = serve()
	default:
		err = fmt.Errorf("usage: %s client URL | server", os.Args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
