package main

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestMain lets the test binary be the fixtures, and the program.
func TestMain(m *testing.M) {
	sandbox.Main()
	switch os.Getenv("BELAY_TEST_PROGRAM") {
	case "belay":
		os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Process()))
	case "fixtures":
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Why scenarios are left out.
const (
	deprecated = "the protocol deprecates logging, sampling and roots, which Belay doesn't serve"
	extension  = "it is an extension: tasks"
	unattended = "it is an extension: logins without a person"
	proof      = "it is an extension: tokens that are bound to a key"
	elsewhere  = "it is run against belay serve, whose gate checks hosts and origins"
)

// serverLeftOut are scenarios for servers that the fixtures don't pass, by the version of
// the protocol.
var serverLeftOut = map[string]map[string]string{
	"2025-11-25": {"tools-call-with-logging": deprecated, "tools-call-sampling": deprecated, "dns-rebinding-protection": elsewhere},
	"2026-07-28": {
		"dns-rebinding-protection":             elsewhere,
		"input-required-result-basic-sampling": deprecated, "input-required-result-basic-list-roots": deprecated,
		"input-required-result-multiple-input-requests": deprecated, "input-required-result-capability-check": deprecated,
		"tasks-lifecycle": extension, "tasks-capability-negotiation": extension, "tasks-wire-fields": extension, "tasks-request-state-removal": extension,
		"tasks-mrtr-input": extension, "tasks-request-headers": extension, "tasks-dispatch-and-envelope": extension, "tasks-required-task-error": extension, "tasks-mrtr-composition": extension,
	},
}

// clientLeftOut are scenarios for clients that aren't passed, by the version of the
// protocol.
var clientLeftOut = map[string]map[string]string{
	"2025-11-25": {
		"auth/2025-03-26-oauth-metadata-backcompat": "a server of protocol 2025-03-26 whose metadata names another issuer than the address they are found at; RFC 8414 has that refused",
		"auth/client-credentials-jwt":               unattended, "auth/client-credentials-basic": unattended, "auth/cross-app-access-complete-flow": unattended,
	},
	"2026-07-28": {
		"auth/client-credentials-jwt": unattended, "auth/client-credentials-basic": unattended, "auth/enterprise-managed-authorization": unattended, "auth/wif-jwt-bearer": unattended,
		"auth/dpop": proof, "auth/dpop-nonce": proof,
	},
}

// suite is a version of the suite.
type suite struct {
	t       *testing.T
	version string // of the protocol
	modules string
}

// suites runs a test for each version of the protocol.
func suites(t *testing.T, f func(s *suite)) {
	dir := os.Getenv("BELAY_MCPCONFORMANCE")
	if dir == "" {
		dir = "."
	}
	modules, err := filepath.Abs(filepath.Join(dir, "node_modules"))
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "node/bin/node"))
	}
	needs.Facility(t, "node", err == nil, "npm ci in conformance/mcp installs @modelcontextprotocol/conformance")
	for _, version := range slices.Sorted(maps.Keys(serverLeftOut)) {
		t.Run(version, func(t *testing.T) { f(&suite{t, version, modules}) })
	}
}

// run runs the suite and returns what it printed, and whether it was content.
func (s *suite) run(args ...string) (string, bool) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.modules, "node/bin/node"), append([]string{filepath.Join(s.modules, "suite-"+s.version, "dist/index.js")}, args...)...)
	cmd.Dir = s.t.TempDir()
	cmd.Env = []string{"PATH=" + filepath.Join(s.modules, "node/bin") + ":" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "NO_COLOR=1", "BELAY_TEST_PROGRAM=fixtures"}
	out, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		s.t.Fatal(err)
	}
	return string(out), err == nil
}

// start starts the test binary as another program and returns the first line it prints.
func start(t *testing.T, as string, env []string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "USER=tester", "BELAY_TEST_PROGRAM=" + as}, env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() }) //nolint:errcheck // it was told to end
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s prints %q: %v", as, line, err)
	}
	return strings.TrimSpace(line)
}

var judged = regexp.MustCompile(`(?m)^(✓|✗) ([a-z0-9/-]+): `)

// TestTheServerSuite has the suite judge the fixtures, served as Belay serves.
func TestTheServerSuite(t *testing.T) {
	suites(t, func(s *suite) {
		url := start(s.t, "fixtures", nil, "server")
		which := []string{"--suite", "active"}
		if s.version == "2026-07-28" {
			which = []string{"--requirements", s.version}
		}
		out, _ := s.run(append([]string{"server", "--url", url}, which...)...)
		s.judge(out, serverLeftOut[s.version], 25)
	})
}

// judge holds what a suite found against what is left out: all else passes, least
// scenarios or more, and what is left out doesn't.
func (s *suite) judge(out string, leftOut map[string]string, least int) {
	s.t.Helper()
	left, passed := maps.Clone(leftOut), 0
	for _, m := range judged.FindAllStringSubmatch(out, -1) {
		name, good := m[2], m[1] == "✓"
		_, out := leftOut[name]
		switch delete(left, name); {
		case good && out:
			s.t.Errorf("%s is left out, and passes", name)
		case good:
			passed++
		case !out:
			s.t.Errorf("%s fails", name)
		}
	}
	if len(left) > 0 || passed < least {
		s.t.Errorf("%d scenarios pass; there are none called %v", passed, slices.Collect(maps.Keys(left)))
	}
	if s.t.Failed() {
		s.t.Log(out)
	}
}

// TestTheServersGate has the suite judge belay serve itself, where hosts and origins are
// checked. What stands before the server sends the token, which the suite doesn't have.
func TestTheServersGate(t *testing.T) {
	suites(t, func(s *suite) {
		dir := s.t.TempDir()
		line := start(s.t, "belay", []string{"HOME=" + dir, "BELAY_STORE=" + filepath.Join(dir, "store"), "BELAY_WORKSPACE=" + s.t.TempDir()}, "--json", "serve", "--listen", "127.0.0.1:0")
		var served struct {
			URL   string `json:"url"`
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(line), &served); err != nil {
			s.t.Fatalf("%v: %s", err, line)
		}
		to, err := url.Parse(served.URL)
		if err != nil {
			s.t.Fatal(err)
		}
		own := ""
		before := httptest.NewUnstartedServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if r.In.Host != own { // another name stays as it came
				r.Out.Host = r.In.Host
			}
			if r.In.Header.Get("Origin") == "http://"+own {
				r.Out.Header.Set("Origin", served.URL)
			}
			r.Out.Header.Set("Authorization", "Bearer "+served.Token)
		}})
		own = before.Listener.Addr().String()
		before.Start()
		defer before.Close()
		for _, scenario := range []string{"dns-rebinding-protection", "tools-list", "prompts-list", "resources-list"} {
			if out, good := s.run("server", "--url", before.URL+"/mcp", "--scenario", scenario); !good {
				s.t.Errorf("%s fails:\n%s", scenario, out)
			}
		}
	})
}

// TestTheClientSuite has the suite judge Belay's client, and the person who logs in.
func TestTheClientSuite(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	suites(t, func(s *suite) {
		which := [][]string{{"--suite", "all"}}
		if s.version == "2026-07-28" {
			which = [][]string{{"--suite", "core"}, {"--requirements", s.version}}
		}
		all := ""
		for _, w := range which {
			out, _ := s.run(append([]string{"client", "--command", self + " client"}, w...)...)
			all += out
		}
		s.judge(all, clientLeftOut[s.version], 20)
	})
}
