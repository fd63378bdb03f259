package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
)

// Times of a server.
const (
	startTime   = 30 * time.Second // until it has answered the first message
	defaultTime = 60 * time.Second // of a call
	defaultIdle = 10 * time.Minute
	endGrace    = time.Second // from TERM to KILL
)

func timeoutOf(s *manifest.Server) time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return defaultTime
}

// connection is a server that answers: a program of one session, or the way to one
// elsewhere. The call that starts it leaves it to its thread, which keeps it.
type connection struct {
	server  *manifest.Server
	call    tool.Call        // that started it
	proc    *process.Process // nil: it is reached over the network
	remote  *remote          // nil: it is a program
	errs    *errorOutput
	kept    tool.OutputWriter // of errs; nil: they aren't kept
	client  *sdk.ClientSession
	changed atomic.Bool // its tools or prompts changed since they were read

	mu      sync.Mutex
	calls   int // that use it: the one that starts it, to begin with
	used    time.Time
	defs    []Definition
	refused []Refused
	reports map[string]func(tool.Progress) // of calls that wait, by their progress token

	seen    func()         // called when the tools, prompts or resources were read again; may be nil
	rereads int            // because it said that something changed
	reading sync.WaitGroup // of them

	exchanges []named // requests for tools that it works on, the oldest first

	ended    chan struct{} // closed when it is to end
	endOnce  sync.Once
	whyEnded string
	alive    context.Context // of what waits for an answer
	stop     func()          // gives that up
	gone     chan struct{}   // closed when it has ended
	fell     chan struct{}   // closed when all that its program said was read to its end
}

var _ tool.Server = (*connection)(nil)

// surroundings are what a server is started with, or reached with.
type surroundings struct {
	environ []string
	grants  *Grants // nil: nothing is known of logins
}

func newConnection(s *manifest.Server, c tool.Call) *connection {
	return &connection{server: s, call: c, errs: &errorOutput{}, calls: 1, used: time.Now(), reports: map[string]func(tool.Progress){}, ended: make(chan struct{}), gone: make(chan struct{}), fell: make(chan struct{})}
}

// connect starts a server for a call, in the call's boundary, and greets it. An error
// means that nothing of it is left.
func connect(ctx context.Context, s *manifest.Server, in surroundings, c tool.Call) (*connection, error) {
	n := newConnection(s, c)
	if err := n.open(ctx, in); err != nil {
		return nil, err
	}
	return n, nil
}

// open is connect for a connection.
func (n *connection) open(ctx context.Context, in surroundings) error {
	transport, err := n.transport(ctx, in)
	if err != nil {
		return err
	}
	alive, stop := context.WithCancel(context.WithoutCancel(ctx)) // a stream of answers lasts as long as this
	n.alive, n.stop = alive, stop
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	defer context.AfterFunc(ctx, stop)()
	if n.client, err = n.newClient().Connect(alive, transport, nil); err == nil {
		err = n.list(ctx)
	}
	if err != nil {
		said := n.failure(ctx, err)
		n.finish("failed")
		return said
	}
	n.call.Sink.Fact(event.ChannelConnected{Transport: n.way(), Peer: "tool_server", Protocol: "mcp", Account: n.server.Name, Capabilities: n.capabilities()})
	return nil
}

// newClient is this program as its server sees it.
func (n *connection) newClient() *sdk.Client {
	// Roots are deprecated as of protocol 2026-07-28; servers of older ones ask for them.
	o := &sdk.ClientOptions{
		//lint:ignore SA1019 as above
		Capabilities:       &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}, Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}},
		ElicitationHandler: n.elicit,
		MultiRoundTrip:     &sdk.MultiRoundTripOptions{Disabled: true}, // a person's answer may come after this process
		// What changed counts from the next turn on.
		ToolListChangedHandler:   func(context.Context, *sdk.ToolListChangedRequest) { n.changes() },
		PromptListChangedHandler: func(context.Context, *sdk.PromptListChangedRequest) { n.changes() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			n.progress(r.Params)
		},
	}
	if mayUseModel(n.server) {
		//lint:ignore SA1019 as above
		o.CreateMessageWithToolsHandler, o.Capabilities.Sampling = n.sampling, &sdk.SamplingCapabilities{}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "belay", Title: "Belay", Version: "1"}, o)
	//lint:ignore SA1019 as above
	client.AddRoots(n.root())
	client.AddReceivingMiddleware(answersAll)
	return client
}

