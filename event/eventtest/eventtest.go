// Package eventtest checks facts against the schemas of the standard, and reads logs
// of them. It is for tests only.
package eventtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/testdata"
)

// The schemas' names under either host.
const (
	public  = "agentruntime-event.schema.json"
	profile = "agentruntime-lime-profile-event.schema.json"

	publicSnapshot  = "agentruntime-snapshot.schema.json"
	profileSnapshot = "agentruntime-lime-profile-snapshot.schema.json"
)

const dir = "agentruntime-0.4.0"

// hosts are the places that the $ids of the files are relative to.
var hosts = []string{
	"https://agentruntime.example/schemas/",
	"https://limecloud.github.io/agentruntime/schemas/",
}

type schemas struct{ public, profile, publicSnapshot, profileSnapshot *jsonschema.Schema }

var load = sync.OnceValues(func() (schemas, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	files, err := fs.Glob(testdata.AgentRuntime, dir+"/*.json")
	if err != nil {
		return schemas{}, err
	}
	for _, file := range files {
		for _, host := range hosts {
			if err := add(c, host+file[len(dir)+1:], file); err != nil {
				return schemas{}, err
			}
		}
	}
	var s schemas
	if s.public, err = c.Compile(hosts[0] + public); err != nil {
		return schemas{}, err
	}
	if s.profile, err = c.Compile(hosts[1] + profile); err != nil {
		return schemas{}, err
	}
	if s.publicSnapshot, err = c.Compile(hosts[0] + publicSnapshot); err != nil {
		return schemas{}, err
	}
	s.profileSnapshot, err = c.Compile(hosts[1] + profileSnapshot)
	return s, err
})

func add(c *jsonschema.Compiler, url, file string) error {
	b, err := testdata.AgentRuntime.ReadFile(file)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	return c.AddResource(url, doc)
}

// Invalid says why an event's JSON is not valid under the public schema or the
// strict profile; nil when it is valid under both.
func Invalid(jsonEvent []byte) error {
	s, err := load()
	if err != nil {
		return err
	}
	return invalid(jsonEvent, s.public, s.profile)
}

// InvalidSnapshot is Invalid for a snapshot.
func InvalidSnapshot(jsonSnapshot []byte) error {
	s, err := load()
	if err != nil {
		return err
	}
	return invalid(jsonSnapshot, s.publicSnapshot, s.profileSnapshot)
}

func invalid(doc []byte, public, profile *jsonschema.Schema) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return err
	}
	if err := public.Validate(v); err != nil {
		return fmt.Errorf("public schema: %w", err)
	}
	if err := profile.Validate(v); err != nil {
		return fmt.Errorf("strict profile: %w", err)
	}
	return nil
}

// Validate fails the test if an event's JSON is not valid under both event
// schemas of the standard.
func Validate(t testing.TB, jsonEvent []byte) {
	t.Helper()
	if err := Invalid(jsonEvent); err != nil {
		t.Errorf("not an event of the standard: %v\n%s", err, jsonEvent)
	}
}

// Emitted fails the test unless a fact may stand in a log: its type is stable,
// it has every id its type needs, and both schemas accept its JSON.
func Emitted(t testing.TB, e event.Envelope) {
	t.Helper()
	if ty, ok := event.Lookup(e.Type()); !ok || !ty.Stable {
		t.Errorf("%s at %s#%d is not a stable type: it must not be emitted", e.Type(), e.Stream, e.Seq)
	}
	if err := Check(e); err != nil {
		t.Errorf("at %s#%d: %v", e.Stream, e.Seq, err)
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatalf("at %s#%d: %v", e.Stream, e.Seq, err)
	}
	Validate(t, b)
}

// Logs are the facts of each file that a pattern names, a line each; there must be
// one.
func Logs(t *testing.T, pattern string) (logs [][]event.Envelope) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs in %s: %v", pattern, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var log []event.Envelope
		for text := range bytes.Lines(raw) {
			var e event.Envelope
			if err := json.Unmarshal(text, &e); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			log = append(log, e)
		}
		logs = append(logs, log)
	}
	return logs
}
