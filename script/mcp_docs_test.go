package script

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestTheExamplesOfTheMCPDocumentWork: servers are added as docs/mcp.md says, which comes to
// the file that it shows, and editors that are told what it says have their tools. What it
// says of npx is in package mcpservers, and of logins in TestALogin….
func TestTheExamplesOfTheMCPDocumentWork(t *testing.T) {
	doc, err := os.ReadFile("../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	r := newDocsRun(t)
	bin := filepath.Join(r.dir, "bin") // where boundaries show it
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	server, err := exec.LookPath("mcpserver")
	if err == nil {
		err = os.Link(server, filepath.Join(bin, "mcpserver"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, "mcp-server-filesystem"), []byte("#!/bin/sh\nexec "+bin+"/mcpserver\n"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "PATH="+bin+":"+os.Getenv("PATH"))
	before := func(text, end string) string {
		t.Helper()
		part, _, found := strings.Cut(text, end)
		if !found {
			t.Fatalf("%q is not where it was", end)
		}
		return part
	}
	_, adding, _ := strings.Cut(string(doc), "## Adding a server\n")
	if r.follow(before(adding, "\n`belay secret set ISSUE_TOKEN`")) != 4 {
		t.Error("the section shows something else")
	}
	_, shown, _ := strings.Cut(adding, "\n```yaml\n")
	added, _ := r.belay("--json", "mcp", "list")
	file := filepath.Join(filepath.Dir(r.dir), "config", "belay", "belay.yaml")
	if err := os.WriteFile(file, []byte(before(shown, "\n```")), 0o600); err != nil {
		t.Fatal(err)
	}
	if listed, _ := r.belay("--json", "mcp", "list"); strings.Count(listed, `"name"`) < 3 || named(t, listed) != named(t, added) {
		t.Errorf("added:\n%s\nshown:\n%s", added, listed)
	}

	_, editors, _ := strings.Cut(string(doc), "## Belay as a server for your editor\n")
	var told [][]string
	for _, block := range strings.Split(editors, "\n```json\n")[1:] {
		var config struct {
			Servers    map[string]struct{ Args []string }
			MCPServers map[string]struct{ Args []string }
		}
		if err := json.Unmarshal([]byte(before(block, "\n```")), &config); err != nil {
			t.Fatal(err)
		}
		told = append(told, config.Servers["belay"].Args, config.MCPServers["belay"].Args)
	}
	_, line, _ := strings.Cut(editors, "\nclaude mcp add belay -- belay ")
	told = append(told, strings.Fields(before(line, "\n")))
	told = slices.DeleteFunc(told, func(args []string) bool { return len(args) == 0 })
	if len(told) != 3 {
		t.Fatalf("three editors are told something; found: %q", told)
	}
	for _, args := range told {
		cmd := exec.CommandContext(t.Context(), "belay", args...)
		for i, a := range cmd.Args {
			cmd.Args[i] = strings.ReplaceAll(a, "${workspaceFolder}", r.dir)
		}
		cmd.Dir, cmd.Env = r.dir, r.env
		c, err := sdk.NewClient(&sdk.Implementation{Name: "editor", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		got, err := c.ListTools(t.Context(), nil)
		if err != nil || !slices.ContainsFunc(got.Tools, func(t *sdk.Tool) bool { return t.Name == "run" }) {
			t.Errorf("%q: %v, %v", args, got, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// named is what a list of servers says of each but where it was read, and how it was.
func named(t *testing.T, list string) (all string) {
	t.Helper()
	for l := range strings.Lines(list) {
		var s struct{ Name, Type, Text string }
		if strings.HasPrefix(l, "{") {
			if err := json.Unmarshal([]byte(l), &s); err != nil {
				t.Fatal(err)
			}
			all += s.Name + " " + s.Type + " " + s.Text + "\n"
		}
	}
	return all
}
