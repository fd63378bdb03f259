package thread

import (
	"testing"

	"github.com/belay-run/belay"
)

// TestCallsOfOneServerWait: calls of one MCP server run together only if both only read,
// wherever the server is; those of two servers over HTTP have nothing in common.
func TestCallsOfOneServerWait(t *testing.T) {
	far := func(server string, reads bool) resource {
		return touches(belay.ToolSpec{Server: server, ReadOnly: reads}, nil)
	}
	near := touches(belay.ToolSpec{Server: "a", Access: belay.Write}, nil)
	for _, c := range []struct {
		what string
		x, y resource
		wait bool
	}{
		{"two that change", far("a", false), far("a", false), true},
		{"one that reads", far("a", true), far("a", false), true},
		{"two that read", far("a", true), far("a", true), false},
		{"two servers", far("a", false), far("b", false), false},
		{"a server and the workspace", far("a", false), touches(belay.ToolSpec{Access: belay.Write}, nil), false},
		{"a program", near, near, true},
		{"a program and a reader of files", near, touches(belay.ToolSpec{Access: belay.Read, PathArg: "path"}, []string{"f"}), true},
	} {
		if c.x.conflicts(c.y) != c.wait || c.y.conflicts(c.x) != c.wait {
			t.Errorf("%s: waits %t", c.what, !c.wait)
		}
	}
}
