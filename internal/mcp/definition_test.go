package mcp

import (
	"regexp"
	"strings"
	"testing"
)

// TestNamesAreSayableAndApart: every vendor takes the names of tools, however long they
// are and whatever is in them, and two long ones that begin alike aren't the same.
func TestNamesAreSayableAndApart(t *testing.T) {
	sayable := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	long := strings.Repeat("a_long_name.", 10)
	seen := map[string]string{}
	for _, name := range []string{"do", "do.it", "größe", long, long + "1", long + "2", strings.Repeat("x", 64), strings.Repeat("x", 65)} {
		got := ToolName("a.server", name)
		if !sayable.MatchString(got) || !strings.HasPrefix(got, "mcp__a_server__") {
			t.Errorf("%s is called %s", name, got)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%s and %s are both called %s", other, name, got)
		}
		seen[got] = name
		if again := ToolName("a.server", name); again != got {
			t.Errorf("%s is called %s and %s", name, got, again)
		}
	}
	if got := ToolName("a.server", "do"); got != "mcp__a_server__do" {
		t.Errorf("a short name is %s", got)
	}
}
