package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/testkit/secrets"
)

// The keys that are planted: one is kept encrypted, one is in the environment.
const (
	plantedKey  = `sk-Pl4nt/ed+Key=<a>&"b"'c'%d~0123456789`
	plantedGate = `gate/Pl4nt+"ed"&<x>=%y~9876543210`
	visible     = "m4rker-that-stays-visible"
)

// encodings are the ways in which a key is planted. They are written here once
// more, so that they don't depend on what the scrubber knows.
var encodings = []struct {
	name string
	of   func(string) string
}{
	{"as it is", func(v string) string { return v }},
	{"in JSON", func(v string) string { b, _ := json.Marshal(v); return string(b) }},
	{"in JSON in JSON", func(v string) string { b, _ := json.Marshal(v); b, _ = json.Marshal(string(b)); return string(b) }},
	{"in a query", url.QueryEscape},
	{"in a path", url.PathEscape},
	{"in base64", func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) }},
	{"in base64 for URLs", func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) }},
	{"in basic auth", func(v string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+v+":")) }},
	{"in hexadecimal", func(v string) string { return hex.EncodeToString([]byte(v)) }},
	{"in HEXADECIMAL", func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) }},
	{"each byte in a URL", func(v string) string { return perByte(v, "%%%02X") }},
	{"each byte in JSON", func(v string) string { return perByte(v, `\u%04x`) }},
	{"in HTML", html.EscapeString},
}

func perByte(v, format string) string {
	var b strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&b, format, v[i])
	}
	return b.String()
}

// planted is a text with both keys in every encoding, and with secrets that nobody
// registered.
func planted() string {
	var b strings.Builder
	for i, c := range secrets.All() {
		fmt.Fprintf(&b, "%d. %s\n%s\n", i, c.Text, visible)
	}
	for _, e := range encodings {
		fmt.Fprintf(&b, "%s: %s and %s; %s\n", e.name, e.of(plantedKey), e.of(plantedGate), visible)
	}
	return b.String()
}

// leaked are pieces of the keys' encodings long enough to be no chance.
func leaked() map[string]string {
	out := map[string]string{}
	for _, v := range []string{plantedKey, plantedGate} {
		for _, e := range encodings {
			const window = 20
			size := max(1, len(e.of(v))/len(v)) // bytes of the encoding for one of the key
			s := e.of(v)
			for i := 0; i+window*min(size, 3) <= len(s); i++ {
				out[s[i:i+window*min(size, 3)]] = e.name
			}
		}
	}
	for _, c := range secrets.All() {
		v := strings.TrimRight(c.Value, "=\n")
		for _, at := range []int{len(v) / 3, len(v) / 2, len(v) - 10} {
			out[v[at:min(at+10, len(v))]] = "unregistered, " + c.Form
		}
	}
	return out
}

// far answers as a provider whose every failure tells what it was sent.
type far struct {
	fault func(n int, dump string) modelserver.Fault // of request n
	n     atomic.Int32
	keys  atomic.Int32 // requests that came with both keys
}

func (f *far) answer(a modelserver.Asked) modelserver.Scene {
	dump := planted()
	for name, values := range a.Header {
		dump += name + ": " + strings.Join(values, ", ") + "\n"
	}
	if strings.Contains(dump, "\nX-Gate: "+plantedGate) && a.Key == plantedKey {
		f.keys.Add(1)
	}
	n := int(f.n.Add(1))
	if fault := f.fault(n, dump); fault.Status != 0 || fault.Kind != "" {
		return modelserver.Scene{Fault: fault}
	}
	s := modeltest.Scene{Text: "I say " + dump, Reasoning: "I think " + dump, Parts: 40, Stop: "tool_calls"}
	args := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	broken := `{"pattern": "` + plantedKey + ` is broken`
	if a.Protocol == "google" { // its arguments are objects: they can't be broken
		broken = args(map[string]string{"pattern": plantedKey})
	}
	switch a.Results {
	case 0:
		s.Calls = []model.Call{
			{ID: "call_1", Name: "exec", Args: args(map[string]string{"command": "cat planted.txt; cat planted.txt >&2; exit 3"})},
			{ID: "call_2", Name: "read", Args: args(map[string]string{"path": "planted.txt"})},
			{ID: "call_3", Name: "edit", Args: args(map[string]string{"path": "planted.txt", "old": "the first line", "new": "line of " + dump})},
			{ID: "call_4", Name: "write", Args: args(map[string]string{"path": "made.txt", "content": dump})},
			{ID: "call_5", Name: "no-" + plantedKey, Args: args(map[string]string{"x": dump})},
			{ID: "call_6", Name: "grep", Args: broken},
			{ID: "call_7", Name: "exec", Args: args(map[string]string{"command": "exit 1", "dir": plantedKey})},
		}
	default:
		s.Calls = []model.Call{{ID: "call_9", Name: "complete_task", Args: args(map[string]string{"summary": "Done with " + dump})}}
	}
	return modelserver.Scene{Scene: s}
}

