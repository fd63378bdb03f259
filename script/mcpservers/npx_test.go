package mcpservers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/testkit/needs"
)

// issueServer is a program that npx fetches: an MCP server.
const issueServer = `#!/usr/bin/env node
require("readline").createInterface({input: process.stdin}).on("line", l => {
  const m = JSON.parse(l)
  if (m.id === undefined) return
  const r = {initialize: {protocolVersion: "2025-11-25", capabilities: {tools: {}}, serverInfo: {name: "issues", version: "1"}},
    "tools/list": {tools: [{name: "open", description: "Open an issue.", inputSchema: {type: "object"}}]}}[m.method]
  console.log(JSON.stringify(r ? {jsonrpc: "2.0", id: m.id, result: r} : {jsonrpc: "2.0", id: m.id, error: {code: -32601, message: "no"}}))
})
`

// registry has the package of that program.
func registry(t *testing.T) *httptest.Server {
	about := map[string]any{"name": "some-issue-server", "version": "1.0.0", "bin": map[string]string{"some-issue-server": "server.js"}}
	manifest, err := json.Marshal(about)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	all := tar.NewWriter(zip)
	for name, text := range map[string]string{"package/package.json": string(manifest), "package/server.js": issueServer} {
		if err := all.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := all.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux() // npx asks for more than these
	mux.HandleFunc("GET /p.tgz", func(w http.ResponseWriter, _ *http.Request) {
		w.Write(packed.Bytes()) //nolint:errcheck // npx tells
	})
	mux.HandleFunc("GET /some-issue-server", func(w http.ResponseWriter, r *http.Request) {
		is := maps.Clone(about)
		is["dist"] = map[string]string{"tarball": "http://" + r.Host + "/p.tgz"}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"name": "some-issue-server", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": is}}) //nolint:errcheck // npx tells
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

// TestNpxWantsANetwork: a server that npx starts says nothing in the default boundary; the
// trial names what it lacks and the flag that gives it, with which it answers.
func TestNpxWantsANetwork(t *testing.T) {
	_, err := exec.LookPath("npx")
	needs.Facility(t, "npx", err == nil, "npx comes with Node.js")
	m := newMachine(t)
	env := []string{"--env", "npm_config_registry=" + registry(t).URL, "--env", "npm_config_fetch_retries=0"}
	add := func(flags ...string) {
		m.output(append(append([]string{"mcp", "add", "issues"}, append(flags, env...)...), "--", "npx", "-y", "some-issue-server")...)
	}
	add()
	out, err := m.belay("mcp", "test", "issues").CombinedOutput()
	const try = "try      npx fetches its package from the network, and the boundary has none; network: full (--network full) gives it one"
	if err == nil || !strings.Contains(string(out), "network none") || !strings.Contains(string(out), try) {
		t.Errorf("%v\n%s", err, out)
	}
	m.output("mcp", "remove", "issues")
	add("--network", "full")
	if out, err := m.belay("mcp", "test", "issues").CombinedOutput(); err != nil || !strings.Contains(string(out), "mcp__issues__open") {
		t.Errorf("%v\n%s", err, out)
	}
}
