package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/tool"
)

// serverTool is a tool of a server, as it was accepted.
type serverTool struct {
	pool   *Pool
	server *manifest.Server
	def    Definition
	spec   tool.Spec
}

// Tools are the tools that a server offers, by the definitions that were accepted.
func (p *Pool) Tools(s *manifest.Server, accepted []Definition) (all []tool.Tool) {
	for _, d := range accepted {
		if d.Kind != kindPrompt && chosen(s.Tools, d.Name) {
			all = append(all, &serverTool{pool: p, server: s, def: d, spec: d.Spec(s)})
		}
	}
	return all
}

// Spec implements tool.Tool.
func (t *serverTool) Spec() tool.Spec { return t.spec }

// Run starts the session's server, if it doesn't run, and calls its tool.
func (t *serverTool) Run(ctx context.Context, c tool.Call) (r tool.Result, err error) {
	n, started, err := t.pool.connect(ctx, t.server, c)
	if err != nil {
		return tool.Result{}, err
	}
	defer n.release()
	r, err = t.call(ctx, n, c)
	if started {
		r.Left = n
	}
	return r, err
}

// call is one request of the server.
func (t *serverTool) call(ctx context.Context, n *connection, c tool.Call) (tool.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeoutOf(t.server), errTime)
	defer cancel()
	ctx = context.WithValue(ctx, ownRefusal{}, new(atomic.Bool))
	token := n.begin(c)
	defer n.done(token)
	if err := n.again(ctx); err != nil {
		return tool.Result{}, t.failure(ctx, n, err)
	}
	if err := t.same(n); err != nil {
		return tool.Result{}, err
	}
	if c.Attempt > maxRounds {
		return tool.Result{}, tool.Failf(tool.Internal, CodeProtocol, "MCP server %s asked %d questions for one call", t.server.Name, maxRounds)
	}
	var x *exchange
	if c.Input != nil && c.Input.State == nil {
		var q *question
		if x, q = n.takeOver(c.ID); x == nil {
			return tool.Result{}, t.gone()
		}
		a, err := answered(q.params, c.Input)
		if err != nil {
			x.cancel()
			return tool.Result{}, err
		}
		q.answer <- a
	} else {
		var r round
		if c.Input != nil {
			if err := json.Unmarshal(c.Input.State, &r); err != nil {
				return tool.Result{}, err
			}
			if err := t.next(n, &r, c.Input); err != nil {
				return tool.Result{}, err
			}
		}
		ask, err := t.request(c)
		if err != nil {
			return tool.Result{}, err
		}
		x = n.exchange(ctx, c.ID, func(ctx context.Context) (*sdk.CallToolResult, error) { return ask(ctx, n, token, r) })
	}
	select {
	case q := <-x.asks:
		n.hold(x, q)
		return tool.Result{}, t.needs(q.params, nil)
	case <-ctx.Done():
		x.cancel()
		<-x.ended
	case <-x.ended:
	}
	if x.err != nil {
		return tool.Result{}, t.failure(ctx, n, x.err)
	}
	if x.result.InputRequests == nil && !x.result.NeedsInput() {
		return t.result(c, x.result)
	}
	return t.round(ctx, n, c, x.result)
}

// round is what a server asks between two requests of a call. What no person has to
// answer is answered at once.
func (t *serverTool) round(ctx context.Context, n *connection, c tool.Call, got *sdk.CallToolResult) (tool.Result, error) {
	r := &round{Requests: got.InputRequests, State: got.RequestState}
	if err := t.next(n, r, nil); err != nil {
		return tool.Result{}, err
	}
	state, err := json.Marshal(r)
	if err != nil {
		return tool.Result{}, err
	}
	c.Attempt++
	c.Input = &tool.Input{State: state}
	return t.call(ctx, n, c)
}

var errTime = errors.New("the server's time is up")

// same reports an error if the server's tool isn't the one that was accepted.
func (t *serverTool) same(n *connection) error {
	if n.has(&t.def) {
		return nil
	}
	return tool.Failf(tool.Conflict, CodeChanged, "MCP server %s has changed or taken away its tool %s since it was accepted; it was not run", t.server.Name, visible(t.def.Name)).
		WithHint("do without it; a person accepts the change with belay mcp trust %s", t.server.Name)
}

// has reports whether the server defines something as it is defined here.
func (n *connection) has(is *Definition) bool {
	return slices.ContainsFunc(n.definitions(), func(d Definition) bool {
		return d.Kind == is.Kind && d.Name == is.Name && d.Digest() == is.Digest()
	})
}

// begin returns the token that the server names in reports of a call's progress.
func (n *connection) begin(c tool.Call) (token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	token = string(c.ID) // a person may answer between two attempts
	n.reports[token] = c.Sink.Progress
	return token
}

func (n *connection) done(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.reports, token)
}

// failure is the error of a call without a result. If the server may have done the
// work, the outcome is unknown, unless repeating the call is harmless.
func (t *serverTool) failure(ctx context.Context, n *connection, err error) error {
	name := t.spec.Name
	if told, ok := errors.AsType[*tool.Error](err); ok {
		return told
	}
	if errors.Is(context.Cause(ctx), errTime) {
		return tool.Failf(tool.Timeout, CodeSilent, "%s gave no answer within %s; the server was told to stop", name, timeoutOf(t.server)).
			WithHint("look at what is there before you decide to run it again")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if refused := refusal(name, err); refused != nil {
		return refused
	}
	class, ending := t.unknown()
	if n.remote != nil && n.remote.refusal.Load() != nil {
		n.end("refused")
		e := n.remote.needs(t.server.Name)
		if own, ok := ctx.Value(ownRefusal{}).(*atomic.Bool); !ok || !own.Load() {
			e.Class, e.Message = class, e.Message+ending
		}
		return e
	}
	n.end("failed") // what comes after an answer that can't be read isn't known
	e := tool.Failf(class, CodeProtocol, "%s: what the server answered can't be read: %s%s", name, event.CutText(visible(err.Error()), 500), ending)
	if n.proc != nil && n.exited() {
		e = tool.Failf(class, CodeEnded, "MCP server %s ended during the call%s", t.server.Name, ending)
	}
	e.Text = n.errs.tail()
	return e.WithHint("look at what is there before you decide to run it again")
}

// resourceNotFound is the code of older protocols.
const resourceNotFound = -32002

// refusal is what a server said in place of an answer; nil: it said nothing.
func refusal(name string, err error) error {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return nil
	}
	class := tool.Internal
	switch refused.Code {
	case jsonrpc.CodeInvalidParams:
		class = tool.BadArguments
	case jsonrpc.CodeMethodNotFound, resourceNotFound:
		class = tool.NotFound
	}
	return tool.Failf(class, CodeRefused, "%s: %s", name, event.CutText(visible(refused.Message), 2000))
}

// refusal is why a request outside of sessions failed.
func (n *connection) refusal(ctx context.Context, err error) error {
	if refused := refusal("MCP server "+n.server.Name, err); refused != nil {
		return refused
	}
	return n.failure(ctx, err)
}

// unknownMethod reports whether the server doesn't know a request.
func unknownMethod(err error) bool {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && refused.Code == jsonrpc.CodeMethodNotFound
}