// terminal faults end a turn, each in its way; passing ones are retried.
var faults = map[string]func(n int, dump string) modelserver.Fault{
	"passing": func(n int, dump string) modelserver.Fault {
		soon := map[string]string{"Retry-After-Ms": "1", "Content-Type": "application/json"}
		switch n {
		case 1:
			b, _ := json.Marshal(map[string]any{"error": map[string]string{"message": "slow down " + dump, "type": dump}})
			return modelserver.Fault{Status: 429, Body: string(b), Header: soon}
		case 2:
			return modelserver.Fault{Status: 502, Body: "<html>" + dump, Header: soon}
		case 3:
			return modelserver.Fault{Status: 500, Body: strings.Repeat("x", 960) + dump, Header: soon}
		case 5:
			return modelserver.Fault{Status: 200, Body: "data: {" + dump + "\n\n", Header: map[string]string{"Content-Type": "text/event-stream"}}
		}
		return modelserver.Fault{}
	},
	"unauthorized": func(_ int, dump string) modelserver.Fault {
		b, _ := json.Marshal(map[string]any{"error": map[string]string{"message": "no such key: " + dump}})
		return modelserver.Fault{Status: 401, Body: string(b)}
	},
	"refused": func(_ int, dump string) modelserver.Fault { return modelserver.Fault{Status: 400, Body: dump} },
	"no stream": func(_ int, dump string) modelserver.Fault {
		return modelserver.Fault{Status: 200, Body: strings.Repeat("y", 190) + dump, Header: map[string]string{"Content-Type": "text/html"}}
	},
	"redirect": func(_ int, dump string) modelserver.Fault {
		return modelserver.Fault{Status: 307, Body: dump, Header: map[string]string{"Location": "http://127.0.0.1:1/?k=" + url.QueryEscape(dump)}}
	},
}

// TestPlantedKeysAreFoundNowhere runs the program against providers that fail
// and tell whatever they were sent, with a model and tools that repeat it, and
// looks for the keys in everything that is left and printed. What was planted
// beside them is there, so the search can find.
// Guarantee: X13, X22.
func TestPlantedKeysAreFoundNowhere(t *testing.T) {
	for _, p := range config.Protocols() {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			x := newPlanted(t, p)
			for _, name := range []string{"passing", "unauthorized", "refused", "no stream", "redirect"} {
				f := &far{fault: faults[name]}
				srv := httptest.NewServer(modelserver.New(f.answer))
				x.configure(srv.URL + "/v1")
				want := 1
				if name == "passing" {
					want = 0
				}
				x.run(want, "run", "--mode", "accept_edits", "--allow", "exec", "--provider", "work", "look at "+planted())
				srv.Close()
				if f.keys.Load() == 0 {
					t.Fatalf("%s: no request came with the keys", name)
				}
			}
			x.tellAll()
			x.search()
		})
	}
}

// planting is a person's machine with keys on it.
type planting struct {
	t            *testing.T
	home, ws     string
	proto        string
	store        string
	env          []string
	shown        bytes.Buffer
	whereVisible []string
}

func newPlanted(t *testing.T, proto string) *planting {
	dir := t.TempDir()
	x := &planting{t: t, proto: proto, home: filepath.Join(dir, "home"), ws: filepath.Join(dir, "ws"), store: filepath.Join(dir, "store")}
	for _, d := range []string{x.home, x.ws} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(x.ws, "planted.txt"), []byte("the first line\n"+planted()), 0o600); err != nil {
		t.Fatal(err)
	}
	x.env = []string{"HOME=" + x.home, "USER=tester", "PATH=" + os.Getenv("PATH"), "GATE_TOKEN=" + plantedGate}
	x.main(0, plantedKey, "secret", "set", "work")
	return x
}

