package script

import (
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/golden"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// TestMistakesHaveAnAnswer: what people get wrong, each with exactly what the program
// says. A line "$ COMMAND" of the table is run by sh in a folder of its own; -update
// writes the answers.
// Guarantee: X5.
func TestMistakesHaveAnAnswer(t *testing.T) {
	const file = "testdata/mistakes.txt"
	table, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	far := httptest.NewServer(modelserver.New(failing))
	defer far.Close()
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + filepath.Join(work, "home"), "USER=tester", "PATH=" + os.Getenv("PATH"), "FAR=" + far.URL + "/v1", "OLLAMA_HOST=127.0.0.1:1", "GORACE=atexit_sleep_ms=0", "W=" + work}
	var out strings.Builder
	n := 0
	for line := range strings.Lines(string(table)) {
		command, ok := strings.CutPrefix(line, "$ ")
		if strings.HasPrefix(line, "#") {
			out.WriteString("\n" + line)
		}
		if !ok {
			continue
		}
		n++
		out.WriteString("\n" + line + answerOf(t, work, env, command))
	}
	if n < 60 {
		t.Errorf("%d mistakes, want at least 60", n)
	}
	text := strings.NewReplacer(far.URL, "http://FAR", strings.TrimPrefix(far.URL, "http://"), "FAR", work, "W").Replace(out.String())
	golden.Compare(t, file, strings.TrimPrefix(text, "\n"))
}

// answerOf is what a command prints, to both streams, and how it ends.
func answerOf(t *testing.T, work string, env []string, command string) string {
	dir := filepath.Join(work, "project")
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(work, "home", ".config")
	if err := errors.Join(os.RemoveAll(settings), os.MkdirAll(filepath.Join(settings, "belay"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"project/.git/HEAD": "", "project/a.txt": "a\n", "done.yaml": "steps:\n  - calls: [{tool: complete_task, args: {summary: done}}]\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = dir, env
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	text := out.String()
	for _, v := range varying {
		text = v.form.ReplaceAllString(text, v.as)
	}
	if exit, failed := err.(*exec.ExitError); failed {
		return text + "exit " + strings.TrimPrefix(exit.String(), "exit status ") + "\n"
	}
	return text
}

// varying is what isn't the same in every run.
var varying = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`(sess|thr|turn|act|cmd|task|run)_[0-9a-f]{8}-[0-9a-f-]{27}`), "${1}_ID"},
	{regexp.MustCompile(`in \d+(\.\d+)? m?s:`), "in TIME:"},
	{regexp.MustCompile(`again in \S+`), "again in TIME"},
	{regexp.MustCompile(`has \d+ tokens and would have \d+`), "has N tokens and would have N"}, // the folder's name counts
	{regexp.MustCompile(`the tools are .*`), "the tools are …"},
}

// failing is a server of models at which nothing works: the name of the model says
// what doesn't.
func failing(a modelserver.Asked) modelserver.Scene {
	switch {
	case a.Key != "sk-tester":
		return modelserver.Scene{Scene: modeltest.Scene{Fail: "auth"}}
	case a.Model == "full":
		return modelserver.Scene{Scene: modeltest.Scene{Fail: "overflow"}}
	}
	return modelserver.Scene{Fault: modelserver.Fault{Status: 404, Class: "bad_request"}}
}
