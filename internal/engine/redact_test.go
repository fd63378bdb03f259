package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/testkit/secrets"
	"github.com/belay-run/belay/internal/tool/file"
)

// knownForms looks for known forms.
func knownForms(s *secret.Scrubber) *secret.Scrubber {
	s.Look(secret.Known{})
	s.Sign([]byte("0123456789abcdef0123456789abcdef"))
	return s
}

var namedContent = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// stored is everything that the store has: facts and their content.
func (b *bench) stored() string {
	b.t.Helper()
	var all strings.Builder
	for r, err := range b.h.Scan(b.t.Context(), 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		raw, err := json.Marshal(r.Event.Data)
		if err != nil {
			b.t.Fatal(err)
		}
		all.Write(raw)
		for _, d := range namedContent.FindAllString(string(raw), -1) {
			if content, err := b.h.Get(b.t.Context(), belay.Digest(d)); err == nil {
				all.Write(content)
			}
		}
	}
	return all.String()
}

// An agent changes a file with keys that it is never shown: what it leaves alone
// stays on disk, and the store has none of them. What a mark stands for is put
// back only into the file that has it.
// Guarantee: X23.
func TestAMarkKeepsTheValueInItsFile(t *testing.T) {
	var keys []string
	var env strings.Builder
	for i, c := range secrets.All() {
		if c.Text == c.Value && !strings.ContainsAny(c.Text, "\n\x1b%\\") {
			keys = append(keys, c.Value)
			fmt.Fprintf(&env, "NAME_%d=%s\n", i, c.Value)
		}
	}
	pem := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCx7\n", 5) + "-----END PRIVATE KEY-----\n"
	env.WriteString("PORT=80\n" + pem)
	known := knownForms(new(secret.Scrubber))
	shown := known.String(env.String())
	if strings.Count(shown, "[redacted:") < len(keys) {
		t.Fatalf("the file is shown as %s", shown)
	}
	first := strings.SplitAfter(shown, "\n")[0]
	call := func(name string, args map[string]string) string {
		raw, _ := json.Marshal(args)
		return fmt.Sprintf("  - calls: [{tool: %s, args: %s}]\n", name, raw)
	}
	script := "steps:\n" + call("read", map[string]string{"path": ".env"}) +
		call("edit", map[string]string{"path": ".env", "old": first + strings.SplitAfter(shown, "\n")[1], "new": first + "ADDED=1\n" + strings.SplitAfter(shown, "\n")[1]}) +
		call("patch", map[string]string{"patch": "*** Begin Patch\n*** Update File: .env\n@@\n-PORT=80\n+PORT=81\n " + strings.ReplaceAll(strings.TrimSuffix(known.String(pem), "\n"), "\n", "\n ") + "\n*** End Patch\n"}) +
		call("write", map[string]string{"path": ".env", "content": "# all of them\n" + strings.Replace(strings.Replace(shown, "PORT=80", "PORT=82", 1), first, first+"ADDED=1\n", 1)}) +
		call("write", map[string]string{"path": "copy", "content": first}) +
		call("edit", map[string]string{"path": ".env", "old": "PORT=82", "new": "PORT=[redacted:github-token:0123456789abcdef]"}) + done
	b := newBench(t, script, func(s *belay.Settings) { s.Approvals = belay.ApprovalsWait }, file.Read(), file.Edit(), file.Write(), file.Patch())
	knownForms(b.c.Secrets)
	var dir string
	b.changeRules(func(r *thread.Rules) { dir = r.Workspace })
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(env.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	log := b.run()
	for n := 0; n < 10 && len(find[event.TurnCompleted](log)) == 0; n++ { // such a file is asked about
		order := belay.Order{ID: belay.CommandID(fmt.Sprint("cmd_yes", n)), Principal: "user:ann", Session: sess, Stream: thr.Stream(), Command: belay.RespondAction{Action: log[len(log)-1].IDs.Action, Decision: "allow"}}
		if _, err := b.e.Submit(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Fatal(err)
		}
		log = b.log()
	}
	got, err := os.ReadFile(filepath.Join(dir, ".env"))
	lines := strings.SplitAfter(env.String(), "\n")
	want := "# all of them\n" + lines[0] + "ADDED=1\n" + strings.Replace(strings.Join(lines[1:], ""), "PORT=80", "PORT=82", 1)
	if err != nil || string(got) != want {
		t.Errorf("the file has %s\nwant %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "copy")); err == nil {
		t.Error("a value was put into another file")
	}
	failed := find[event.ToolFailed](log)
	if len(failed) != 2 || failed[0].Problem.Code != file.CodeRedacted || failed[1].Problem.Code != file.CodeRedacted || !strings.Contains(failed[1].Problem.Message, "0123456789abcdef") {
		t.Errorf("failed: %+v", failed)
	}
	reads := find[event.OutputRedacted](log)
	if len(reads) != 1 || reads[0].Count < len(keys) || len(reads[0].Rules) < 20 {
		t.Errorf("recorded: %+v", reads)
	}
	all := b.stored()
	for _, k := range append(keys, strings.Split(pem, "\n")[1]) {
		if strings.Contains(all, k[len(k)/2-6:len(k)/2+6]) {
			t.Errorf("the store has a piece of %s", k)
		}
	}
	if !strings.Contains(all, "ADDED=1") {
		t.Error("the store doesn't have what was written beside them")
	}
}
