package tooltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Case is a tool with arguments that it accepts in a workspace that has the
// known file a.txt.
type Case struct {
	Tool tool.Tool
	Args string
}

// Laws checks what every tool promises.
func Laws(t *testing.T, cases ...Case) {
	for _, c := range cases {
		t.Run(c.Tool.Spec().Name, func(t *testing.T) {
			t.Run("its spec says what it is", func(t *testing.T) { lawSpec(t, c) })
			t.Run("its schema is a schema and always the same", func(t *testing.T) { lawSchema(t, c) })
			t.Run("unknown arguments are refused by name", func(t *testing.T) { lawUnknown(t, c) })
			t.Run("an ended context ends it soon", func(t *testing.T) { lawCancel(t, c) })
			t.Run("arguments it can't read are its failure", func(t *testing.T) { lawBroken(t, c) })
			t.Run("what is pure changes nothing", func(t *testing.T) { lawPure(t, c) })
		})
	}
}

func lawSpec(t *testing.T, c Case) {
	s := c.Tool.Spec()
	if s.Doc == "" || strings.TrimSpace(s.Doc) != s.Doc {
		t.Errorf("its text is %q", s.Doc)
	}
	if !slices.Contains([]belay.EffectClass{belay.Pure, belay.Idempotent, belay.Recoverable, belay.AtMostOnce}, s.Effect) {
		t.Errorf("its effect is %q", s.Effect)
	}
	if s.Access != belay.Read && s.Access != belay.Write && !slices.Contains(s.Capabilities, tool.CapNetwork) {
		t.Errorf("its access is %q", s.Access)
	}
	if s.ReadOnly && (s.Access == belay.Write || s.Destructive) {
		t.Error("it is read-only, and writes")
	}
	if _, ok := c.Tool.(tool.Recoverer); ok != (s.Effect == belay.Recoverable) {
		t.Errorf("its effect is %s, but recovering it is possible: %v", s.Effect, ok)
	}
	if s.PathArg != "" && !bytes.Contains(s.Input, []byte(`"`+s.PathArg+`"`)) {
		t.Errorf("its path argument %q is not in its schema", s.PathArg)
	}
}

func lawSchema(t *testing.T, c Case) {
	s := c.Tool.Spec()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.Input))
	if err != nil {
		t.Fatal(err)
	}
	comp := jsonschema.NewCompiler()
	comp.DefaultDraft(jsonschema.Draft2020)
	if err := comp.AddResource("tool:schema", doc); err != nil {
		t.Fatal(err)
	}
	if _, err := comp.Compile("tool:schema"); err != nil {
		t.Fatal(err)
	}
	var top struct {
		Type                 string
		AdditionalProperties *bool
		Properties           map[string]struct{ Description string }
	}
	if err := json.Unmarshal(s.Input, &top); err != nil {
		t.Fatal(err)
	}
	if top.Type != "object" || top.AdditionalProperties == nil || *top.AdditionalProperties {
		t.Error("it is not an object closed to other arguments")
	}
	for name, p := range top.Properties {
		if p.Description == "" {
			t.Errorf("argument %s has no description", name)
		}
	}
	if !bytes.Equal(s.Input, c.Tool.Spec().Input) {
		t.Error("it differs from call to call")
	}
}

func set(t *testing.T, c Case) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(c.Tool)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lawUnknown(t *testing.T, c Case) {
	s, name := set(t, c), c.Tool.Spec().Name
	args, hash, p := s.Check(name, c.Args)
	if p != nil || hash != belay.DigestOf(args) {
		t.Fatalf("good arguments: %v", p)
	}
	var with map[string]json.RawMessage
	if err := json.Unmarshal(args, &with); err != nil {
		t.Fatal(err)
	}
	with["no_such_argument"] = json.RawMessage("1")
	raw, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, p := s.Check(name, string(raw)); p == nil || p.Class != tool.BadArguments || !strings.Contains(p.Message, "no_such_argument") {
		t.Errorf("got %+v", p)
	}
}

func bench(t *testing.T, c Case) (*Bench, tool.Call) {
	b := NewBench(t)
	b.Know("a.txt", "alpha\nbeta\n")
	return b, b.Call(json.RawMessage(c.Args))
}

func lawCancel(t *testing.T, c Case) {
	b, call := bench(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before, began := snapshot(t, b.Dir), time.Now()
	if _, err := c.Tool.Run(ctx, call); err == nil {
		t.Error("it succeeds though its context has ended")
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
	if !maps.Equal(before, snapshot(t, b.Dir)) {
		t.Error("it changed the workspace")
	}
}

func lawBroken(t *testing.T, c Case) {
	b, call := bench(t, c)
	call.Args = json.RawMessage(`{"no_such_argument":1}`)
	before := snapshot(t, b.Dir)
	if _, err := c.Tool.Run(t.Context(), call); Failure(err) == nil || Failure(err).Class != tool.BadArguments {
		t.Errorf("got %v", err)
	}
	if !maps.Equal(before, snapshot(t, b.Dir)) {
		t.Error("it changed the workspace")
	}
}

func lawPure(t *testing.T, c Case) {
	if c.Tool.Spec().Effect != belay.Pure {
		return
	}
	b, call := bench(t, c)
	before := snapshot(t, b.Dir)
	_, err := c.Tool.Run(t.Context(), call)
	if handled := c.Tool.Spec().Handled != ""; (err == nil) == handled {
		t.Errorf("running it: %v", err)
	}
	if after := snapshot(t, b.Dir); !maps.Equal(before, after) {
		t.Errorf("before %v, after %v", before, after)
	}
	for _, f := range b.Sink.Facts() {
		t.Errorf("it says that something happened: %T", f)
	}
}

// snapshot is each file's mode, time and content.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		all[path] = info.Mode().String() + info.ModTime().String()
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			all[path] += string(belay.DigestOf(b))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
