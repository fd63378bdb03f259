package kill

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// TestKillWhereATurnFails: whether the process is killed before its turn fails or
// after that, resuming says how the turn ended.
// Guarantee: E17.
func TestKillWhereATurnFails(t *testing.T) {
	far := httptest.NewServer(modelserver.New(func(modelserver.Asked) modelserver.Scene {
		return modelserver.Scene{Scene: modeltest.Scene{Fail: "auth"}}
	}))
	defer far.Close()
	model := fmt.Sprintf("far: {protocol: openai-chat, base-url: %s/v1}", far.URL)
	step := 4
	if full {
		step = 1
	}
	for at := accepted; ; at += step {
		m := newMachine(t)
		config := filepath.Join(m.dir, ".config", "belay")
		settings := "provider: far\nmodel: big\nproviders:\n  " + model + "\nquotas:\n  - {of: tenant, limit: 50mtok, per: month}\n"
		if err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "belay.yaml"), []byte(settings), 0o600)); err != nil {
			t.Fatal(err)
		}
		begun := m.run([]string{fmt.Sprintf("%s=%d", killAt, at)}, "run", "go")
		if begun.killed {
			if e := m.run(nil, "sessions", "resume", "--last"); e.exit != belay.Failed.ExitCode() || !strings.Contains(e.out, "MODEL_FAILED") {
				t.Errorf("killed at %d, resuming exits %d:\n%s", at, e.exit, e.out)
			}
		}
		m.discard()
		if !begun.killed || t.Failed() {
			return
		}
	}
}
