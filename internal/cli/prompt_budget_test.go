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

// fixedPrompt is how many bytes every request of the standard tool set carries
// before the conversation begins; onDemand how many more a tool has that is offered
// where there is something to read, and webPrompt and agentsPrompt what the tools of the
// web and of agents add.
const (
	fixedPrompt = 8 << 10
	onDemand    = 512
	webPrompt   = 1 << 10

	agentsPrompt = 2560
)

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
	web, agents := 0, 0
	total := len(host.SystemPrompt(belay.CompletionRequired))
	talks := len(host.SystemPrompt(belay.CompletionConversational))
	rows := fmt.Sprintf("%-18s %5d bytes\n", "the instructions", total)
	for _, s := range set.Specs() {
		var sent strings.Builder
		enc := json.NewEncoder(&sent)
		enc.SetEscapeHTML(false)
		err := enc.Encode(struct {
			Name  string          `json:"name"`
			Doc   string          `json:"description"`
			Input json.RawMessage `json:"input_schema"`
		}{s.Name, s.Doc, s.Input})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(s.Capabilities, tool.CapReading) {
			if sent.Len() > onDemand {
				t.Errorf("%s has %d bytes; %d are allowed", s.Name, sent.Len(), onDemand)
			}
			continue
		}
		switch groups := tool.GroupsOf(s); {
		case slices.Contains(groups, "web"):
			web += sent.Len()
		case slices.Contains(groups, "agents"):
			agents += sent.Len()
		default:
			total += sent.Len()
		}
		if s.Handled == tool.HandledComplete {
			talks -= sent.Len()
		}
		rows += fmt.Sprintf("%-18s %5d bytes\n", s.Name, sent.Len())
	}
	if talks > len(host.SystemPrompt(belay.CompletionRequired)) {
		t.Errorf("a conversation's instructions are %d bytes more than the tool that it hasn't", talks)
	}
	if total > fixedPrompt {
		t.Errorf("%d bytes are sent with every request; %d are allowed\n%s", total, fixedPrompt, rows)
	}
	if web == 0 || web > webPrompt {
		t.Errorf("the tools of the web are %d bytes of every request; %d are allowed\n%s", web, webPrompt, rows)
	}
	if agents == 0 || agents > agentsPrompt {
		t.Errorf("the tools of agents are %d bytes of every request; %d are allowed\n%s", agents, agentsPrompt, rows)
	}
	t.Logf("%d of %d bytes, and %d of the web\n%s", total, fixedPrompt, web, rows)
}
