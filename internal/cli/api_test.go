package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

// TestACommandOfTheTableIsEverywhere adds a command to the table: the terminal's
// help, the terminal, HTTP and its description have it.
func TestACommandOfTheTableIsEverywhere(t *testing.T) {
	type greeted struct {
		Greeting string `json:"greeting"`
	}
	type greet struct {
		Name string `json:"name"`
	}
	more := []app.Command{app.Define("greet_someone", auth.Read, false, "Greet someone by name.", func(_ context.Context, _ *app.Call, in *greet) (*greeted, error) {
		return &greeted{"Hello, " + in.Name}, nil
	})}
	dir := t.TempDir()
	env := []string{"HOME=" + dir, "BELAY_STORE=" + filepath.Join(dir, "store"), "BELAY_WORKSPACE=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	belay := func(ctx context.Context, out io.Writer, args ...string) int {
		return Main(ctx, args, command.Sys{Env: term.Env{Out: out, Err: out, Environ: env}, Dir: dir, More: more})
	}
	said := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if exit := belay(t.Context(), &out, args...); exit != 0 {
			t.Errorf("%v: exit %d: %s", args, exit, &out)
		}
		return out.String()
	}
	if s := said("api", "--help"); !strings.Contains(s, "greet_someone") || !strings.Contains(s, "Greet someone by name.") {
		t.Errorf("the help doesn't name it: %s", s)
	}
	token, _, _ := strings.Cut(said("token", "create", "--role", "owner"), "\n")
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan int, 1)
	go func() { served <- belay(ctx, io.Discard, "serve", "--listen", "127.0.0.1:0") }()
	defer func() { stop(); <-served }()
	var at struct{ URL string }
	for deadline := time.Now().Add(20 * time.Second); at.URL == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if raw, err := os.ReadFile(filepath.Join(dir, "store", "server.json")); err == nil {
			_ = json.Unmarshal(raw, &at) // it may be half written
		}
	}
	ask := func(method, path, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, at.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if s := said("api", "greet_someone", `{"name":"Ann"}`); !strings.Contains(s, `"Hello, Ann"`) {
		t.Errorf("the terminal says %s", s)
	}
	if s := ask("POST", "/v1/commands/greet_someone", `{"name":"Ben"}`); !strings.Contains(s, "Hello, Ben") {
		t.Errorf("HTTP says %s", s)
	}
	if s := ask("GET", "/v1/openapi.json", ""); !strings.Contains(s, `"/v1/commands/greet_someone"`) {
		t.Error("the description doesn't have it")
	}
}
