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
	".":                             {deny: []string{"os", "net", "net/http", "database/sql", "context"}},
	"event":                         {own: []string{"."}, deny: []string{"os", "net", "net/http", "database/sql", "context"}},
	"client":                        {own: []string{".", "event"}, modules: []string{"github.com/coder/websocket"}},
	"event/eventtest":               {own: []string{".", "event", "event/testdata"}, modules: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"event/testdata":                {},
	"internal/core":                 {own: []string{".", "event"}, deny: impure},
	"internal/core/coretest":        {own: []string{".", "event", "internal/core"}},
	"internal/core/session":         {own: []string{".", "event", "internal/core", "internal/policy"}, deny: impure},
	"internal/core/thread":          {own: []string{".", "event", "internal/core", "internal/policy", "internal/core/route"}, deny: impure},
	"internal/core/task":            {own: []string{".", "event", "internal/core"}, deny: impure},
	"internal/core/route":           {own: []string{"event"}, deny: impure},
	"internal/workspace/protected":  {deny: impure},
	"internal/policy/shell":         {own: []string{"internal/lib/lazyregexp", "internal/workspace/protected"}, modules: []string{"mvdan.cc/sh/v3/syntax"}, deny: impure},
	"internal/policy":               {own: []string{".", "internal/lib/lazyregexp", "internal/workspace/protected", "internal/policy/shell"}, modules: []string{"cel.dev/cel-go/cel", "cel.dev/cel-go/common/ast", "cel.dev/cel-go/common/operators"}, deny: impure},
	"internal/policy/simulate":      {own: []string{".", "event", "internal/core/thread", "internal/lib/lazyregexp", "internal/policy", "internal/lib/spelling"}, deny: impure},
	"internal/policy/symlinks":      {own: []string{".", "internal/policy"}, modules: []string{"golang.org/x/sys/unix"}},
	"internal/hook":                 {own: []string{"internal/policy", "internal/process"}},
	"internal/policy/convert":       {own: []string{".", "internal/lib/lazyregexp", "internal/policy", "internal/policy/shell"}, modules: []string{"github.com/pelletier/go-toml/v2", "github.com/pelletier/go-toml/v2/unstable"}, deny: impure},
	"internal/config":               {own: []string{"internal/lib/environ", ".", "internal/config/…", "internal/lib/netdial", "internal/lib/readfile", "internal/lib/spelling", "internal/model/catalog", "internal/policy", "internal/secret", "internal/secret/vault", "internal/tool", "internal/tool/file"}},
	"internal/config/rulefile":      {own: []string{".", "internal/lib/lazyregexp", "internal/policy", "internal/lib/strictyaml"}, modules: []string{"github.com/goccy/go-yaml/ast"}},
	"internal/lib/jcs":              {deny: impure},
	"internal/lib/environ":          {},
	"internal/lib/lazyregexp":       {deny: impure},
	"internal/lib/spelling":         {deny: impure},
	"internal/tool/patch":           {deny: impure},
	"internal/workspace/fswalk":     {},
	"internal/view/feed":            {own: []string{".", "event", "internal/store"}},
	"internal/view/feed/feedtest":   {own: []string{".", "event", "internal/store"}},
	"internal/read":                 {own: []string{".", "event", "internal/view/feed", "internal/app/input", "internal/app/problem", "internal/view/search", "internal/view/snapshot", "internal/store", "internal/view/timeline", "internal/view"}},
	"internal/view/explain":         {own: []string{".", "event"}, deny: impure},
	"internal/view":                 {own: []string{".", "event", "internal/store"}},
	"internal/lib/atomicfile":       {own: []string{"."}},
	"internal/transfer/bundle":      {own: []string{".", "event", "internal/lib/readfile", "internal/secret", "internal/store"}},
	"internal/view/snapshot":        {own: []string{".", "event"}, deny: impure},
	"internal/transfer/transcript":  {own: []string{"."}},
	"internal/store/audit":          {own: []string{".", "event", "internal/store"}},
	"internal/auth":                 {own: []string{".", "internal/lib/atomicfile"}},
	"internal/app/input":            {own: []string{".", "internal/lib/jcs"}},
	"internal/app":                  {own: []string{".", "event", "internal/app/input", "internal/auth", "internal/config/rulefile", "internal/core", "internal/core/session", "internal/core/task", "internal/core/thread", "internal/effect/history", "internal/engine", "internal/policy", "internal/read", "internal/secret", "internal/store", "internal/tool", "internal/view", "internal/view/explain"}},
	"internal/app/approvals":        {own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/core/thread", "internal/engine", "internal/read", "internal/store", "internal/view"}},
	"internal/app/channels":         {own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/store", "internal/view"}},
	"internal/app/policies":         {own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/config/rulefile", "internal/lib/spelling", "internal/policy", "internal/policy/simulate", "internal/policy/symlinks", "internal/store", "internal/tool", "internal/tool/file", "internal/view"}, moves: true},
	"internal/app/processes":        {own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/core/thread", "internal/process", "internal/store", "internal/tool", "internal/tool/exec", "internal/view"}},
	"internal/app/sessions":         {own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/core/task", "internal/core/thread", "internal/effect/history", "internal/store", "internal/store/audit", "internal/view"}},
	"internal/app/tokens":           {own: []string{".", "internal/app", "internal/app/input", "internal/auth"}},
	"internal/app/transfer":         {own: []string{".", "event", "internal/app", "internal/app/input", "internal/app/sessions", "internal/auth", "internal/core/session", "internal/core/thread", "internal/effect/history", "internal/engine", "internal/lib/readfile", "internal/policy", "internal/read", "internal/secret", "internal/store", "internal/transfer/bundle", "internal/transfer/transcript", "internal/view/snapshot"}},
	"internal/app/trust":            {own: []string{".", "internal/app", "internal/app/input", "internal/auth", "internal/config", "internal/config/trust", "internal/lib/readfile", "internal/store", "internal/tool/file"}},
	"internal/app/storage":          {own: []string{".", "internal/app", "internal/app/input", "internal/auth", "internal/store", "internal/store/retention"}},
	"internal/app/turns":            {own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/core", "internal/core/session", "internal/core/task", "internal/core/thread", "internal/store"}},
	"internal/app/host":             {own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/config", "internal/config/rulefile", "internal/config/trust", "internal/core/session", "internal/core/thread", "internal/effect", "internal/effect/history", "internal/engine", "internal/lib/readfile", "internal/lib/spelling", "internal/model", "internal/model/providers", "internal/model/tokens", "internal/policy", "internal/read", "internal/secret", "internal/store", "internal/tool", "internal/tool/command", "internal/view", "internal/workspace/git"}},
	"internal/model/providers":      {own: []string{".", "event", "internal/config", "internal/core/route", "internal/lib/netdial", "internal/model", "internal/model/anthropic", "internal/model/catalog", "internal/model/gateway", "internal/model/google", "internal/model/openai", "internal/model/scripted", "internal/model/tokens", "internal/model/wire", "internal/secret"}},
	"internal/builtin":              {own: []string{".", "internal/app", "internal/app/approvals", "internal/app/channels", "internal/app/host", "internal/app/policies", "internal/app/processes", "internal/app/sessions", "internal/app/storage", "internal/app/tokens", "internal/app/transfer", "internal/app/trust", "internal/app/turns", "internal/auth", "internal/config", "internal/core", "internal/core/thread", "internal/effect", "internal/effect/history", "internal/hook", "internal/lib/netdial", "internal/model", "internal/model/providers", "internal/process", "internal/sandbox", "internal/secret", "internal/store", "internal/store/sqlite", "internal/store/sqlite/layout", "internal/tool", "internal/tool/exec", "internal/tool/file", "internal/tool/plan", "internal/tool/search", "internal/workspace/git", "internal/workspace/gitsafe", "internal/workspace/protected"}},
	"internal/app/problem":          {own: []string{".", "internal/app/input", "internal/store"}},
	"internal/server":               {own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/app/problem", "internal/read", "internal/store", "internal/tool", "internal/view"}, modules: []string{"github.com/coder/websocket", "github.com/google/jsonschema-go/jsonschema"}, moves: true},
	"internal/store/retention":      {own: []string{".", "event", "internal/store"}},
	"internal/store":                {own: []string{".", "event"}},
	"internal/store/storetest":      {own: []string{".", "event", "internal/store"}, modules: []string{"pgregory.net/rapid", "github.com/google/go-cmp/cmp", "github.com/google/go-cmp/cmp/cmpopts"}, moves: true},
	"internal/store/sqlite/layout":  {own: []string{".", "event", "internal/lib/atomicfile", "internal/store"}, modules: []string{"golang.org/x/sys/unix"}},
	"internal/store/sqlite/hotcopy": {own: []string{".", "internal/lib/readfile", "internal/store/sqlite/layout"}, modules: []string{"modernc.org/sqlite"}},
	"internal/store/sqlite/verify":  {own: []string{".", "event", "internal/lib/readfile", "internal/store", "internal/store/sqlite/hotcopy", "internal/store/sqlite/layout"}},
	"internal/store/sqlite/backup":  {own: []string{".", "internal/lib/atomicfile", "internal/lib/readfile", "internal/store", "internal/store/sqlite/hotcopy", "internal/store/sqlite/layout", "internal/store/sqlite/verify"}, modules: []string{"golang.org/x/sys/unix"}},
	"internal/store/sqlite":         {own: []string{".", "event", "internal/lib/atomicfile", "internal/store/sqlite/hotcopy", "internal/store", "internal/store/sqlite/layout", "internal/process"}, modules: []string{"modernc.org/sqlite", "modernc.org/sqlite/lib", "golang.org/x/sys/unix"}, moves: true},
	"internal/model":                {own: []string{"."}},
	"internal/model/modeltest":      {own: []string{".", "internal/lib/netdial", "internal/model", "internal/model/wire"}, modules: []string{"go.uber.org/goleak"}, moves: true},
	"internal/model/gateway":        {own: []string{".", "internal/model"}},
	"internal/lib/netdial":          {own: []string{"."}},
	"internal/lib/readfile":         {own: []string{"."}},
	"internal/model/wire":           {own: []string{".", "internal/model"}},
	"internal/model/openai":         {own: []string{".", "internal/model", "internal/model/wire"}},
	"internal/model/anthropic":      {own: []string{".", "internal/model", "internal/model/wire"}},
	"internal/model/google":         {own: []string{".", "internal/model", "internal/model/wire"}},
	"internal/model/scripted":       {own: []string{".", "internal/model", "internal/lib/strictyaml"}, modules: []string{"github.com/goccy/go-yaml/ast"}},
	"internal/lib/strictyaml":       {own: []string{"."}, modules: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast", "github.com/goccy/go-yaml/lexer", "github.com/goccy/go-yaml/parser", "github.com/goccy/go-yaml/token"}},
	"internal/config/trust":         {own: []string{".", "event", "internal/store"}},
	"internal/secret/vault":         {own: []string{".", "internal/lib/atomicfile", "internal/secret"}, modules: []string{"filippo.io/age"}},
	"internal/tool":                 {own: []string{".", "event", "internal/lib/jcs", "internal/tool/patch", "internal/process", "internal/lib/spelling"}, modules: []string{"github.com/google/jsonschema-go/jsonschema"}},
	"internal/tool/tooltest":        {own: []string{".", "event", "internal/tool"}, modules: []string{"github.com/google/jsonschema-go/jsonschema", "github.com/santhosh-tekuri/jsonschema/v6"}, moves: true},
	"internal/tool/file":            {own: []string{".", "event", "internal/tool/patch", "internal/workspace/protected", "internal/tool", "internal/workspace/fswalk"}, modules: []string{"github.com/aymanbagabas/go-udiff", "golang.org/x/sys/unix"}},
	"internal/tool/exec":            {own: []string{"internal/lib/environ", ".", "event", "internal/tool", "internal/tool/file", "internal/process", "internal/secret"}},
	"internal/tool/command":         {own: []string{".", "internal/config/manifest", "internal/process", "internal/tool", "internal/tool/exec"}},
	"internal/tool/plan":            {own: []string{".", "event", "internal/tool"}},
	"internal/tool/search":          {own: []string{".", "internal/workspace/protected", "internal/tool", "internal/tool/file", "internal/workspace/fswalk"}, moves: true},
	"internal/workspace/git":        {own: []string{".", "internal/workspace/gitsafe"}},
	"internal/workspace/gitsafe":    {own: []string{"internal/lib/environ", ".", "internal/lib/lazyregexp", "internal/workspace/protected"}, modules: []string{"golang.org/x/sys/unix"}},
	"internal/process":              {own: []string{"."}, modules: []string{"github.com/creack/pty", "golang.org/x/sys/unix"}, moves: true},
	"internal/sandbox":              {own: []string{".", "internal/lib/netdial", "internal/process", "internal/sandbox/boxinit"}, modules: []string{"golang.org/x/sys/unix"}, moves: true},
	"internal/sandbox/boxinit":      {modules: []string{"golang.org/x/sys/unix"}, moves: true, deny: []string{"net", "net/http", "os/exec"}}, // it runs before all others are initialized
	"internal/secret":               {own: []string{"."}},
	"internal/view/search":          {own: []string{".", "event", "internal/store"}},
	"internal/testkit/needs":        {},
	"internal/testkit/golden":       {modules: []string{"github.com/google/go-cmp/cmp"}},
	"internal/config/manifest":      {own: []string{".", "internal/lib/strictyaml", "internal/secret", "internal/tool"}, modules: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast"}},
	"internal/model/catalog":        {own: []string{".", "internal/lib/strictyaml"}, modules: []string{"github.com/goccy/go-yaml/ast"}, deny: impure},
	"internal/model/tokens":         {own: []string{".", "internal/model"}, modules: []string{"github.com/tiktoken-go/tokenizer/codec"}},
	"internal/view/timeline":        {own: []string{".", "event"}, deny: impure},
	"internal/view/stats":           {own: []string{".", "event"}, deny: impure},
	"internal/config/template":      {own: []string{".", "internal/lib/strictyaml"}, modules: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast"}},
	"internal/testkit/failfs":       {own: []string{"internal/lib/atomicfile"}},
	"internal/testkit/memory":       {own: []string{".", "event", "internal/store"}},
	"internal/testkit/modelserver":  {own: []string{".", "internal/model/modeltest"}},
	"internal/testkit/testsum":      {},
	"internal/testkit/mutants":      {moves: true},
	"internal/eval":                 {own: []string{".", "event", "internal/model/scripted", "internal/lib/strictyaml", "internal/store", "internal/tool"}, modules: []string{"github.com/aymanbagabas/go-udiff", "github.com/goccy/go-yaml/ast"}, moves: true},
	"internal/engine":               {own: []string{".", "event", "internal/core/…", "internal/store", "internal/process", "internal/secret"}, moves: true},
	"internal/effect":               {own: []string{".", "event", "internal/core", "internal/core/thread", "internal/effect/history", "internal/engine", "internal/model", "internal/model/tokens", "internal/policy", "internal/policy/symlinks", "internal/process", "internal/secret", "internal/store", "internal/tool", "internal/tool/file"}},
	"internal/effect/history":       {own: []string{".", "event", "internal/core", "internal/core/thread", "internal/store", "internal/model", "internal/model/tokens", "internal/secret", "internal/tool", "internal/tool/file"}},
	"internal/cli":                  {own: []string{".", "client", "event", "internal/…"}, modules: []string{"github.com/alecthomas/kong", "github.com/aymanbagabas/go-udiff", "golang.org/x/term", "golang.org/x/sys/unix"}, moves: true},
	"internal/cli/bench":            {own: []string{"internal/cli/term", "internal/model", "internal/store"}, moves: true},
	"internal/cli/demo":             {own: []string{".", "event", "internal/cli/term", "internal/lib/environ", "internal/store"}},
	"internal/cli/term":             {own: []string{".", "client", "event", "internal/view/…", "internal/lib/…", "internal/process", "internal/store"}, modules: []string{"github.com/aymanbagabas/go-udiff", "golang.org/x/term", "golang.org/x/sys/unix"}, moves: true},
	"internal/cli/work":             {own: []string{".", "internal/cli/term", "internal/lib/readfile"}},
	"cmd/belay":                     {own: []string{"internal/cli", "internal/sandbox"}},

	// the conformance module: other people's libraries and scenarios
	"conformance/gym":   {own: []string{".", "event", "internal/eval", "internal/tool/patch", "internal/lib/strictyaml", "internal/tool", "internal/tool/file", "internal/tool/exec"}, modules: []string{"github.com/evanw/esbuild/pkg/api"}},
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

// TestArchitectureNamesWhatExists holds the page that explains the tree against it.
func TestArchitectureNamesWhatExists(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for i, part := range strings.Split(string(page), "`") {
		if i%2 == 0 || !strings.Contains(part, "/") || strings.ContainsAny(part, " \n") {
			continue
		}
		named++
		if _, err := os.Stat(filepath.FromSlash(part)); err != nil {
			t.Errorf("docs/architecture.md names %s: %v", part, err)
		}
	}
	if named < 20 {
		t.Errorf("the page names %d files; is it read as it is written?", named)
	}
	rooms, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms {
		if !strings.Contains(string(page), " "+room.Name()+"/") {
			t.Errorf("docs/architecture.md doesn't show internal/%s", room.Name())
		}
	}
}
