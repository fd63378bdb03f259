package app

import (
	"cmp"
	"context"
	"errors"
	"reflect"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/store"
)

// Command is a line of the table: what the standard's control plane can be asked.
type Command struct {
	Name    string
	Doc     string
	Scope   auth.Scope
	Mutates bool   // it is recorded, and repeated under one id it is done once
	Later   string // what it waits for; empty: it works
	Runs    bool   // an agent works because of it
	MaxBody int64  // of its body, in bytes; 0 is MaxBody

	In, Out reflect.Type
	call    func(ctx context.Context, c *Call, body []byte) (any, error)
}

// Call is a use case on its way: its caller, and the runtime that it is asked of.
type Call struct {
	*Runtime
	By      auth.Principal
	Command string // its name in the table
	Key     string // the caller's key, under which a repetition is done once; empty is none
	Channel string // the caller's channel; empty is none
	Remote  bool   // the caller knows routes, and no terminal: hints are for it
}

// Result is the answer of every command that changes something.
type Result struct {
	Position store.Position   `json:"position"`            // of the last fact that it caused; reads take it as after
	Command  belay.CommandID  `json:"commandId,omitempty"` // the facts carry it as requestId
	Status   string           `json:"status"`              // done, or accepted: durable, and not handled yet
	Repeated bool             `json:"repeated,omitempty"`  // it is a repetition; nothing was done again
	Session  belay.SessionID  `json:"sessionId,omitempty"`
	Thread   belay.ThreadID   `json:"threadId,omitempty"`
	Turn     belay.TurnID     `json:"turnId,omitempty"`
	Task     belay.TaskID     `json:"taskId,omitempty"`
	Run      belay.RunID      `json:"runId,omitempty"`
	Subagent belay.SubagentID `json:"subagentId,omitempty"`
	Action   belay.ActionID   `json:"actionId,omitempty"`
	Programs string           `json:"programs,omitempty"` // of a pause: those in the background, which go on
	Alike    []belay.ActionID `json:"alike,omitempty"`    // other questions that were answered with it
	Writer   *OtherWriter     `json:"writer,omitempty"`   // of an answer that allows a call: another session writes in the workspace, so the call won't
}

// result is what answers have in common, also those that embed it.
func (r *Result) result() *Result { return r }

// Words of Result.Status.
const (
	Done     = "done"
	Accepted = "accepted"
)

// Bounds of what callers send, in bytes.
const (
	MaxBody   = 2 << 20  // of a command's body, unless its row says more
	MaxText   = 64 << 20 // of what a turn is given: a text, standard input, an attached text
	MaxReason = 2 << 10
	MaxSaid   = 4 << 10 // of an answer
	MaxTitle  = 200
	MaxInput  = 8 << 10 // of what a program is given at once
)

// BodyLimit bounds the command's body, in bytes.
func (cmd *Command) BodyLimit() int64 { return cmp.Or(cmd.MaxBody, MaxBody) }

// Define makes a row of a function with typed input and output.
func Define[I, O any](name string, scope auth.Scope, mutates bool, doc string, f func(context.Context, *Call, *I) (*O, error)) Command {
	return Command{Name: name, Doc: doc, Scope: scope, Mutates: mutates, In: reflect.TypeFor[I](), Out: reflect.TypeFor[O](),
		call: func(ctx context.Context, c *Call, body []byte) (any, error) {
			in := new(I)
			if err := input.Decode(body, in); err != nil {
				return nil, err
			}
			return f(ctx, c, in)
		}}
}

// AsOf is embedded by what a command takes that looks at what is there.
type AsOf struct {
	After int64 `json:"after,omitempty" jsonschema:"a position that the answer must have seen"`
}

func (a AsOf) after() store.Position { return store.Position(a.After) }

// RunsAgents is the row of a command because of which an agent works.
func (cmd Command) RunsAgents() Command {
	cmd.Runs = true
	return cmd
}