// answersAll has a request or a notification that the library can't handle answered with
// an error: one without what it has to say would end this program.
func answersAll(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, q sdk.Request) (r sdk.Result, err error) {
		defer func() {
			if recover() != nil {
				r, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: method + " can't be read"}
			}
		}()
		return next(ctx, method, q)
	}
}

// root is the workspace, the only root of each server.
//
//lint:ignore SA1019 as above
func (n *connection) root() *sdk.Root {
	//lint:ignore SA1019 as above
	return &sdk.Root{URI: (&url.URL{Scheme: "file", Path: n.call.Dir}).String(), Name: "workspace"}
}

// transport starts the program, or is the way to the server.
func (n *connection) transport(ctx context.Context, in surroundings) (sdk.Transport, error) {
	if n.server.Remote() {
		r, t, err := newRemote(n.server, in.grants)
		if err != nil {
			return nil, tool.Failf(tool.Internal, CodeUnavailable, "MCP server %s: %v", n.server.Name, err)
		}
		n.remote = r
		return t, nil
	}
	s, dir := n.server, n.server.Cwd
	if dir == "" {
		dir = n.call.Dir
	}
	var err error
	if n.kept, err = n.call.Sink.Output("text/plain"); err == nil {
		n.errs.to = n.kept
	}
	out, messages := io.Pipe()
	n.proc, err = exec.Launch(ctx, n.call, process.Command{
		Argv: append([]string{s.Command}, s.Args...), Dir: dir, Env: exec.Named(in.environ, passed, s.Env, dir),
		Open: true, Output: &lines{messages: messages, others: n.errs}, Errors: n.errs, Grace: endGrace, Linger: endGrace / 2,
	}, s.Name)
	if err != nil {
		n.discard()
		return nil, err
	}
	go func() {
		<-n.proc.Done()
		messages.Close()
	}()
	return &sdk.IOTransport{Reader: &endNoted{PipeReader: out, end: n.fell}, Writer: input{n.proc}}, nil
}

// passed are the runtime's variables that a server gets besides those it is given.
var passed = []string{"HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL"}

func (n *connection) way() string {
	switch n.server.Type {
	case "http":
		return "http_json"
	case "sse":
		return "sse"
	}
	return "stdio"
}

func (n *connection) capabilities() (all []string) {
	r := n.client.InitializeResult()
	if r == nil || r.Capabilities == nil {
		return nil
	}
	b, err := json.Marshal(r.Capabilities)
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal(b, &fields) != nil {
		return nil
	}
	for _, name := range []string{"tools", "resources", "prompts", "completions", "logging"} {
		if _, has := fields[name]; has {
			all = append(all, name)
		}
	}
	return all
}

