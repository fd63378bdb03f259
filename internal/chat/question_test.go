package chat

import (
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// TestAQuestionTakesNoKeyMeantForTheComposer: keys count some time after it was drawn
// and while nothing is composed, or once after Tab; and no key but its own answers.
func TestAQuestionTakesNoKeyMeantForTheComposer(t *testing.T) {
	at := time.Unix(100, 0)
	q := &question{Preview: block.Preview{Kind: "permission", Tool: "exec", Shows: block.PreviewCommand, Prefix: "go test"}, drawn: at}
	for _, c := range []struct {
		after    time.Duration
		composed bool
		direct   bool
		want     bool
	}{
		{0, false, false, false}, {399 * time.Millisecond, false, false, false}, {400 * time.Millisecond, false, false, true},
		{time.Hour, true, false, false}, {time.Hour, true, true, true},
	} {
		if q.direct = c.direct; q.takes(at.Add(c.after), c.composed) != c.want {
			t.Errorf("after %s, composed %v, Tab %v: want %v", c.after, c.composed, c.direct, c.want)
		}
	}
	for _, key := range []string{"enter", "esc", "space", "Y", "yes", "1", "ctrl+y", "x"} {
		if c, ok := q.choose(key); ok {
			t.Errorf("%q answers: %+v", key, c)
		}
	}
}

// TestChoicesSayWhatTheyCover reads the choices of each kind of question: what an answer
// couldn't allow is none.
// Guarantee: G93.
func TestChoicesSayWhatTheyCover(t *testing.T) {
	offers := func(o ...block.Offer) []block.Offer { return o }
	tool, call := block.Offer{Scope: "session", Covers: "tool"}, block.Offer{Scope: "session", Covers: "call"}
	words, folder := block.Offer{Scope: "prefix", Covers: "words", Prefix: "go test"}, block.Offer{Scope: "prefix", Covers: "files", Prefix: "a.go"}
	host, named := block.Offer{Scope: "session", Covers: "host", Prefix: "a.example"}, block.Offer{Scope: "prefix", Covers: "host", Prefix: "a.example"}
	for _, c := range []struct {
		p    block.Preview
		want string
	}{
		{block.Preview{Kind: "permission", Tool: "exec", Shows: block.PreviewCommand, Offers: offers(words, tool)},
			`y once|a commands that begin with "go test"|s every command, this session|e edit|n no, and say why|? explain`},
		{block.Preview{Kind: "permission", Tool: "exec", Shows: block.PreviewCommand, Offers: offers(tool)},
			`y once|s every command, this session|e edit|n no, and say why|? explain`},
		{block.Preview{Kind: "permission", Tool: "exec", Shows: block.PreviewCommand, Offers: offers(call)},
			`y once|s exactly this call, this session|e edit|n no, and say why|? explain`},
		{block.Preview{Kind: "permission", Tool: "exec", Shows: block.PreviewCommand, Taint: []string{"web:a.example"}},
			`y once|t trust what was read, and allow it once|e edit|n no, and say why|? explain`},
		{block.Preview{Kind: "permission", Tool: "web_fetch", Shows: block.PreviewText, Offers: offers(host, named)},
			`y once|s only a.example, this session|e edit|n no, and say why|? explain`},
		{block.Preview{Kind: "permission", Tool: "web_fetch", Shows: block.PreviewText, Offers: offers(named), Taint: []string{"mcp:desk"}},
			`y once|a only a.example, this session|t trust what was read, and allow it once|e edit|n no, and say why|? explain`},
		{block.Preview{Kind: "permission", Tool: "edit", Shows: block.PreviewDiff, Offers: offers(folder, tool)},
			`y once|a only a.go, this session|s every edit, this session|e edit|n no, and say why|? explain`},
		{block.Preview{Kind: "permission", Tool: "exec", Wider: true}, `y run it again|n no, and say why|? explain`},
		{block.Preview{Kind: "permission", Tool: "exec", Wider: true, Offers: offers(call)}, `y run it again|s exactly this call, this session|n no, and say why|? explain`},
		{block.Preview{Kind: "question", Options: []string{"red", "blue"}}, `1 red|2 blue|t type an answer|n give no answer`},
		{block.Preview{Kind: "continue"}, `y go on|n no`},
		{block.Preview{Kind: "budget"}, `y raise it|+ by another amount|n no`},
	} {
		var got []string
		for _, one := range (&question{Preview: c.p}).choices() {
			got = append(got, one.key+" "+one.label)
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.p, s, c.want)
		}
	}
}

// TestSeveralQuestionsSayHowMany: and a screen reader's choices have numbers.
func TestSeveralQuestionsSayHowMany(t *testing.T) {
	q := &question{Preview: block.Preview{Kind: "continue"}, of: 3}
	if got := strings.Join(q.lines(look{}, 80), "/"); got != "  y go on | n no | 1 of 3" {
		t.Errorf("%q", got)
	}
	if got := strings.Join(q.lines(look{block.Options{ScreenReader: true}}, 80), "/"); got != "  1 or y: go on/  2 or n: no/  1 of 3" {
		t.Errorf("%q", got)
	}
}

// TestFilesAreFoundByTheirCharacters: the file's own name counts most, and characters
// count in their order.
func TestFilesAreFoundByTheirCharacters(t *testing.T) {
	names := []string{"docs/queue.md", "internal/app/queue.go", "queue.go", "internal/quick/unit_test.go", "README.md"}
	for text, want := range map[string]string{
		"queue":  "queue.go docs/queue.md internal/app/queue.go",
		"app/qu": "internal/app/queue.go",
		"readme": "README.md",
		"xyz":    "",
	} {
		var got []string
		for _, c := range filesLike(names, text) {
			got = append(got, c.Text)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s, want %s", text, s, want)
		}
	}
}

// TestAListIsFilteredAndChosenFrom plays the keys of a picker.
func TestAListIsFilteredAndChosenFrom(t *testing.T) {
	chosen := ""
	pick := func(text string) row { return row{text, func() { chosen = text }} }
	for keys, want := range map[string]string{
		"enter": "one", "down enter": "two", "down down down enter": "three", "down up enter": "one", "t enter": "two", "t w backspace h enter": "three", "x enter": "", "esc": "",
	} {
		chosen = ""
		p := &picker{rows: []row{pick("one"), pick("two"), pick("three")}}
		for name := range strings.FieldsSeq(keys) {
			k := screen.Key{Name: name}
			if len(name) == 1 {
				k.Text = name
			}
			if over, f := p.take(k); over && f != nil {
				f()
			}
		}
		if chosen != want {
			t.Errorf("%s: %q, want %q", keys, chosen, want)
		}
	}
}

// TestCommandsHaveNamesAndHelp: each command is there once, says what it does, and does it.
func TestCommandsHaveNamesAndHelp(t *testing.T) {
	seen := map[string]bool{}
	for _, cmd := range commands() {
		if seen[cmd.name] || cmd.doc == "" || cmd.run == nil || strings.ContainsAny(cmd.name, " /") {
			t.Errorf("%+v", cmd)
		}
		seen[cmd.name] = true
	}
	if got := commandsLike("co"); len(got) != 5 || got[0].Text != "compact" {
		t.Errorf("commands that begin with co: %v", got)
	}
}
