package belay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layer is what a package may do. Own packages and named modules are listed;
// the standard library is open but for what deny names.
type layer struct {
	own     []string // own packages, relative to the module; "…/" allows what is below
	modules []string
	deny    []string // standard packages
	moves   bool     // may start goroutines
}

const module = "github.com/belay-run/belay"

// A pure package has no context, clock, goroutine or I/O.
var impure = []string{"context", "os", "net", "net/http", "database/sql", "io/fs", "os/exec", "syscall", "sync", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog"}

// The table of the import rules: a package that isn't in it may not exist.
var layers = map[string]layer{
	".":                          {deny: []string{"os", "net", "net/http", "database/sql", "context"}},
	"event":                      {own: []string{"."}, deny: []string{"os", "net", "net/http", "database/sql", "context"}},
	"client":                     {own: []string{".", "event"}, modules: []string{"github.com/coder/websocket"}},
	"event/eventtest":            {own: []string{".", "event", "event/testdata"}, modules: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"event/testdata":             {},
	"internal/core":              {own: []string{".", "event"}, deny: impure},
	"internal/core/coretest":     {own: []string{".", "event", "internal/core"}},
	"internal/core/session":      {own: []string{".", "event", "internal/core", "internal/policy"}, deny: impure},
	"internal/core/thread":       {own: []string{".", "event", "internal/core", "internal/policy", "internal/route"}, deny: impure},
	"internal/core/task":         {own: []string{".", "event", "internal/core"}, deny: impure},
	"internal/route":             {own: []string{"event"}, deny: impure},
	"internal/protected":         {deny: impure},
	"internal/shell":             {own: []string{"internal/pattern", "internal/protected"}, modules: []string{"mvdan.cc/sh/v3/syntax"}, deny: impure},
	"internal/policy":            {own: []string{".", "internal/pattern", "internal/protected", "internal/shell"}, modules: []string{"cel.dev/cel-go/cel", "cel.dev/cel-go/common/ast", "cel.dev/cel-go/common/operators"}, deny: impure},
	"internal/policy/rehearse":   {own: []string{".", "event", "internal/core/thread", "internal/pattern", "internal/policy", "internal/spelling"}, deny: impure},
	"internal/links":             {own: []string{".", "internal/policy"}, modules: []string{"golang.org/x/sys/unix"}},
	"internal/checker":           {own: []string{"internal/policy", "internal/process"}},
	"internal/policy/foreign":    {own: []string{".", "internal/pattern", "internal/policy", "internal/shell"}, modules: []string{"github.com/pelletier/go-toml/v2", "github.com/pelletier/go-toml/v2/unstable"}, deny: impure},
	"internal/rulefile":          {own: []string{".", "internal/pattern", "internal/policy", "internal/source"}, modules: []string{"github.com/goccy/go-yaml/ast"}},
	"internal/canon":             {deny: impure},
	"internal/pattern":           {deny: impure},
	"internal/spelling":          {deny: impure},
	"internal/patch":             {deny: impure},
	"internal/walk":              {},
	"internal/live":              {own: []string{".", "event", "internal/engine", "internal/store"}},
	"internal/live/livetest":     {own: []string{".", "event", "internal/engine", "internal/store"}},
	"internal/read":              {own: []string{".", "event", "internal/live", "internal/problem", "internal/search", "internal/snapshot", "internal/store", "internal/story", "internal/view"}},
	"internal/explain":           {own: []string{".", "event"}, deny: impure},
	"internal/view":              {own: []string{".", "event", "internal/store"}},
	"internal/disk":              {own: []string{"."}},
	"internal/disk/disktest":     {own: []string{"internal/disk"}},
	"internal/bundle":            {own: []string{".", "event", "internal/secret", "internal/store"}},
	"internal/snapshot":          {own: []string{".", "event"}, deny: impure},
	"internal/transcript":        {own: []string{"."}},
	"internal/audit":             {own: []string{".", "event", "internal/store"}},
	"internal/auth":              {own: []string{".", "internal/disk"}},
	"internal/problem":           {own: []string{".", "internal/store"}},
	"internal/server":            {own: []string{".", "event", "internal/auth", "internal/canon", "internal/core/…", "internal/engine", "internal/explain", "internal/policy/…", "internal/problem", "internal/read", "internal/spelling", "internal/store", "internal/tool", "internal/view"}, modules: []string{"github.com/coder/websocket", "github.com/google/jsonschema-go/jsonschema"}, moves: true},
	"internal/outputs":           {own: []string{".", "event", "internal/retention", "internal/store"}},
	"internal/retention":         {own: []string{"."}, deny: impure},
	"internal/store":             {own: []string{".", "event"}},
	"internal/store/storetest":   {own: []string{".", "event", "internal/store"}, modules: []string{"pgregory.net/rapid", "github.com/google/go-cmp/cmp", "github.com/google/go-cmp/cmp/cmpopts"}, moves: true},
	"internal/store/memory":      {own: []string{".", "event", "internal/store"}},
	"internal/store/sqlite":      {own: []string{".", "event", "internal/disk", "internal/store", "internal/process"}, modules: []string{"modernc.org/sqlite", "modernc.org/sqlite/lib", "golang.org/x/sys/unix"}, moves: true},
	"internal/model":             {own: []string{"."}},
	"internal/model/modeltest":   {own: []string{".", "internal/model", "internal/model/wire"}, modules: []string{"go.uber.org/goleak"}, moves: true},
	"internal/model/gateway":     {own: []string{".", "internal/model"}},
	"internal/model/modelserver": {own: []string{".", "internal/model/modeltest"}},
	"internal/model/direct":      {own: []string{".", "internal/model"}},
	"internal/dial":              {own: []string{"."}},
	"internal/model/wire":        {own: []string{".", "internal/model"}},
	"internal/model/openai":      {own: []string{".", "internal/model", "internal/model/wire"}},
	"internal/model/anthropic":   {own: []string{".", "internal/model", "internal/model/wire"}},
	"internal/model/google":      {own: []string{".", "internal/model", "internal/model/wire"}},
	"internal/model/scripted":    {own: []string{".", "internal/model", "internal/source"}, modules: []string{"github.com/goccy/go-yaml/ast"}},
	"internal/source":            {own: []string{"."}, modules: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast", "github.com/goccy/go-yaml/lexer", "github.com/goccy/go-yaml/parser", "github.com/goccy/go-yaml/token"}},
	"internal/trust":             {own: []string{".", "event", "internal/store"}},
	"internal/vault":             {own: []string{".", "internal/disk", "internal/secret"}, modules: []string{"filippo.io/age"}},
	"internal/tool":              {own: []string{".", "event", "internal/canon", "internal/patch", "internal/process", "internal/spelling"}, modules: []string{"github.com/google/jsonschema-go/jsonschema"}},
	"internal/tool/tooltest":     {own: []string{".", "event", "internal/tool"}, modules: []string{"github.com/google/jsonschema-go/jsonschema", "github.com/santhosh-tekuri/jsonschema/v6"}, moves: true},
	"internal/tool/file":         {own: []string{".", "event", "internal/patch", "internal/protected", "internal/tool", "internal/walk"}, modules: []string{"github.com/aymanbagabas/go-udiff", "golang.org/x/sys/unix"}},
	"internal/tool/shell":        {own: []string{".", "event", "internal/tool", "internal/tool/file", "internal/process", "internal/secret"}},
	"internal/tool/artifact":     {own: []string{".", "event", "internal/tool", "internal/tool/file"}},
	"internal/tool/command":      {own: []string{".", "internal/manifest", "internal/process", "internal/tool", "internal/tool/shell"}},
	"internal/tool/plan":         {own: []string{".", "event", "internal/tool"}},
	"internal/tool/search":       {own: []string{".", "internal/protected", "internal/tool", "internal/tool/file", "internal/walk"}, moves: true},
	"internal/shadow":            {own: []string{".", "internal/gitsafe"}},
	"internal/gitsafe":           {own: []string{".", "internal/pattern", "internal/protected"}, modules: []string{"golang.org/x/sys/unix"}},
	"internal/process":           {own: []string{"."}, modules: []string{"github.com/creack/pty", "golang.org/x/sys/unix"}, moves: true},
	"internal/sandbox":           {own: []string{".", "internal/dial", "internal/process", "internal/sandbox/inside"}, modules: []string{"golang.org/x/sys/unix"}, moves: true},
	"internal/sandbox/inside":    {modules: []string{"golang.org/x/sys/unix"}, moves: true, deny: []string{"net", "net/http", "os/exec"}}, // it runs before all others are initialized
	"internal/secret":            {own: []string{"."}},
	"internal/search":            {own: []string{".", "event", "internal/store"}},
	"internal/needs":             {},
	"internal/golden":            {modules: []string{"github.com/google/go-cmp/cmp"}},
	"internal/manifest":          {own: []string{".", "internal/source", "internal/secret", "internal/tool"}, modules: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast"}},
	"internal/catalog":           {own: []string{".", "internal/source"}, modules: []string{"github.com/goccy/go-yaml/ast"}, deny: impure},
	"internal/tokens":            {own: []string{".", "internal/model"}, modules: []string{"github.com/tiktoken-go/tokenizer/codec"}},
	"internal/story":             {own: []string{".", "event"}, deny: impure},
	"internal/stats":             {own: []string{".", "event"}, deny: impure},
	"internal/template":          {own: []string{".", "internal/source"}, modules: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast"}},
	"internal/testsum":           {},
	"internal/mutants":           {moves: true},
	"internal/worktree":          {own: []string{".", "internal/gitsafe"}},
	"internal/demo":              {},
	"internal/eval":              {own: []string{".", "event", "internal/model/scripted", "internal/source", "internal/store", "internal/tool"}, modules: []string{"github.com/aymanbagabas/go-udiff", "github.com/goccy/go-yaml/ast"}, moves: true},
	"internal/engine":            {own: []string{".", "event", "internal/core/…", "internal/links", "internal/policy", "internal/store", "internal/tokens", "internal/model", "internal/process", "internal/tool", "internal/secret", "internal/tool/file"}, moves: true},
	"internal/cli":               {own: []string{".", "client", "event", "internal/…"}, modules: []string{"github.com/alecthomas/kong", "github.com/aymanbagabas/go-udiff", "golang.org/x/term", "golang.org/x/sys/unix"}, moves: true},
	"cmd/belay":                  {own: []string{"internal/cli", "internal/sandbox"}},

	// the conformance module: other people's libraries and scenarios
	"conformance/gym":   {own: []string{".", "event", "internal/eval", "internal/patch", "internal/source", "internal/tool", "internal/tool/file", "internal/tool/shell"}, modules: []string{"github.com/evanw/esbuild/pkg/api"}},
	"conformance/belay": {own: []string{"conformance/gym", "internal/cli", "internal/eval", "internal/sandbox"}},
}

// TestImportRules holds every package to its line of the table: direct imports
// and goroutines of files that aren't tests.
// Guarantee: X7.
func TestImportRules(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "agentruntime-0.4.0" || name == "script" || strings.HasPrefix(name, ".") && name != ".") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(p))
		seen[pkg] = true
		l, ok := layers[pkg]
		if !ok {
			t.Errorf("%s: package %s is in no layer; add it to the table with what it may import", p, pkg)
			return nil
		}
		return l.check(t, p)
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range layers {
		if !seen[pkg] {
			t.Errorf("the table names %s, which has no code", pkg)
		}
	}
}

func (l layer) check(t *testing.T, file string) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, src, 0)
	if err != nil {
		return err
	}
	for _, imp := range f.Imports {
		name := strings.Trim(imp.Path.Value, `"`)
		if why := l.refuses(name); why != "" {
			t.Errorf("%s imports %s: %s", file, name, why)
		}
	}
	if l.moves {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			t.Errorf("%s starts a goroutine; only movers and drivers that join theirs may", file)
		}
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" {
			t.Errorf("%s calls .Go; only movers and drivers that join theirs may start goroutines", file)
		}
		return true
	})
	return nil
}

func (l layer) refuses(name string) string {
	first, _, _ := strings.Cut(name, "/")
	switch {
	case name == module || strings.HasPrefix(name, module+"/"):
		rel := path.Clean("./" + strings.TrimPrefix(strings.TrimPrefix(name, module), "/"))
		for _, o := range l.own {
			base, below := strings.CutSuffix(o, "/…")
			if o == rel || below && (rel == base || strings.HasPrefix(rel, base+"/")) {
				return ""
			}
		}
		return "this layer doesn't know that package"
	case strings.Contains(first, "."):
		if !slices.Contains(l.modules, name) {
			return "this layer may not use that module"
		}
	case slices.Contains(l.deny, name):
		return "this layer does without that package"
	}
	return ""
}
