package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/chat"
)

type runIn struct {
	Session belay.SessionID `json:"sessionId,omitempty" jsonschema:"the session that goes on; without it, a new one"`
	Text    string          `json:"text" jsonschema:"what to do"`
}

// ran is what run answers.
type ran struct {
	Session belay.SessionID `json:"sessionId"`
	Turn    belay.TurnID    `json:"turnId"`
	Outcome belay.Outcome   `json:"outcome,omitempty"` // empty: it waits for a person
	Answer  string          `json:"answer,omitempty"`
	Reason  string          `json:"reason,omitempty"` // why it ended otherwise
	Hint    string          `json:"hint,omitempty"`
	Waiting []app.Action    `json:"waiting,omitempty"` // questions that a person has to answer first
}

// state is what a client brings back with the answers that it was asked for.
type state struct {
	Session belay.SessionID             `json:"session"`
	Turn    belay.TurnID                `json:"turn"`
	Seen    map[belay.ActionID]question `json:"seen"`
}

// question is a question as it was shown.
type question struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// errWaits ends the following of a turn: a question waits for a person, and the client
// can't ask.
var errWaits = errors.New("it waits for a person")

// run gives a session work and follows it until it ends, or waits for a person.
func (s *server) run(ctx context.Context, r *sdk.CallToolRequest, in runIn) (*sdk.CallToolResult, any, error) {
	f := &following{server: s, request: r}
	if r.Params.RequestState != "" {
		var st state
		if err := json.Unmarshal([]byte(r.Params.RequestState), &st); err != nil || st.Session == "" || st.Turn == "" {
			return nil, nil, told(belay.Errorf(belay.CodeBadCommand, "the state isn't one that run gave").WithHint("call run without it"))
		}
		f.ran = ran{Session: st.Session, Turn: st.Turn}
		f.given(ctx, st.Seen, r.Params.InputResponses)
	} else {
		begun, err := s.submit(ctx, send{Session: in.Session, Text: in.Text})
		if err != nil {
			return nil, nil, err
		}
		f.ran = ran{Session: begun.Session, Turn: begun.Turn}
	}
	err := f.follow(ctx)
	switch {
	case f.ask != nil:
		return f.ask, nil, nil
	case errors.Is(err, errWaits):
		if f.ran.Waiting, err = s.open(ctx, f.ran.Session); err != nil {
			return nil, nil, told(err)
		}
		f.ran.Hint = "a person answers it: belay actions lists what waits; session_read shows how it goes on"
	case ctx.Err() != nil: // its caller wants it no longer
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		s.Runtime.Do(late, "interrupt_turn", map[string]any{"sessionId": f.ran.Session, "turnId": f.ran.Turn}, nil) //nolint:errcheck // it ended by itself, or the server does
		return nil, nil, ctx.Err()
	case err != nil:
		return nil, nil, told(err)
	}
	text, err := json.Marshal(f.ran)
	if err != nil {
		return nil, nil, err
	}
	res := &sdk.CallToolResult{StructuredContent: json.RawMessage(text), Content: []sdk.Content{&sdk.TextContent{Text: f.ran.text()}}}
	res.IsError = f.ran.Outcome != "" && f.ran.Outcome != belay.Completed
	return res, nil, nil
}

// text is the answer as a model reads it.
func (r *ran) text() string {
	if r.Outcome == belay.Completed && r.Answer != "" {
		return r.Answer + "\n\n[session " + string(r.Session) + "]"
	}
	parts := []string{r.Answer, string(r.Outcome), r.Reason}
	for _, a := range r.Waiting {
		parts = append(parts, "It waits for a person: "+wording(a)+" ["+string(a.ID)+"]")
	}
	parts = append(parts, r.Hint, "[session "+string(r.Session)+"]")
	var all []string
	for _, p := range parts {
		if p != "" {
			all = append(all, p)
		}
	}
	return strings.Join(all, "\n")
}

// following is a turn that a client waits for.
type following struct {
	*server
	request *sdk.CallToolRequest
	ran     ran
	steps   int
	ask     *sdk.CallToolResult // what the client has to ask its person first
	asks    map[belay.ActionID]context.CancelFunc
	wg      sync.WaitGroup
}

// follow reads what happens until the turn ends.
func (f *following) follow(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	f.asks = map[belay.ActionID]context.CancelFunc{}
	defer f.wg.Wait()
	defer stop(nil) // before the wait
	fold := block.Fold{Load: func(ref belay.Ref) ([]byte, error) {
		var b bytes.Buffer
		err := chat.Content(ctx, f.Runtime, f.ran.Session, ref.Digest, &b)
		return b.Bytes(), err
	}}
	for item, err := range f.Runtime.Follow(ctx, f.ran.Session, "") {
		switch {
		case err != nil:
			if context.Cause(ctx) == errWaits {
				return errWaits
			}
			return err
		case item.Gone:
			return belay.Errorf(belay.CodeNotFound, "the session was deleted").At(string(f.ran.Session))
		case item.Broken != nil:
			return item.Broken
		case item.Fact == nil:
			continue
		}
		fold.Apply(*item.Fact)
		if item.Fact.IDs.Turn != f.ran.Turn {
			continue
		}
		f.progress(ctx, *item.Fact)
		switch item.Fact.Data.(type) {
		case event.ActionRequired:
			if err := f.question(ctx, stop, item.Fact.IDs.Action); err != nil || f.ask != nil {
				return err
			}
		case event.ActionResolved:
			if done := f.asks[item.Fact.IDs.Action]; done != nil {
				done()
			}
		case event.TurnCompleted, event.TurnFailed:
			f.ended(fold.Take())
			return nil
		}
	}
	if context.Cause(ctx) == errWaits {
		return errWaits
	}
	return ctx.Err()
}

// ended takes the answer of the turn.
func (f *following) ended(blocks []block.Block) {
	for _, b := range blocks {
		switch {
		case b.Turn != f.ran.Turn:
		case b.Kind == block.KindAnswer:
			f.ran.Answer = b.Text
		case b.Kind == block.KindEnd:
			f.ran.Outcome, f.ran.Hint = b.End.Outcome, b.End.Hint
			if f.ran.Outcome != belay.Completed {
				f.ran.Reason = strings.TrimSpace(b.End.Code + " " + b.End.Reason)
			} else if b.End.Summary != "" {
				f.ran.Answer = strings.TrimSpace(f.ran.Answer + "\n\n" + b.End.Summary)
			}
		}
	}
}

// progress tells a client that wants it what the agent does.
func (f *following) progress(ctx context.Context, ev event.Envelope) {
	token := f.request.Params.GetProgressToken()
	text := ""
	switch p := ev.Data.(type) {
	case event.ModelRequested:
		text = "asks " + p.Model
	case event.ToolStarted:
		text = "runs " + p.Name
	case event.ToolProgress:
		text = p.Text
	case event.ActionRequired:
		text = "asks a person"
	}
	if token == nil || text == "" {
		return
	}
	f.steps++
	f.request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(f.steps), Message: text}) //nolint:errcheck // the client is gone; the turn's end shows it
}
