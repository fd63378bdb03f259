package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// exchange is a request of a call that a server works on. Servers of older protocols
// ask while they work: the exchange stays open while a person answers, and the attempt
// that has the answer takes it over.
type exchange struct {
	asks   chan *question
	ended  chan struct{} // closed when there is a result
	result *sdk.CallToolResult
	err    error
	cancel context.CancelFunc
	held   *question // that a person answers; nil: none
	holds  int       // effects that wait with it
}

// question is what a server asks while it works.
type question struct {
	params sdk.InputRequest
	answer chan sdk.InputResponse // takes one; nil: there is none
}

// Bounds of questions.
const (
	maxRounds = 16               // questions of a call
	takeOver  = 10 * time.Second // that an exchange waits for an attempt after its question was closed
)

// exchange begins a request. It lasts until it is cancelled, or the connection ends.
func (n *connection) exchange(ctx context.Context, id belay.CallID, ask func(context.Context) (*sdk.CallToolResult, error)) *exchange {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x := &exchange{asks: make(chan *question), ended: make(chan struct{}), cancel: cancel}
	n.mu.Lock()
	n.exchanges = append(n.exchanges, named{id, x})
	n.mu.Unlock()
	go func() {
		defer cancel()
		x.result, x.err = ask(ctx)
		n.mu.Lock()
		n.exchanges = slices.DeleteFunc(n.exchanges, func(o named) bool { return o.exchange == x })
		n.mu.Unlock()
		close(x.ended)
	}()
	return x
}

// named is an exchange and its call.
type named struct {
	call belay.CallID
	*exchange
}

// waiting is the exchange of a call whose question a person answers; nil: there is none.
func (n *connection) waiting(id belay.CallID) *exchange {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.exchanges {
		if o.call == id {
			return o.exchange
		}
	}
	return nil
}

// elicit hands a server's question to the call that it is about: the newest one. A server
// that asks outside of a call gets a cancellation.
func (n *connection) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	a, err := n.asks(ctx, r.Params)
	if got, ok := a.(*sdk.ElicitResult); ok {
		return got, err
	}
	return &sdk.ElicitResult{Action: "cancel"}, err
}

