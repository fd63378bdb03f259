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
	changed atomic.Bool // its list of tools changed since it was read

	mu      sync.Mutex
	calls   int // that wait for it
	used    time.Time
	defs    []Definition
	refused []Refused
	reports map[string]func(tool.Progress) // of calls that wait, by their progress token

	exchanges []named // requests for tools that it works on, the oldest first

	ended    chan struct{} // closed when it is to end
	endOnce  sync.Once
	whyEnded string
	stop     func()        // gives up what waits for an answer
	gone     chan struct{} // closed when it has ended
	fell     chan struct{} // closed when all that its program said was read to its end
}

var _ tool.Server = (*connection)(nil)

// connect starts a server for a call, in the call's boundary, and greets it. An error
// means that nothing of it is left.
func connect(ctx context.Context, s *manifest.Server, environ []string, c tool.Call) (*connection, error) {
	n := &connection{server: s, call: c, errs: &errorOutput{}, used: time.Now(), reports: map[string]func(tool.Progress){}, ended: make(chan struct{}), gone: make(chan struct{}), fell: make(chan struct{})}
	transport, err := n.transport(ctx, environ)
	if err != nil {
		return nil, err
	}
	alive, stop := context.WithCancel(context.WithoutCancel(ctx)) // a stream of answers lasts as long as this
	n.stop = stop
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	defer context.AfterFunc(ctx, stop)()
	if n.client, err = n.newClient().Connect(alive, transport, nil); err == nil {
		err = n.list(ctx)
	}
	if err != nil {
		said := n.failure(ctx, err)
		n.finish("failed")
		return nil, said
	}
	n.call.Sink.Fact(event.ChannelConnected{Transport: n.way(), Peer: "tool_server", Protocol: "mcp", Account: s.Name, Capabilities: n.capabilities()})
	return n, nil
}

// newClient is this program as its server sees it.
func (n *connection) newClient() *sdk.Client {
	// Roots are deprecated as of protocol 2026-07-28; servers of older ones ask for them.
	client := sdk.NewClient(&sdk.Implementation{Name: "belay", Title: "Belay", Version: "1"}, &sdk.ClientOptions{
		//lint:ignore SA1019 as above
		Capabilities:           &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}, Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}},
		ElicitationHandler:     n.elicit,
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true}, // a person's answer may come after this process
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { n.changed.Store(true) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			n.progress(r.Params)
		},
	})
	//lint:ignore SA1019 as above
	client.AddRoots(n.root())
	return client
}

// root is the workspace, the only folder that a server is told of.
//
//lint:ignore SA1019 as above
func (n *connection) root() *sdk.Root {
	//lint:ignore SA1019 as above
	return &sdk.Root{URI: (&url.URL{Scheme: "file", Path: n.call.Dir}).String(), Name: "workspace"}
}

// transport starts the program, or is the way to the server.
func (n *connection) transport(ctx context.Context, environ []string) (sdk.Transport, error) {
	if n.server.Remote() {
		r, t, err := newRemote(n.server)
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
	out, in := io.Pipe()
	n.proc, err = exec.Launch(ctx, n.call, process.Command{
		Argv: append([]string{s.Command}, s.Args...), Dir: dir, Env: exec.Named(environ, passed, s.Env, dir),
		Open: true, Output: &lines{messages: in, others: n.errs}, Errors: n.errs, Grace: endGrace, Linger: endGrace / 2,
	}, s.Name)
	if err != nil {
		n.discard()
		return nil, err
	}
	go func() {
		<-n.proc.Done()
		in.Close()
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

// list reads the server's tools.
func (n *connection) list(ctx context.Context) error {
	n.changed.Store(false)
	var defs []Definition
	var refused []Refused
	if r := n.client.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Tools == nil {
		return nil
	}
	seen, size := map[string]bool{}, 0
	for t, err := range n.client.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if len(defs)+len(refused) >= MaxTools {
			return tool.Failf(tool.Conflict, CodeTooMany, "MCP server %s has more than %d tools", n.server.Name, MaxTools)
		}
		d, why := readDefinition(t)
		name := ToolName(n.server.Name, d.Name)
		if why == "" && seen[name] {
			why = "another tool of the server has the same name"
		}
		if why == "" {
			size += len(d.Input) + len(d.Output) + len(d.Description)
		}
		if why == "" && size > maxList {
			why = fmt.Sprintf("the definitions of the server together have more than %d bytes", maxList)
		}
		if why != "" {
			refused = append(refused, Refused{event.CutText(visible(d.Name), maxName), event.CutText(visible(why), 300)})
			continue
		}
		seen[name] = true
		defs = append(defs, d)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.defs, n.refused = defs, refused
	return nil
}

// definitions are the tools that it had when they were read last.
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
	case n.remote != nil && n.remote.refused.Load():
		e = tool.Failf(tool.Denied, CodeNeedsLogin, "MCP server %s wants an authorization that it isn't given", name).
			WithHint("headers: {Authorization: Bearer secret:NAME} in the file that describes it, after belay secret set NAME")
		return e
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
			if time.Since(n.idleSince()) >= idle {
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
