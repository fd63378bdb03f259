package belay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layer is what a package may do. Own packages and named modules are listed;
// the standard library is open but for what deny names.
type layer struct {
	floor   int      // 0 is the lowest; what a package imports is below it
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
	".":                            {deny: []string{"os", "net", "net/http", "database/sql", "context"}},
	"event":                        {floor: 1, own: []string{"."}, deny: []string{"os", "net", "net/http", "database/sql", "context"}},
	"client":                       {floor: 2, own: []string{".", "event", "internal/lib/sse"}, modules: []string{"github.com/coder/websocket"}},
	"event/eventtest":              {floor: 2, own: []string{".", "event", "event/testdata"}, modules: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"event/testdata":               {},
	"internal/core/budget":         {floor: 1, own: []string{"."}, deny: impure},
	"internal/core":                {floor: 2, own: []string{".", "event", "internal/model/price"}, deny: impure},
	"internal/model/price":         {floor: 1, own: []string{"."}, deny: impure},
	"internal/core/grant":          {floor: 2, own: []string{".", "event", "internal/core/budget"}, deny: impure},
	"internal/core/window":         {floor: 3, own: []string{".", "event", "internal/model/tokens"}, deny: impure},
	"internal/core/quota":          {floor: 3, own: []string{".", "event", "internal/core", "internal/core/grant"}, deny: impure},
	"internal/core/coretest":       {floor: 3, own: []string{".", "event", "internal/core", "internal/core/grant"}},
	"internal/core/session":        {floor: 3, own: []string{".", "event", "internal/core", "internal/core/grant", "internal/lib/match", "internal/policy"}, deny: impure},
	"internal/core/thread":         {floor: 3, own: []string{".", "event", "internal/core", "internal/core/budget", "internal/core/grant", "internal/lib/match", "internal/policy"}, deny: impure},
	"internal/core/task":           {floor: 3, own: []string{".", "event", "internal/core"}, deny: impure},
	"internal/workspace/protected": {deny: []string{"context", "os", "net", "net/http", "database/sql", "io/fs", "os/exec", "syscall", "log", "log/slog"}},
	"internal/policy/shell":        {floor: 1, own: []string{"internal/lib/match", "internal/workspace/protected"}, modules: []string{"mvdan.cc/sh/v3/syntax"}, deny: impure},
	"internal/policy":              {floor: 2, own: []string{".", "internal/lib/match", "internal/workspace/protected", "internal/policy/shell"}, modules: []string{"cel.dev/cel-go/cel", "cel.dev/cel-go/common/ast", "cel.dev/cel-go/common/operators"}, deny: impure},
	"internal/core/simulate":       {floor: 4, own: []string{".", "event", "internal/core/thread", "internal/lib/match", "internal/policy"}, deny: impure},
	"internal/policy/symlinks":     {floor: 3, own: []string{"internal/lib/files", ".", "internal/policy"}},
	"internal/hook":                {floor: 3, own: []string{"internal/lib/netdial", "internal/policy", "internal/process"}},
	"internal/policy/convert":      {floor: 3, own: []string{".", "internal/lib/match", "internal/policy", "internal/policy/shell"}, modules: []string{"github.com/pelletier/go-toml/v2", "github.com/pelletier/go-toml/v2/unstable"}, deny: impure},
	"internal/config":              {floor: 4, own: []string{"internal/config/agentfile", ".", "event", "internal/config/manifest", "internal/config/rulefile", "internal/config/template", "internal/core/budget", "internal/core/quota", "internal/lib/files", "internal/lib/match", "internal/lib/netdial", "internal/model/catalog", "internal/policy", "internal/process", "internal/secret", "internal/secret/vault", "internal/store", "internal/tool", "internal/tool/file"}},
	"internal/config/rulefile":     {floor: 3, own: []string{".", "internal/lib/match", "internal/lib/strictyaml", "internal/policy"}, modules: []string{"github.com/goccy/go-yaml/ast"}},
	"internal/lib/lru":             {},
	"internal/lib/signals":         {moves: true},
	"internal/lib/keyed":           {},
	"internal/lib/expr":            {modules: []string{"cel.dev/cel-go/cel", "cel.dev/cel-go/common/ast", "cel.dev/cel-go/common/types", "google.golang.org/protobuf/types/known/structpb"}, deny: impure},
	"internal/lib/jcs":             {floor: 1, own: []string{"internal/lib/match"}, modules: []string{"github.com/go-json-experiment/json/jsontext"}, deny: impure},
	"internal/process":             {own: []string{"."}, modules: []string{"github.com/creack/pty", "golang.org/x/sys/unix"}, moves: true},
	"internal/lib/match":           {deny: impure},
	"internal/lib/sse":             {deny: impure},
	"internal/tool/patch":          {deny: impure},
	"internal/workspace/fswalk":    {floor: 2, own: []string{"internal/lib/files"}},
	"internal/view/feed":           {floor: 3, own: []string{".", "event", "internal/store"}},
	"internal/view/feed/feedtest":  {floor: 3, own: []string{".", "event", "internal/store"}},
	"internal/app/read":            {floor: 4, own: []string{".", "event", "internal/app/input", "internal/store", "internal/view", "internal/view/feed", "internal/view/snapshot", "internal/view/story"}},
	"internal/view/story":          {floor: 2, own: []string{".", "event"}, deny: impure},
	"internal/block/markdown":      {floor: 3, own: []string{"internal/view/story"}, modules: []string{"github.com/charmbracelet/x/ansi", "github.com/yuin/goldmark", "github.com/yuin/goldmark/ast", "github.com/yuin/goldmark/renderer/html", "github.com/yuin/goldmark/text"}, deny: []string{"context", "os", "net", "net/http", "database/sql", "io/fs", "os/exec", "syscall", "log", "log/slog"}},
	"internal/block":               {floor: 4, own: []string{".", "event", "internal/block/markdown", "internal/view/story"}, modules: []string{"github.com/aymanbagabas/go-udiff", "github.com/charmbracelet/x/ansi"}, deny: impure},
	"internal/view":                {floor: 3, own: []string{".", "event", "internal/store"}},
	"internal/lib/files":           {floor: 1, own: []string{"."}},
	"internal/transfer/bundle":     {floor: 3, own: []string{".", "event", "internal/lib/files", "internal/secret", "internal/store"}},
	"internal/view/snapshot":       {floor: 3, own: []string{".", "event"}, deny: impure},
	"internal/transfer/transcript": {floor: 1, own: []string{"."}},
	"internal/auth":                {floor: 2, own: []string{".", "internal/lib/files", "internal/lib/match"}},
	"internal/app/input":           {floor: 3, own: []string{".", "internal/lib/jcs", "internal/store"}},
	"internal/app":                 {floor: 5, own: []string{"internal/lib/match", "internal/config/agentfile", ".", "event", "internal/app/input", "internal/app/read", "internal/auth", "internal/config", "internal/config/rulefile", "internal/core", "internal/core/budget", "internal/core/quota", "internal/core/session", "internal/core/task", "internal/core/thread", "internal/core/window", "internal/effect/history", "internal/engine", "internal/model/tokens", "internal/policy", "internal/secret", "internal/store", "internal/tool", "internal/view", "internal/view/story"}},
	"internal/app/approvals":       {floor: 6, own: []string{"internal/lib/files", ".", "event", "internal/app", "internal/app/input", "internal/app/read", "internal/auth", "internal/block", "internal/core/thread", "internal/engine", "internal/policy", "internal/store", "internal/tool", "internal/tool/file", "internal/view"}},
	"internal/app/channels":        {floor: 6, own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/store", "internal/view"}},
	"internal/app/policies":        {floor: 6, own: []string{".", "event", "internal/app", "internal/app/input", "internal/app/read", "internal/auth", "internal/config", "internal/config/rulefile", "internal/core/simulate", "internal/lib/match", "internal/policy", "internal/policy/convert", "internal/policy/shell", "internal/policy/symlinks", "internal/store", "internal/tool", "internal/tool/file", "internal/view"}},
	"internal/app/processes":       {floor: 6, own: []string{".", "event", "internal/app", "internal/app/input", "internal/app/read", "internal/auth", "internal/core/thread", "internal/process", "internal/store", "internal/tool", "internal/tool/exec", "internal/view"}},
	"internal/app/sessions":        {floor: 6, own: []string{".", "event", "internal/app", "internal/app/input", "internal/app/read", "internal/auth", "internal/core/budget", "internal/core/grant", "internal/core/quota", "internal/core/session", "internal/core/task", "internal/core/thread", "internal/effect/history", "internal/model/tokens", "internal/store", "internal/tool", "internal/view", "internal/view/story"}},
	"internal/app/access":          {floor: 6, own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/config", "internal/lib/files", "internal/store", "internal/tool/file"}},
	"internal/mcp":                 {floor: 5, own: []string{".", "event", "internal/config", "internal/config/manifest", "internal/lib/files", "internal/lib/match", "internal/lib/netdial", "internal/process", "internal/secret/vault", "internal/tool", "internal/tool/exec"}, modules: []string{"github.com/modelcontextprotocol/go-sdk/auth", "github.com/modelcontextprotocol/go-sdk/jsonrpc", "github.com/modelcontextprotocol/go-sdk/mcp", "github.com/modelcontextprotocol/go-sdk/oauthex", "golang.org/x/oauth2"}, moves: true},
	"internal/app/agents":          {floor: 6, own: []string{"internal/policy", ".", "event", "internal/app", "internal/app/input", "internal/app/read", "internal/auth", "internal/config", "internal/config/agentfile", "internal/core/session", "internal/store", "internal/view", "internal/model/tokens", "internal/view/story"}},
	"internal/config/agentfile":    {floor: 3, own: []string{"internal/lib/files", ".", "internal/core/budget", "internal/lib/expr", "internal/lib/match", "internal/lib/strictyaml", "internal/policy", "internal/tool"}, modules: []string{"github.com/Masterminds/semver/v3", "github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast"}},
	"internal/app/servers":         {floor: 6, own: []string{"internal/app", "internal/app/input", "internal/app/read", "internal/auth"}},
	"internal/app/transfer":        {floor: 6, own: []string{".", "event", "internal/app", "internal/app/input", "internal/app/read", "internal/auth", "internal/core/session", "internal/core/task", "internal/core/thread", "internal/core/window", "internal/effect/history", "internal/engine", "internal/lib/files", "internal/model/tokens", "internal/policy", "internal/secret", "internal/store", "internal/transfer/bundle", "internal/transfer/transcript", "internal/view/snapshot"}},
	"internal/app/storage":         {floor: 6, own: []string{".", "event", "internal/app", "internal/app/input", "internal/app/read", "internal/auth", "internal/store", "internal/store/retention", "internal/store/sqlite", "internal/store/sqlite/backup", "internal/store/sqlite/verify", "internal/view"}},
	"internal/app/tasks":           {floor: 6, own: []string{".", "event", "internal/app", "internal/app/input", "internal/app/read", "internal/auth", "internal/core/session", "internal/core/task", "internal/lib/match", "internal/model/scripted", "internal/model/tokens", "internal/store", "internal/tool", "internal/view"}},
	"internal/app/turns":           {floor: 6, own: []string{".", "event", "internal/app", "internal/app/input", "internal/auth", "internal/core", "internal/core/session", "internal/core/task", "internal/core/thread", "internal/lib/jcs", "internal/model/scripted", "internal/model/tokens", "internal/store"}},
	"internal/app/host":            {floor: 6, own: []string{"internal/view/story", "internal/auth", "internal/config/agentfile", ".", "event", "internal/app", "internal/app/input", "internal/app/providers", "internal/config", "internal/config/manifest", "internal/config/template", "internal/core", "internal/core/session", "internal/core/thread", "internal/effect", "internal/effect/history", "internal/engine", "internal/lib/files", "internal/lib/lru", "internal/mcp", "internal/model/tokens", "internal/policy", "internal/process", "internal/secret", "internal/secret/vault", "internal/store", "internal/tool", "internal/tool/exec", "internal/view", "internal/workspace/git", "internal/lib/match"}},
	"internal/app/providers":       {floor: 5, own: []string{".", "event", "internal/config", "internal/core", "internal/lib/match", "internal/lib/netdial", "internal/model", "internal/model/anthropic", "internal/model/catalog", "internal/model/google", "internal/model/openai", "internal/model/scripted", "internal/model/tokens", "internal/model/wire", "internal/secret", "internal/lib/lru"}, moves: true},
	"internal/builtin":             {floor: 7, own: []string{"internal/app/agents", ".", "internal/app", "internal/app/access", "internal/app/approvals", "internal/app/channels", "internal/app/host", "internal/app/policies", "internal/app/processes", "internal/app/providers", "internal/app/servers", "internal/app/sessions", "internal/app/storage", "internal/app/tasks", "internal/app/transfer", "internal/app/turns", "internal/config", "internal/core", "internal/core/thread", "internal/effect", "internal/hook", "internal/lib/lru", "internal/process", "internal/sandbox", "internal/secret", "internal/store", "internal/store/sqlite", "internal/tool", "internal/tool/exec", "internal/tool/file", "internal/tool/search", "internal/tool/web", "internal/workspace/git", "internal/workspace/protected"}},
	"internal/server":              {floor: 7, own: []string{".", "client", "event", "internal/app", "internal/app/access", "internal/app/agents", "internal/app/input", "internal/app/read", "internal/auth", "internal/chat/remote", "internal/config/template", "internal/mcpserve", "internal/store", "internal/tool", "internal/view", "internal/view/story"}, modules: []string{"github.com/coder/websocket", "github.com/google/jsonschema-go/jsonschema", "github.com/modelcontextprotocol/go-sdk/mcp"}, moves: true},
	"internal/store/retention":     {floor: 3, own: []string{".", "event", "internal/store"}},
	"internal/store":               {floor: 2, own: []string{".", "event"}},
	"internal/store/storetest":     {floor: 3, own: []string{".", "event", "internal/store"}, modules: []string{"pgregory.net/rapid", "github.com/google/go-cmp/cmp", "github.com/google/go-cmp/cmp/cmpopts"}, moves: true},
	"internal/store/sqlite/layout": {floor: 3, own: []string{".", "event", "internal/lib/files", "internal/store"}, modules: []string{"golang.org/x/sys/unix", "modernc.org/sqlite"}},
	"internal/store/sqlite/verify": {floor: 4, own: []string{".", "event", "internal/lib/files", "internal/store", "internal/store/sqlite/layout"}},
	"internal/store/sqlite/backup": {floor: 5, own: []string{".", "internal/lib/files", "internal/store", "internal/store/sqlite/layout", "internal/store/sqlite/verify"}, modules: []string{"golang.org/x/sys/unix"}},
	"internal/store/sqlite":        {floor: 4, own: []string{".", "event", "internal/lib/files", "internal/store", "internal/store/sqlite/layout"}, modules: []string{"golang.org/x/sys/unix", "modernc.org/sqlite"}, moves: true},
	"internal/model":               {floor: 1, own: []string{"."}},
	"internal/model/modeltest":     {floor: 3, own: []string{".", "internal/lib/netdial", "internal/model", "internal/model/wire"}, modules: []string{"go.uber.org/goleak"}, moves: true},
	"internal/lib/netdial":         {floor: 1, own: []string{"."}},
	"internal/model/wire":          {floor: 2, own: []string{".", "internal/lib/sse", "internal/model", "internal/lib/lru"}},
	"internal/model/openai":        {floor: 3, own: []string{".", "internal/model", "internal/model/wire"}},
	"internal/model/anthropic":     {floor: 3, own: []string{".", "internal/model", "internal/model/wire"}},
	"internal/model/google":        {floor: 3, own: []string{".", "internal/model", "internal/model/wire"}},
	"internal/model/scripted":      {floor: 2, own: []string{".", "internal/model", "internal/lib/strictyaml"}, modules: []string{"github.com/goccy/go-yaml/ast"}},
	"internal/lib/strictyaml":      {floor: 1, own: []string{"."}, modules: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast", "github.com/goccy/go-yaml/lexer", "github.com/goccy/go-yaml/parser", "github.com/goccy/go-yaml/token"}},
	"internal/secret/vault":        {floor: 2, own: []string{".", "internal/lib/files", "internal/secret", "internal/lib/match"}, modules: []string{"filippo.io/age"}},
	"internal/tool":                {floor: 2, own: []string{".", "event", "internal/lib/jcs", "internal/lib/lru", "internal/lib/match", "internal/process", "internal/tool/patch"}, modules: []string{"github.com/google/jsonschema-go/jsonschema"}},
	"internal/tool/tooltest":       {floor: 3, own: []string{".", "event", "internal/tool"}, modules: []string{"github.com/google/jsonschema-go/jsonschema", "github.com/santhosh-tekuri/jsonschema/v6"}, moves: true},
	"internal/tool/file":           {floor: 3, own: []string{"internal/lib/files", ".", "event", "internal/tool/patch", "internal/workspace/protected", "internal/tool", "internal/workspace/fswalk", "internal/lib/match"}, modules: []string{"github.com/aymanbagabas/go-udiff", "golang.org/x/sys/unix"}},
	"internal/tool/exec":           {floor: 4, own: []string{"internal/process", ".", "event", "internal/tool", "internal/tool/file", "internal/secret", "internal/lib/match"}},
	"internal/tool/web":            {floor: 3, own: []string{".", "internal/lib/netdial", "internal/tool"}, modules: []string{"github.com/JohannesKaufmann/html-to-markdown/v2/converter", "github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base", "github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark", "github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table", "github.com/temoto/robotstxt", "golang.org/x/net/html", "golang.org/x/net/html/atom", "golang.org/x/net/html/charset", "golang.org/x/net/idna"}},
	"internal/tool/search":         {floor: 4, own: []string{"internal/lib/files", ".", "internal/workspace/protected", "internal/tool", "internal/tool/file", "internal/workspace/fswalk"}},
	"internal/workspace/git":       {floor: 2, own: []string{"internal/lib/keyed", "internal/lib/files", "internal/process", ".", "internal/lib/match", "internal/workspace/protected"}, modules: []string{"golang.org/x/sys/unix"}, moves: true},
	"internal/sandbox":             {floor: 2, own: []string{".", "internal/lib/files", "internal/lib/netdial", "internal/process", "internal/sandbox/boxinit"}, modules: []string{"golang.org/x/sys/unix"}, moves: true},
	"internal/sandbox/boxinit":     {modules: []string{"golang.org/x/sys/unix"}, moves: true, deny: []string{"net", "net/http", "os/exec"}}, // it runs before all others are initialized
	"internal/secret":              {floor: 1, own: []string{"internal/lib/lazyregexp"}},
	"internal/lib/lazyregexp":      {},
	"internal/screen":              {floor: 1, own: []string{".", "internal/lib/signals"}, modules: []string{"github.com/charmbracelet/ultraviolet", "github.com/charmbracelet/x/ansi", "golang.org/x/term"}, moves: true},
	"internal/testkit/secrets":     {},
	"internal/testkit/needs":       {},
	"internal/testkit/sample":      {},
	"internal/testkit/oddfile":     {moves: true},
	"internal/testkit/tmux":        {floor: 1, own: []string{"internal/testkit/needs"}},
	"internal/testkit/golden":      {modules: []string{"github.com/google/go-cmp/cmp"}},
	"internal/config/manifest":     {floor: 3, own: []string{".", "internal/lib/match", "internal/lib/strictyaml", "internal/secret", "internal/tool"}, modules: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast", "github.com/goccy/go-yaml/parser"}},
	"internal/model/catalog":       {floor: 2, own: []string{".", "internal/lib/match", "internal/lib/strictyaml", "internal/model/price"}, modules: []string{"github.com/goccy/go-yaml/ast"}, deny: impure},
	"internal/model/tokens":        {floor: 2, own: []string{".", "internal/model"}, modules: []string{"github.com/tiktoken-go/tokenizer/codec"}},
	"internal/config/template":     {floor: 2, own: []string{"internal/lib/files", ".", "internal/lib/match", "internal/lib/strictyaml"}, modules: []string{"github.com/goccy/go-yaml", "github.com/goccy/go-yaml/ast"}},
	"internal/testkit/failfs":      {floor: 2, own: []string{"internal/lib/files"}},
	"internal/testkit/memory":      {floor: 3, own: []string{".", "event", "internal/store"}},
	"internal/testkit/many":        {floor: 6, own: []string{".", "event", "internal/core", "internal/engine", "internal/store", "internal/store/sqlite"}},
	"internal/testkit/modelserver": {floor: 4, own: []string{".", "internal/model/modeltest"}},
	"internal/testkit/testsum":     {},
	"internal/testkit/mutants":     {moves: true},
	"internal/eval":                {floor: 3, own: []string{"internal/lib/files", ".", "event", "internal/model/scripted", "internal/lib/strictyaml", "internal/store", "internal/tool", "internal/lib/match"}, modules: []string{"github.com/aymanbagabas/go-udiff", "github.com/goccy/go-yaml/ast"}, moves: true},
	"internal/engine":              {floor: 4, own: []string{".", "event", "internal/core/…", "internal/store", "internal/process", "internal/secret"}, moves: true},
	"internal/effect":              {floor: 5, own: []string{"internal/lib/keyed", "internal/lib/files", ".", "event", "internal/config/agentfile", "internal/lib/expr", "internal/core", "internal/core/quota", "internal/core/thread", "internal/core/window", "internal/effect/history", "internal/engine", "internal/model", "internal/model/tokens", "internal/policy", "internal/policy/symlinks", "internal/process", "internal/secret", "internal/store", "internal/tool", "internal/tool/file", "internal/workspace/fswalk", "internal/workspace/git", "internal/lib/lru"}},
	"internal/effect/history":      {floor: 4, own: []string{".", "event", "internal/core/thread", "internal/core/window", "internal/model", "internal/model/tokens", "internal/secret", "internal/store", "internal/tool", "internal/tool/file", "internal/workspace/git", "internal/lib/lru"}},
	"internal/cli/term":            {floor: 5, own: []string{".", "client", "event", "internal/block", "internal/lib/files", "internal/lib/match", "internal/process", "internal/store", "internal/view", "internal/view/story"}, modules: []string{"github.com/aymanbagabas/go-udiff", "golang.org/x/sys/unix", "golang.org/x/term"}, moves: true},
	"internal/chat":                {floor: 5, own: []string{".", "client", "event", "internal/block", "internal/screen"}, moves: true},
	"internal/chat/local":          {floor: 6, own: []string{".", "client", "internal/app", "internal/app/input", "internal/app/read", "internal/chat", "internal/store", "internal/view/feed"}, moves: true},
	"internal/chat/remote":         {floor: 6, own: []string{".", "client", "internal/app", "internal/chat"}},
	"internal/mcpserve":            {floor: 6, own: []string{".", "event", "internal/app", "internal/auth", "internal/block", "internal/chat", "internal/config/template", "internal/view/story"}, modules: []string{"github.com/modelcontextprotocol/go-sdk/auth", "github.com/modelcontextprotocol/go-sdk/mcp"}, moves: true},
	"internal/cli/command":         {floor: 7, own: []string{"internal/config/agentfile", ".", "client", "event", "internal/app", "internal/app/host", "internal/app/input", "internal/app/providers", "internal/app/read", "internal/auth", "internal/chat", "internal/chat/local", "internal/chat/remote", "internal/cli/term", "internal/config", "internal/config/template", "internal/eval", "internal/lib/files", "internal/model", "internal/model/scripted", "internal/process", "internal/secret", "internal/store", "internal/tool", "internal/view", "internal/view/feed", "internal/view/story"}, modules: []string{"github.com/alecthomas/kong"}},
	"internal/cli/work":            {floor: 8, own: []string{".", "event", "internal/app", "internal/app/agents", "internal/app/host", "internal/app/policies", "internal/app/sessions", "internal/app/tasks", "internal/app/turns", "internal/block", "internal/chat", "internal/cli/command", "internal/cli/term", "internal/config", "internal/config/manifest", "internal/config/template", "internal/lib/files", "internal/model", "internal/model/scripted", "internal/process", "internal/screen", "internal/store", "internal/tool", "internal/view", "internal/workspace/git", "internal/app/approvals"}, moves: true},
	"internal/cli/permission":      {floor: 8, own: []string{".", "event", "internal/app", "internal/app/access", "internal/app/approvals", "internal/app/policies", "internal/app/servers", "internal/auth", "internal/block", "internal/cli/command", "internal/cli/term", "internal/config", "internal/config/rulefile", "internal/lib/files", "internal/lib/match", "internal/mcpserve", "internal/store", "internal/tool/exec", "internal/transfer/bundle", "internal/view", "internal/view/story"}, moves: true},
	"internal/cli/machine":         {floor: 8, own: []string{".", "internal/app", "internal/app/storage", "internal/cli/command", "internal/cli/term", "internal/config", "internal/lib/files", "internal/model", "internal/model/catalog", "internal/model/price", "internal/process", "internal/sandbox", "internal/secret", "internal/secret/vault", "internal/store", "internal/store/retention", "internal/tool/exec", "internal/view", "internal/lib/match"}, moves: true},
	"internal/cli/serve":           {floor: 8, own: []string{".", "internal/app", "internal/app/access", "internal/app/host", "internal/app/read", "internal/app/storage", "internal/auth", "internal/cli/command", "internal/cli/term", "internal/config", "internal/config/template", "internal/lib/files", "internal/server", "internal/store", "internal/view", "internal/view/feed", "web"}, moves: true},
	"internal/cli/sessions":        {floor: 8, own: []string{"internal/config/agentfile", "internal/app/agents", "internal/eval", ".", "client", "event", "internal/app", "internal/app/processes", "internal/app/sessions", "internal/app/tasks", "internal/app/transfer", "internal/app/turns", "internal/auth", "internal/cli/command", "internal/cli/term", "internal/lib/files", "internal/lib/match", "internal/process", "internal/store", "internal/view", "internal/view/story", "internal/workspace/git", "internal/app/approvals", "internal/block"}},
	"internal/cli":                 {floor: 9, own: []string{".", "event", "internal/config/agentfile", "internal/app", "internal/app/host", "internal/builtin", "internal/cli/command", "internal/cli/machine", "internal/cli/permission", "internal/cli/serve", "internal/cli/sessions", "internal/cli/term", "internal/cli/work", "internal/eval", "internal/lib/files", "internal/lib/signals", "internal/lib/match", "internal/model", "internal/process", "internal/sandbox", "internal/store"}, modules: []string{"github.com/alecthomas/kong", "golang.org/x/term"}, moves: true},
	"web":                          {},
	"web/build":                    {modules: []string{"github.com/evanw/esbuild/pkg/api"}},
	"cmd/belay":                    {floor: 10, own: []string{"internal/cli", "internal/sandbox"}},

	// the conformance module: other people's libraries and scenarios
	"conformance/gym":   {floor: 10, own: []string{".", "event", "internal/eval", "internal/tool/patch", "internal/lib/strictyaml", "internal/tool", "internal/tool/file", "internal/tool/exec"}, modules: []string{"github.com/evanw/esbuild/pkg/api"}},
	"conformance/mcp":   {floor: 10, own: []string{".", "event", "internal/auth", "internal/config/manifest", "internal/mcp", "internal/mcpserve", "internal/secret/vault", "internal/tool"}, modules: []string{"github.com/modelcontextprotocol/go-sdk/jsonrpc", "github.com/modelcontextprotocol/go-sdk/mcp"}},
	"conformance/belay": {floor: 11, own: []string{"conformance/gym", "internal/cli", "internal/eval", "internal/sandbox"}},
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

// TestFoldersImportWithoutCircles looks at the folders below internal: where one may
// import from another, that one doesn't import from it, over others neither.
func TestFoldersImportWithoutCircles(t *testing.T) {
	folder := func(pkg string) string {
		rel, below := strings.CutPrefix(pkg, "internal/")
		first, _, _ := strings.Cut(rel, "/")
		if !below || first == "testkit" {
			return ""
		}
		return first
	}
	uses := map[string][]string{}
	for pkg, l := range layers {
		from := folder(pkg)
		for _, o := range l.own {
			if to := folder(o); from != "" && to != "" && to != from && !strings.HasSuffix(pkg, "test") && o != "internal/…" {
				uses[from] = append(uses[from], to)
			}
		}
	}
	var visit func(at string, way []string)
	visit = func(at string, way []string) {
		if i := slices.Index(way, at); i >= 0 {
			t.Fatalf("folders import each other: %s", strings.Join(append(way[i:], at), " > "))
		}
		for _, to := range uses[at] {
			visit(to, append(slices.Clip(way), at))
		}
	}
	for at := range uses {
		visit(at, nil)
	}
	if len(uses) < 15 {
		t.Errorf("%d folders import others; is the table read as it is written?", len(uses))
	}
}

// TestSurfacesReachTheEngineThroughApp: what people and programs talk to, and what
// talks to models, knows engine, deciders, policy and the stores' drivers only by what
// internal/app says of them.
func TestSurfacesReachTheEngineThroughApp(t *testing.T) {
	surface := regexp.MustCompile(`^(client|internal/(cli|server|model)(/.*)?)$`)
	behind := regexp.MustCompile(`^internal/(engine|effect|core|policy|store/sqlite)(/.*)?$`)
	n := 0
	for pkg, l := range layers {
		if !surface.MatchString(pkg) {
			continue
		}
		n++
		if i := slices.IndexFunc(l.own, behind.MatchString); i >= 0 {
			t.Errorf("%s may import %s", pkg, l.own[i])
		}
	}
	if n < 12 {
		t.Errorf("%d surfaces; is the table read as it is written?", n)
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
		rel := path.Clean("./" + strings.TrimPrefix(strings.TrimPrefix(name, module), "/"))
		if below, own := layers[rel]; own && below.floor >= l.floor {
			t.Errorf("%s is on floor %d and imports %s of floor %d", file, l.floor, rel, below.floor)
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