// asks has the call answer that a server's question is about. nil: nothing answers it.
func (n *connection) asks(ctx context.Context, params sdk.InputRequest) (sdk.InputResponse, error) {
	n.mu.Lock()
	var x *exchange
	if len(n.exchanges) > 0 {
		x = n.exchanges[len(n.exchanges)-1].exchange
	}
	n.mu.Unlock()
	if x == nil {
		return nil, nil
	}
	q := &question{params: params, answer: make(chan sdk.InputResponse, 1)}
	select {
	case x.asks <- q:
	case <-x.ended:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-q.answer:
		return a, nil
	case <-x.ended:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// round is what a call has to bring to its server when a person has answered: kept as
// the state of the question.
type round struct {
	Requests  sdk.InputRequestMap  `json:"requests,omitempty"` // that have no answer yet, the one that is asked among them
	Responses sdk.InputResponseMap `json:"responses,omitempty"`
	Asked     string               `json:"asked,omitempty"` // the request that a person answers
	State     string               `json:"state,omitempty"`
}

// answered is the answer to what a server asked, as servers read it; nil: it gets none.
func answered(to sdk.InputRequest, in *tool.Input) (sdk.InputResponse, error) {
	if _, ok := to.(*sdk.ElicitParams); !ok {
		return sampled(in.Answer), nil
	}
	a := &sdk.ElicitResult{Action: in.Action}
	if in.Action == "accept" && len(in.Content) > 0 {
		if err := json.Unmarshal(in.Content, &a.Content); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// next puts what a person answered, and what needs none, into a round. The error is a
// *tool.NeedsInput while there is more to ask.
func (t *serverTool) next(n *connection, r *round, in *tool.Input) error {
	if r.Responses == nil {
		r.Responses = sdk.InputResponseMap{}
	}
	if r.Asked != "" {
		a, err := answered(r.Requests[r.Asked], in)
		if err != nil {
			return err
		}
		if a == nil {
			return t.unsampled()
		}
		r.Responses[r.Asked] = a
		delete(r.Requests, r.Asked)
		r.Asked = ""
	}
	for _, key := range slices.Sorted(maps.Keys(r.Requests)) {
		q := r.Requests[key]
		switch q.(type) {
		case *sdk.ElicitParams:
		//lint:ignore SA1019 as above
		case *sdk.CreateMessageWithToolsParams:
			if !t.mayUseModel() {
				return t.refused(q)
			}
		//lint:ignore SA1019 servers may still ask
		case *sdk.ListRootsParams:
			//lint:ignore SA1019 as above
			r.Responses[key] = &sdk.ListRootsResult{Roots: []*sdk.Root{n.root()}}
			delete(r.Requests, key)
			continue
		default:
			return t.refused(q)
		}
		r.Asked = key
		state, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return t.needs(q, state)
	}
	return nil
}

// refused is the end of a call whose server asks what its settings don't give it.
func (t *serverTool) refused(q sdk.InputRequest) error {
	return tool.Failf(tool.Internal, CodeRefused, "MCP server %s asks for what it may not have: %T", t.server.Name, q)
}

// needs is a server's question to a person. state is nil where the server waits.
func (t *serverTool) needs(of sdk.InputRequest, state []byte) error {
	q, ok := of.(*sdk.ElicitParams)
	if ok && q == nil {
		return t.refused(of)
	}
	if !ok {
		return t.needsModel(of, state)
	}
	e := &tool.NeedsInput{FormAsked: event.FormAsked{Server: t.server.Name, URL: q.URL}, State: state}
	if q.RequestedSchema != nil {
		raw, err := json.Marshal(q.RequestedSchema)
		if err != nil {
			return err
		}
		e.Schema = raw
	}
	e.Text = fmt.Sprintf("MCP server %s asks: %s", t.server.Name, visible(q.Message))
	if q.URL != "" {
		e.Text += "\nIt wants you to open " + visible(q.URL) + "\nIf you trust the server and the address, open it, then answer done; nothing opens it for you."
	}
	if text := fieldsText(e.Schema); text != "" {
		e.Text += "\n" + text
	}
	return e
}

// fieldsText is a line for each field of a form.
func fieldsText(schema []byte) string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		type choice struct {
			Const any    `json:"const"`
			Title string `json:"title"`
		}
		var p struct {
			Type, Title, Description string
			Default                  any
			Enum                     []any
			OneOf                    []choice `json:"oneOf"`
			Items                    struct {
				Enum  []any
				AnyOf []choice `json:"anyOf"`
			}
		}
		if json.Unmarshal(s.Properties[name], &p) != nil {
			continue
		}
		words := []string{p.Type}
		if slices.Contains(s.Required, name) {
			words = append(words, "required")
		}
		if p.Default != nil {
			words = append(words, fmt.Sprintf("%v if it is left out", p.Default))
		}
		line := name + " (" + strings.Join(words, ", ") + ")"
		if about := strings.TrimSpace(p.Title + " " + p.Description); about != "" {
			line += ": " + about
		}
		var choices []string
		for _, v := range slices.Concat(p.Enum, p.Items.Enum) {
			choices = append(choices, fmt.Sprint(v))
		}
		for _, c := range slices.Concat(p.OneOf, p.Items.AnyOf) {
			choices = append(choices, strings.TrimSpace(fmt.Sprint(c.Const)+" "+c.Title))
		}
		if len(choices) > 0 {
			line += "; one of " + strings.Join(choices, " / ")
		}
		lines = append(lines, visible(line))
	}
	return strings.Join(lines, "\n")
}

// Hold implements tool.Holder: it waits while a person answers what the server asked, and
// until an attempt brings the answer. An exchange that none takes over then is cancelled.
func (t *serverTool) Hold(ctx context.Context, c tool.Call) error {
	var x *exchange
	n := t.pool.working(c.Session, t.server.Name, c.ID)
	if n != nil {
		x = n.waiting(c.ID)
	}
	if x == nil {
		return t.gone()
	}
	n.mu.Lock()
	x.holds++
	n.mu.Unlock()
	defer n.letGo(x)
	select {
	case <-x.ended:
		return t.gone()
	case <-ctx.Done():
		return nil
	}
}

// letGo ends a wait with an exchange. It is cancelled if nobody has waited with it, nor taken
// its question over, for a while.
func (n *connection) letGo(x *exchange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	held := x.held
	x.holds--
	time.AfterFunc(takeOver, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if held != nil && x.held == held && x.holds == 0 {
			x.cancel()
		}
	})
}

// gone is the end of a call whose server doesn't wait for an answer any more.
func (t *serverTool) gone() error {
	class, ending := t.unknown()
	return tool.Failf(class, CodeEnded, "MCP server %s asked a question, and ended before it had the answer%s", t.server.Name, ending).
		WithHint("look at what is there before you decide to run it again")
}

// unknown is the class of a call whose end isn't known, and how to say that.
func (t *serverTool) unknown() (class, ending string) {
	if t.spec.Effect == belay.Pure || t.spec.Effect == belay.Idempotent {
		return tool.Transient, ""
	}
	return tool.Lost, "; nobody knows whether it did its work"
}

// working is the connection that works on a call; nil: none does.
func (p *Pool) working(s belay.SessionID, server string, id belay.CallID) *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, at := range p.slots {
		if n := at.live; k.session == s && n != nil && n.server.Name == server && n.waiting(id) != nil {
			return n
		}
	}
	return nil
}

// hold notes that a person answers a question. The server works on the call meanwhile.
func (n *connection) hold(x *exchange, q *question) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x.held = q
}

// takeOver gives the exchange of a call, and its question, to the attempt that has the
// answer; nil: the server doesn't wait.
func (n *connection) takeOver(id belay.CallID) (*exchange, *question) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.exchanges {
		if q := o.held; o.call == id && q != nil {
			o.held = nil
			return o.exchange, q
		}
	}
	return nil, nil
}