// list reads the server's tools and prompts, and whether it has resources.
func (n *connection) list(ctx context.Context) error {
	n.changed.Store(false)
	r := n.client.InitializeResult()
	if r == nil || r.Capabilities == nil {
		return nil
	}
	l := listing{server: n.server.Name, seen: map[string]bool{}}
	if r.Capabilities.Resources != nil {
		for _, d := range resourceTools() {
			l.add(d, "")
		}
	}
	if r.Capabilities.Tools != nil {
		for t, err := range n.client.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			if err := l.add(readDefinition(t)); err != nil {
				return err
			}
		}
	}
	if r.Capabilities.Prompts != nil {
		for p, err := range n.client.Prompts(ctx, nil) {
			if unknownMethod(err) {
				break
			}
			if err != nil {
				return err
			}
			if err := l.add(readPrompt(p)); err != nil {
				return err
			}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.defs, n.refused = l.defs, l.refused
	return nil
}

// maxRereads bounds how often a server has its client read what it has while no call
// waits for it; the next call reads it in any case.
const maxRereads = 20

// changes notes that the server says that something changed, and reads it: the next turn
// may begin without a call of the server.
func (n *connection) changes() {
	n.changed.Store(true)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil || n.rereads >= maxRereads {
		return
	}
	n.rereads++
	n.reading.Go(func() {
		ctx, cancel := context.WithTimeout(n.alive, startTime)
		defer cancel()
		n.again(ctx) //nolint:errcheck // the next call meets it
	})
}

// again reads what the server has, if that changed.
func (n *connection) again(ctx context.Context) error {
	if !n.changed.Load() {
		return nil
	}
	if err := n.list(ctx); err != nil {
		n.changed.Store(true)
		return err
	}
	n.mu.Lock()
	seen := n.seen
	n.mu.Unlock()
	if seen != nil {
		seen()
	}
	return nil
}

// listing is what a server defines, while it is read.
type listing struct {
	server  string
	seen    map[string]bool
	size    int
	defs    []Definition
	refused []Refused
}

// add takes a definition. why is what makes it unusable.
func (l *listing) add(d Definition, why string) error {
	if len(l.defs)+len(l.refused) >= MaxTools {
		return tool.Failf(tool.Conflict, CodeTooMany, "MCP server %s has more than %d tools and prompts", l.server, MaxTools)
	}
	name := ToolName(l.server, d.Name)
	if d.Kind == kindPrompt {
		name = kindPrompt + " " + d.Name
	}
	if why == "" && l.seen[name] {
		why = "another one of the server has the same name"
	}
	if why == "" {
		l.size += len(d.Input) + len(d.Output) + len(d.Description)
	}
	if why == "" && l.size > maxList {
		why = fmt.Sprintf("the definitions of the server together have more than %d bytes", maxList)
	}
	if why != "" {
		l.refused = append(l.refused, Refused{event.CutText(visible(d.Name), maxName), event.CutText(visible(why), 300)})
		return nil
	}
	l.seen[name] = true
	l.defs = append(l.defs, d)
	return nil
}

// definitions are what it had when that was read last.
func (n *connection) definitions() []Definition {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.defs
}

// progress passes what a server says of a call on to the call.
func (n *connection) progress(p *sdk.ProgressNotificationParams) {
	n.mu.Lock()
	report := n.reports[fmt.Sprint(p.ProgressToken)]
	n.mu.Unlock()
	if report == nil {
		return
	}
	report(tool.Progress{Done: int64(p.Progress), Total: int64(p.Total), Text: event.CutText(visible(p.Message), 500)})
}

// failure says why a server can't be used.
func (n *connection) failure(ctx context.Context, err error) error {
	if told, ok := errors.AsType[*tool.Error](err); ok {
		return told
	}
	name := n.server.Name
	e := tool.Failf(tool.Internal, CodeProtocol, "MCP server %s doesn't speak the protocol: %s", name, event.CutText(visible(err.Error()), 1000))
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err()
	case n.remote != nil && n.remote.refusal.Load() != nil:
		return n.remote.needs(name)
	case n.remote != nil && ctx.Err() == nil:
		e = tool.Failf(tool.Transient, CodeUnreached, "MCP server %s can't be reached: %s", name, event.CutText(visible(err.Error()), 500))
	case n.proc != nil && n.exited():
		e = tool.Failf(tool.Internal, CodeEnded, "MCP server %s ended before it answered, with exit %d", name, n.proc.Exit().Code)
	case ctx.Err() != nil:
		e = tool.Failf(tool.Timeout, CodeSilent, "MCP server %s gave no answer within %s", name, startTime)
	}
	e.Text = n.errs.tail()
	return e.WithHint("belay mcp test %s shows what it prints and what its boundary stopped", name)
}

// exited reports whether its program ended by itself, which may be known a moment
// after a message couldn't be sent to it.
func (n *connection) exited() bool {
	select {
	case <-n.fell:
		return true
	case <-time.After(endGrace):
		return false
	}
}

