package aimock

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/testkit/tmux"
)

// TestMain lets the test binary be the program, which a terminal starts.
func TestMain(m *testing.M) {
	sandbox.Main()
	if os.Getenv("AIMOCK_PROGRAM") != "" {
		code := cli.Main(context.Background(), os.Args[1:], cli.Process())
		sandbox.Cleanup()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// spoken are messages, and what the screen says of each.
var spoken = []struct {
	text string
	want []string
}{
	{"say hello", []string{"Hello from the far end.", "completed in"}},
	{"read both", []string{"I look at both.", "● read a.txt, b.txt", "Both are read.", "1 step, 0 calls, ", "2 steps, 2 calls"}},
	{"be refused once", []string{"no answer: ", "429", "again in", "Now it works."}},
	{"be cut once", []string{"; again in", "The first half of this was lost on the way, and then it came whole."}},
	{"be a stranger", []string{"401", "or unset it and belay login "}},
	{"be retired", []string{"404", "try: did you mean --model MODEL?"}},
	{"be too long", []string{"(CONTEXT_FULL)", "try: belay context shows what fills it, belay compact shortens it; or a model that reads more"}},
}

// mistyped are models that the vendors don't have, and those that were meant.
var mistyped = map[string][2]string{"openai": {"gpt-5-mni", "gpt-5-mini"}, "anthropic": {"claude-sonet-5-5", "claude-sonnet-5-5"}, "google": {"gemini-2.5-fash", "gemini-2.5-flash"}}

// TestAConversationOverEveryProtocol holds one at a terminal, and at last the server
// is gone.
// Guarantee: E55.
func TestAConversationOverEveryProtocol(t *testing.T) {
	main := installed(t)
	for name, path := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("node", main, "--port", "0", "--fixtures", "fixtures.json", "--strict", "--validate-on-load")
			url := listening(t, cmd)
			c := newClient(t)
			model, hint := mistyped[name][0], mistyped[name][1]
			if model == "" {
				model = "some-model"
			}
			w := tmux.New(t).Window("chat", filepath.Join(c.dir, "ws"), 200, 60, "env", "-i", "PATH="+os.Getenv("PATH"), "HOME="+c.dir, "USER=tester", "LANG=C.UTF-8", "TERM=screen-256color",
				"AIMOCK_PROGRAM=1", "BELAY_BASE_URL="+url+path, "OPENAI_API_KEY=sk-tester", "ANTHROPIC_API_KEY=sk-tester", "GEMINI_API_KEY=sk-tester",
				os.Args[0], "chat", "--provider", name, "--model", model)
			w.Waits("? help")
			say := func(text string, want ...string) {
				w.Type(text)
				w.Waits("› " + text)
				w.Press("Enter")
				w.Until("an empty composer", func(screen string) bool { return !strings.Contains(screen, "\n› "+text+"\n"+model) })
				for _, s := range want {
					s = strings.ReplaceAll(s, "try: did you mean --model MODEL?", map[bool]string{true: "try: did you mean --model " + hint + "?", false: "try: belay models test --provider " + name}[hint != ""])
					w.Until(s, func(string) bool { return strings.Contains(w.All(), s) })
				}
				w.Until("its end", func(screen string) bool {
					return strings.Contains(screen, "? help") && !strings.Contains(screen, "Esc stops")
				})
			}
			for _, s := range spoken {
				say("/new", "a new conversation begins") // messages without an answer go to one vendor as one
				say(s.text, s.want...)
			}
			if said := w.All(); strings.Count(said, "and then it came whole.") != 1 || strings.Contains(said, "sk-tester") {
				t.Errorf("an answer is twice on the screen, or a key is there:\n%s", said)
			}
			cmd.Process.Kill() //nolint:errcheck // it may have ended
			w.Type("be gone")
			w.Press("Enter")
			w.Waits("connection refused; again in")
			w.Press("Escape")
			w.Waits("try: belay models test --provider " + name + " --model " + model + " tries whether the server answers")
			w.Press("C-d")
			w.Waits("resume: belay -r")
			w.Ended()
		})
	}
}
