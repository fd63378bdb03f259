package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/host"
	"github.com/belay-run/belay/internal/builtin"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/tool"
)

// prompts is how many bytes each part of the fixed prompt may have: what every request
// of the standard tool set carries before the conversation begins.
var prompts = map[string]int{
	"coding":          8 << 10, // with the instructions
	"web":             1 << 10,
	"agents":          2560,
	"search":          1 << 10, // finding and calling tools that are offered by their names
	tool.ReadName:     512,
	"skill":           512,
	"offered by name": 0, // their definitions aren't sent
}

// promptOf is the part of the fixed prompt that a tool belongs to.
func promptOf(s belay.ToolSpec) string {
	groups := tool.GroupsOf(s)
	switch {
	case s.Load != "":
		return "offered by name"
	case s.Name == tool.ReadName || s.Name == "skill":
		return s.Name
	case s.Name == tool.SearchName || s.Name == tool.CallName:
		return "search"
	case slices.Contains(groups, "web"):
		return "web"
	case slices.Contains(groups, "agents"):
		return "agents"
	}
	return "coding"
}

// What every request carries stays small: the instructions, and of each tool
// its name, its text and its schema as a model is sent them.
// Guarantee: T30.
func TestTheFixedPromptIsUnderEightKilobytes(t *testing.T) {
	if strings.Contains(host.SystemPrompt(belay.CompletionConversational), tool.CompleteName) {
		t.Error("a conversation's instructions name a tool that it hasn't")
	}
	all, err := builtin.Tools(config.Env{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]int{"coding": len(host.SystemPrompt(belay.CompletionRequired))}
	talks := len(host.SystemPrompt(belay.CompletionConversational))
	rows := fmt.Sprintf("%-18s %5d bytes\n", "the instructions", sent["coding"])
	for _, s := range set.Specs() {
		var def strings.Builder
		enc := json.NewEncoder(&def)
		enc.SetEscapeHTML(false)
		err := enc.Encode(struct {
			Name  string          `json:"name"`
			Doc   string          `json:"description"`
			Input json.RawMessage `json:"input_schema"`
		}{s.Name, s.Doc, s.Input})
		if err != nil {
			t.Fatal(err)
		}
		part := promptOf(s)
		if s.Load == "" {
			sent[part] += def.Len()
		}
		if s.Handled == tool.HandledComplete {
			talks -= def.Len()
		}
		rows += fmt.Sprintf("%-18s %5d bytes, %s\n", s.Name, def.Len(), part)
	}
	if talks > len(host.SystemPrompt(belay.CompletionRequired)) {
		t.Errorf("a conversation's instructions are %d bytes more than the tool that it hasn't", talks)
	}
	for part, n := range sent {
		if most, known := prompts[part]; !known || n > most {
			t.Errorf("%s: %d bytes are sent with every request; %d are allowed\n%s", part, n, most, rows)
		}
	}
	if sent["coding"] < 4<<10 || sent["web"] == 0 || sent["search"] == 0 || sent["agents"] == 0 || sent[tool.ReadName] == 0 {
		t.Errorf("tools are missing in %v", sent)
	}
	t.Logf("%v of %v\n%s", sent, prompts, rows)
}