// configure describes the provider at an address.
func (x *planting) configure(base string) {
	x.t.Helper()
	dir := filepath.Join(x.home, ".config", "belay")
	text := fmt.Sprintf("providers:\n  work: {protocol: %s, base-url: %s, model: gpt-5, key: secret:work, headers: {X-Gate: env:GATE_TOKEN}}\n", x.proto, base)
	if err := os.WriteFile(filepath.Join(dir, "belay.yaml"), []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
}

// run is one command of the program, without and with --json where it only shows.
func (x *planting) run(want int, args ...string) { x.main(want, "", args...) }

func (x *planting) main(want int, stdin string, args ...string) string {
	x.t.Helper()
	var out, errs bytes.Buffer
	ctx, stop := context.WithTimeout(x.t.Context(), time.Minute)
	defer stop()
	got := Main(ctx, append([]string{"--store", x.store}, args...), command.Sys{Env: term.Env{In: strings.NewReader(stdin), Out: &out, Err: &errs, Environ: x.env}, Dir: x.ws})
	if got != want {
		x.t.Errorf("%s: exit code %d, want %d:\n%.3000s", args[0], got, want, errs.String())
	}
	x.shown.Write(out.Bytes())
	x.shown.Write(errs.Bytes())
	return out.String()
}

// tellAll asks for everything that can be asked for.
func (x *planting) tellAll() {
	x.t.Helper()
	for _, args := range [][]string{{}, {"doctor"}, {"config"}, {"secret", "list"}, {"stats"}, {"sessions", "list"}, {"events"}, {"verify"}} {
		x.main(map[bool]int{true: 2}[len(args) == 0], "", args...)
		if len(args) > 0 && args[0] != "secret" {
			x.main(0, "", append([]string{"--json"}, args...)...)
		}
	}
	for l := range strings.Lines(x.main(0, "", "--json", "sessions", "list")) {
		var s struct{ ID string }
		if err := json.Unmarshal([]byte(l), &s); err != nil || s.ID == "" {
			x.t.Fatalf("no session in %s: %v", l, err)
		}
		x.main(0, "", "why", s.ID)
		x.main(0, "", "sessions", "show", s.ID)
		for _, format := range []string{"transcript", "events", "snapshot"} {
			x.main(0, "", "export", s.ID, "--format", format)
		}
		x.main(0, "", "export", s.ID, "-o", filepath.Join(x.store, s.ID+".belay"))
	}
}

// search looks for pieces of the keys in the store's folder, the exports in it,
// and what was printed.
func (x *planting) search() {
	x.t.Helper()
	pieces := leaked()
	if len(encodings) < 10 || len(pieces) < 200 {
		x.t.Fatalf("%d encodings with %d pieces", len(encodings), len(pieces))
	}
	x.look("what was printed", x.shown.Bytes(), pieces)
	err := filepath.WalkDir(x.store, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			if b, err = io.ReadAll(z); err != nil {
				return err
			}
		}
		x.look(filepath.Base(path), b, pieces)
		return nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
	for _, want := range []string{"what was printed", "belay.db", ".belay"} {
		if !slices.ContainsFunc(x.whereVisible, func(s string) bool { return strings.HasSuffix(s, want) }) {
			x.t.Errorf("%s doesn't hold what was planted beside the keys: the search finds nothing there", want)
		}
	}
}

func (x *planting) look(where string, b []byte, pieces map[string]string) {
	x.t.Helper()
	if bytes.Contains(b, []byte(visible)) {
		x.whereVisible = append(x.whereVisible, where)
	}
	told := map[string]bool{}
	for piece, name := range pieces {
		if i := bytes.Index(b, []byte(piece)); i >= 0 && !told[name] {
			told[name] = true
			x.t.Errorf("%s holds a key, written %s: …%q…", where, name, b[max(0, i-80):min(len(b), i+len(piece)+20)])
		}
	}
}