// DefineLook makes a row of a function that changes nothing. It is called when the log,
// and the view of sessions, have come as far as the AsOf of its input, if it has one.
func DefineLook[I, O any](name string, scope auth.Scope, doc string, f func(context.Context, *Call, Fresh, *I) (*O, error)) Command {
	return Define(name, scope, false, doc, func(ctx context.Context, c *Call, in *I) (*O, error) {
		var after store.Position
		if a, ok := any(in).(interface{ after() store.Position }); ok {
			after = a.after()
		}
		fresh, err := c.Fresh(ctx, after)
		if err != nil {
			return nil, err
		}
		return f(ctx, c, fresh, in)
	})
}

// Planned makes a row of a command whose subsystem isn't here yet.
func Planned(name string, mutates bool, subsystem, doc string) Command {
	scope := auth.Read
	if mutates {
		scope = auth.Work
	}
	return Command{Name: name, Doc: doc, Scope: scope, Mutates: mutates, Later: subsystem}
}

// OtherWriter is a session that became the writer of the workspace while a question
// waited.
type OtherWriter struct {
	Session belay.SessionID `json:"sessionId"`
	Path    string          `json:"path"` // where it writes
	Next    string          `json:"next"` // what becomes of the call that was allowed
}

// Find returns the row of a name, or nil.
func Find(commands []Command, name string) *Command {
	for i := range commands {
		if commands[i].Name == name {
			return &commands[i]
		}
	}
	return nil
}

// CodeAccepted is the code that is recorded of a command that was done.
const CodeAccepted belay.Code = "accepted"

// Do performs a command for a caller who may, with a body as Decode takes it, and
// records that it was asked.
func (cmd *Command) Do(ctx context.Context, c *Call, body []byte) (out any, err error) {
	c.Command = cmd.Name
	if err := c.checkChannel(ctx); err != nil {
		return nil, err
	}
	if cmd.Later != "" {
		err = cmd.unavailable(body)
	} else {
		out, err = cmd.called(ctx, c, body)
	}
	if !cmd.Mutates && err == nil {
		return out, nil
	}
	d := Outcome{Code: codeOf(err), Reads: !cmd.Mutates}
	if r, ok := out.(interface{ result() *Result }); ok && err == nil {
		d.Request, d.Session = r.result().Command, r.result().Session
	}
	if s, ok := out.(interface{ Subject() string }); ok && err == nil {
		d.Subject = s.Subject()
	}
	if rerr := c.Recorder.Done(ctx, c, d); rerr != nil && err == nil {
		return nil, rerr // it is done, and repeated it answers the same
	}
	return out, err
}

// called calls the command's function. One that panics is recorded too.
func (cmd *Command) called(ctx context.Context, c *Call, body []byte) (any, error) {
	panics := true
	defer func() {
		if panics {
			c.Recorder.Done(ctx, c, Outcome{Code: belay.CodeInternal, Reads: !cmd.Mutates}) //nolint:errcheck // the panic is told
		}
	}()
	out, err := cmd.call(ctx, c, body)
	panics = false
	return out, err
}

// unavailable is the answer of a command whose subsystem isn't here, to a body that
// could be one.
func (cmd *Command) unavailable(body []byte) error {
	if err := input.CheckUnambiguous(body); err != nil {
		return err
	}
	return belay.Errorf(belay.CodeUnavailable, "this build has no %s: %s can't be done", cmd.Later, cmd.Name).WithHint("GET /v1/openapi.json says which commands work")
}

// codeOf is the code that is recorded of an outcome.
func codeOf(err error) belay.Code {
	_, owned := errors.AsType[*store.OwnedError](err)
	switch code := belay.CodeOf(err); {
	case err == nil:
		return CodeAccepted
	case owned || errors.Is(err, store.ErrStale):
		return belay.CodeOwned
	case code == belay.CodeInternal && errors.Is(err, store.ErrNotFound):
		return belay.CodeNotFound
	default:
		return code
	}
}
