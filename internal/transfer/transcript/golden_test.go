package transcript_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/testkit/golden"
	"github.com/belay-run/belay/internal/transfer/transcript"
)

func name(n int) belay.CallID { return belay.CallID(fmt.Sprintf("call_%d", n)) }

// read is a file's conversation.
func read(t testing.TB, raw []byte, f transcript.Format) (*transcript.Conversation, []transcript.Message, error) {
	t.Helper()
	c, err := transcript.Open(t.Context(), bytes.NewReader(raw), int64(len(raw)), f)
	if err != nil {
		return nil, nil, err
	}
	var all []transcript.Message
	for m, err := range c.Messages(name) {
		if err != nil {
			return c, all, err
		}
		all = append(all, m)
	}
	return c, all, nil
}

// told is a conversation as a text that people can compare.
func told(c *transcript.Conversation, all []transcript.Message) string {
	var b strings.Builder
	a := c.About
	fmt.Fprintf(&b, "format %s\nsession %s\ntitle %s\nworkspace %s\nmodel %s\n", a.Format, a.Session, a.Title, a.Workspace, a.Model)
	for _, m := range all {
		fmt.Fprintf(&b, "\n%s of turn %d at %s\n", m.Role, m.Turn, m.Time.Format("2006-01-02 15:04:05"))
		for _, p := range m.Parts {
			switch {
			case p.Image != nil:
				fmt.Fprintf(&b, "  %s: %s, %d bytes\n", p.Image.Name, p.Image.Media, len(p.Image.Data))
			case p.Call != nil:
				fmt.Fprintf(&b, "  %s %s %s\n", p.Call.ID, p.Call.Name, p.Call.Args)
			case p.Result != nil:
				fmt.Fprintf(&b, "  %s %s = %q failed %v\n", p.Result.ID, p.Result.Name, p.Result.Text, p.Result.Error)
			default:
				fmt.Fprintf(&b, "  %q\n", p.Text)
			}
		}
	}
	b.WriteString("\nleft\n")
	for _, l := range c.Left() {
		fmt.Fprintf(&b, "  %s\n", l)
	}
	return b.String()
}

// TestSamples reads a sample of each format and compares what came of it.
// Guarantee: S45.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f := transcript.Detect(t.Context(), bytes.NewReader(raw), int64(len(raw)))
			c, all, err := read(t, raw, f)
			if err != nil {
				t.Fatal(err)
			}
			valid(t, all)
			golden.Compare(t, strings.TrimSuffix(file, ".jsonl")+".txt", told(c, all))
		})
	}
}

// valid holds a conversation against what every model wants: each call has one
// result, right after it, and in the order of the calls.
func valid(t testing.TB, all []transcript.Message) {
	t.Helper()
	var open []belay.CallID
	seen := map[belay.CallID]bool{}
	turn := 1
	for i, m := range all {
		if m.Turn < turn || m.Turn > turn+1 {
			t.Errorf("message %d: turn %d after %d", i, m.Turn, turn)
		}
		turn = m.Turn
		if len(m.Parts) == 0 {
			t.Errorf("message %d says nothing", i)
		}
		var calls, results []belay.CallID
		for _, p := range m.Parts {
			if p.Call != nil {
				if seen[p.Call.ID] {
					t.Errorf("message %d: call %s twice", i, p.Call.ID)
				}
				seen[p.Call.ID] = true
				calls = append(calls, p.Call.ID)
			}
			if p.Result != nil {
				results = append(results, p.Result.ID)
			}
		}
		if m.Role != belay.RoleAssistant && len(calls) > 0 || m.Role != belay.RoleTool && len(results) > 0 {
			t.Errorf("message %d: %s has calls %v and results %v", i, m.Role, calls, results)
		}
		if fmt.Sprint(open) != fmt.Sprint(results) {
			t.Errorf("message %d: calls %v are followed by results %v", i, open, results)
		}
		open = calls
	}
	if len(open) > 0 {
		t.Errorf("calls %v have no results", open)
	}
}