// Error codes of servers.
const (
	CodeProtocol    = "MCP_PROTOCOL"    // what it answers isn't the protocol
	CodeEnded       = "MCP_ENDED"       // it ended
	CodeSilent      = "MCP_SILENT"      // it gave no answer
	CodeTooMany     = "MCP_TOO_MANY"    // it has more than can be taken
	CodeLimit       = "MCP_LIMIT"       // too many servers run
	CodeUnavailable = "MCP_UNAVAILABLE" // it ended too often, or can't be used
	CodeChanged     = "TOOL_CHANGED"    // a definition isn't the one that was accepted
	CodeToolFailed  = "MCP_TOOL_FAILED" // the tool says that it failed
	CodeRefused     = "MCP_REFUSED"     // the server refuses the request
	CodeNeedsLogin  = "MCP_NEEDS_LOGIN" // it wants an authorization
	CodeUnreached   = "MCP_UNREACHED"   // it can't be reached
)

// ID is the id it is recorded under.
func (n *connection) ID() belay.ProcessID { return n.call.Process }

// Serves is its name.
func (n *connection) Serves() string { return n.server.Name }

// Send gives it nothing: its input belongs to the protocol.
func (n *connection) Send(string, bool) (int, error) { return 0, process.ErrNoInput }

// Keep sees it to its end, which comes when nothing has used it for a while.
func (n *connection) Keep(ctx context.Context, why func() string) event.Payload {
	idle := n.server.Idle
	if idle <= 0 {
		idle = defaultIdle
	}
	for {
		look := time.NewTimer(max(time.Until(n.idleSince().Add(idle)), time.Millisecond))
		select {
		case <-ctx.Done():
			look.Stop()
			return n.finish(why())
		case <-n.ended:
			look.Stop()
			return n.finish(n.whyEnded)
		case <-n.exits():
			look.Stop()
			return n.finish("closed")
		case <-look.C:
			if time.Since(n.idleSince()) >= idle && n.endIdle("idle") {
				return n.finish("idle")
			}
		}
	}
}

// exits is closed when its program has ended.
func (n *connection) exits() <-chan struct{} {
	if n.proc == nil {
		return nil
	}
	return n.proc.Done()
}

// idleSince is when it was used last; now, while a call waits for it.
func (n *connection) idleSince() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls > 0 || len(n.exchanges) > 0 {
		return time.Now()
	}
	return n.used
}

// end asks whoever keeps it to end it.
func (n *connection) end(why string) {
	n.endOnce.Do(func() {
		n.whyEnded = why
		close(n.ended)
	})
}

// over reports whether it has ended, or is about to.
func (n *connection) over() bool {
	select {
	case <-n.ended:
		return true
	case <-n.gone:
		return true
	case <-n.exits():
		return true
	default:
		return false
	}
}

// finish ends it with all it started and returns the fact of its end.
func (n *connection) finish(why string) event.Payload {
	defer n.reading.Wait()
	defer n.stop()
	n.end(why)
	left := event.ChannelDisconnected{Reason: why, LastSeen: n.idleSince()}
	if n.client != nil {
		n.part()
		if n.proc != nil {
			n.call.Sink.Fact(left)
		}
	}
	if n.proc == nil {
		close(n.gone)
		return left
	}
	n.proc.Stop(why)
	<-n.proc.Done()
	var v *event.SandboxViolation
	if n.call.Box != nil {
		if v = n.call.Box.Stopped(n.proc.Exit(), n.errs.tail(), n.call.Dir); v != nil {
			n.call.Sink.Fact(*v)
		}
	}
	ended := exec.Ended(n.proc.Exit(), 0, n.keepErrors(), v)
	if n.client == nil {
		n.call.Sink.Fact(ended)
	}
	close(n.gone)
	return ended
}

// part says good-bye, which a server may not hear.
func (n *connection) part() {
	said := make(chan struct{})
	go func() {
		defer close(said)
		n.client.Close() //nolint:errcheck // it ends in any case
	}()
	select {
	case <-said:
	case <-time.After(endGrace):
	}
}

// keepErrors keeps what it printed besides its messages; nil: nothing.
func (n *connection) keepErrors() *belay.Ref {
	defer n.discard()
	if n.kept == nil || n.errs.n == 0 {
		return nil
	}
	ref, err := n.kept.Commit()
	if err != nil {
		return nil // it is missing where it is read
	}
	return &ref
}

func (n *connection) discard() {
	if n.kept != nil {
		n.kept.Close() //nolint:errcheck // what was committed stays
		n.kept = nil
	}
}
