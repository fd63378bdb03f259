package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/problem"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/explain"
)

// RespondAction is what respond_action takes.
type RespondAction struct {
	Action   belay.ActionID `json:"actionId"`
	Decision string         `json:"decision" jsonschema:"allow, deny, or answer for a question"`
	Version  string         `json:"version,omitempty" jsonschema:"of the request as it was seen; allow needs it"`
	Allowance
	Args    Object `json:"args,omitempty" jsonschema:"with allow: the arguments that the call runs with in place of the model's, whole, as a JSON object; it is judged again with them"`
	Message string `json:"message,omitempty" jsonschema:"for the model: why it is denied, or the answer"`
	Clear   bool   `json:"clearTaint,omitempty" jsonschema:"with allow: the untrusted content of the conversation was reviewed; clears the taint"`
}

// ResolvePermission is what resolve_permission takes.
type ResolvePermission struct {
	Action   belay.ActionID `json:"actionId"`
	Decision string         `json:"decision" jsonschema:"allow or deny"`
	Version  string         `json:"version,omitempty" jsonschema:"of the request as it was seen; allow needs it"`
	Allowance
	Args    Object `json:"args,omitempty" jsonschema:"with allow: the arguments that the call runs with in place of the model's, whole, as a JSON object; it is judged again with them"`
	Message string `json:"message,omitempty" jsonschema:"for the model: why it is denied"`
}

// Allowance is what an answer allows besides the call that asks.
type Allowance struct {
	Scope  string    `json:"scope,omitempty" jsonschema:"of what is allowed: once (default), session, prefix, count, until"`
	Prefix string    `json:"prefix,omitempty" jsonschema:"with scope prefix: the first words of the commands, or the folder of the files, that are allowed"`
	Count  int       `json:"count,omitempty" jsonschema:"how many calls are allowed, this one among them; with scope count, or with prefix and until"`
	Until  time.Time `json:"until,omitzero" jsonschema:"until when calls are allowed; with scope until, or with prefix and count"`
}

// check refuses what isn't one allowance.
func (a *Allowance) check() error {
	if !slices.Contains([]string{"", "once", "session", "prefix", "count", "until"}, a.Scope) {
		return problem.At("scope", belay.Errorf(belay.CodeBadCommand, "%q is none of once, session, prefix, count, until", problem.Shown(a.Scope)).WithHint("leave it out to allow this call alone"))
	}
	scoped := a.Scope == "prefix" || a.Scope == "count" || a.Scope == "until"
	switch {
	case a.Scope == "prefix" && strings.TrimSpace(a.Prefix) == "":
		return problem.At("prefix", belay.Errorf(belay.CodeBadCommand, "the field is missing: with scope prefix it says what may begin how").WithHint("the first words of commands, such as git status, or a folder"))
	case a.Scope != "prefix" && a.Prefix != "":
		return problem.At("prefix", belay.Errorf(belay.CodeBadCommand, "it goes with scope prefix").WithHint("say scope prefix, or leave it out"))
	case a.Scope == "count" && a.Count == 0, a.Count < 0, a.Count > 0 && !scoped:
		return problem.At("count", belay.Errorf(belay.CodeBadCommand, "it is 1 or more, with scope count, prefix or until").WithHint("say one of these scopes and how many calls, or leave it out"))
	case a.Scope == "until" && a.Until.IsZero(), !a.Until.IsZero() && !scoped:
		return problem.At("until", belay.Errorf(belay.CodeBadCommand, "it is a time to come, with scope until, prefix or count").WithHint("%s, or leave it out", exampleTime))
	}
	return text("prefix", a.Prefix, maxTitle)
}

// Action is an open question as who answers it must see it: whole.
type Action struct {
	ID       belay.ActionID         `json:"actionId"`
	Version  string                 `json:"version"` // changes when the request does
	Kind     string                 `json:"kind"`    // permission, question, continue
	Session  belay.SessionID        `json:"sessionId"`
	Thread   belay.ThreadID         `json:"threadId"`
	Turn     belay.TurnID           `json:"turnId,omitempty"`
	Call     belay.CallID           `json:"callId,omitempty"`
	Tool     string                 `json:"tool,omitempty"`
	Args     json.RawMessage        `json:"args,omitempty"`     // of the call, exactly
	ArgsRef  *belay.Ref             `json:"argsRef,omitempty"`  // content that has them, when they are long
	ArgsHash belay.Digest           `json:"argsHash,omitempty"` // what an answer is bound to
	Shown    string                 `json:"shown,omitempty"`    // the call, whole, on one line: what doesn't show itself is written out
	Again    *event.Again           `json:"again,omitempty"`    // why it is asked once more after it was allowed
	Boundary string                 `json:"boundary,omitempty"` // that its programs run in, if it is allowed
	Stands   *belay.ApprovalContext `json:"stands,omitempty"`   // what an answer is bound to besides: the folder, the variables, the programs
	Tags     []string               `json:"tags,omitempty"`     // risks that the gate saw
	Taint    []string               `json:"taint,omitempty"`    // what the conversation has from outside
	Prompt   string                 `json:"prompt,omitempty"`
	Asked    time.Time              `json:"asked,omitzero"`
	Until    time.Time              `json:"until"` // then it is denied
}

func resolvePermission(ctx context.Context, r *request, in *ResolvePermission) (*CommandResult, error) {
	if in.Decision != "allow" && in.Decision != "deny" {
		return nil, problem.At("decision", belay.Errorf(belay.CodeBadCommand, "%q is none of allow, deny", problem.Shown(in.Decision)).WithHint("respond_action answers questions, too"))
	}
	return r.respond(ctx, "permission", RespondAction{Action: in.Action, Decision: in.Decision, Version: in.Version, Allowance: in.Allowance, Args: in.Args, Message: in.Message})
}

func respondAction(ctx context.Context, r *request, in *RespondAction) (*CommandResult, error) {
	return r.respond(ctx, "", *in)
}

// respond brings an answer to the thread that asked; what came through a channel
// is recorded as that, too.
func (r *request) respond(ctx context.Context, kind string, in RespondAction) (*CommandResult, error) {
	told, err := r.decide(ctx, kind, in)
	if noted := r.returned(ctx, &in, err); noted != nil && err == nil {
		return nil, noted // it is done, and repeated it answers the same
	}
	return told, err
}

// decide brings an answer to the thread that asked, if the question is still the
// one that was seen.
func (r *request) decide(ctx context.Context, kind string, in RespondAction) (*CommandResult, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if err := r.Reads.Views.Catchup(ctx); err != nil {
		return nil, err
	}
	at, err := view.ActionByID(ctx, r.Store, string(in.Action))
	if err == nil && at.ID != in.Action || belay.CodeOf(err) == belay.CodeNotFound {
		err = belay.Errorf(belay.CodeUnknownAction, "nothing waits, or waited, under this id").WithHint("GET /v1/actions lists what waits")
	}
	if err != nil {
		return nil, problem.At("actionId", err)
	}
	th, err := r.thread(ctx, at.Thread)
	if err != nil {
		return nil, err
	}
	if open := openAction(th, in.Action); open != nil {
		if kind != "" && open.Kind != kind {
			return nil, problem.At("actionId", belay.Errorf(belay.CodeBadState, "it is a %s, not a %s", open.Kind, kind).WithHint("respond_action answers it"))
		}
		if in.Version != "" && in.Version != open.Version { // the refusal shows it as it is
			if err := r.showWhole(ctx, open); err != nil {
				return nil, err
			}
		}
		if err := in.seen(open); err != nil {
			return nil, err
		}
	}
	if !in.Until.IsZero() && !in.Until.After(r.now()) {
		return nil, problem.At("until", belay.Errorf(belay.CodeBadCommand, "%s has passed", in.Until.UTC().Format(time.RFC3339)).WithHint("name a time to come"))
	}
	var other *OtherWriter
	if in.Decision == "allow" {
		if other, err = r.otherWriter(ctx, at.Stream, in.Action); err != nil {
			return nil, err
		}
	}
	told, err := r.send(ctx, at.Session, at.Stream, belay.RespondAction{Action: in.Action, Decision: in.Decision, Scope: in.Scope, Message: in.Message, Clear: in.Clear,
		Prefix: in.Prefix, Count: in.Count, Until: in.Until, Seen: in.Version, Args: in.changed()})
	if err == nil {
		told.Action, told.Writer = in.Action, other
		return with(told, nil, at.Thread, at.Turn)
	}
	switch belay.CodeOf(err) {
	case belay.CodeBadArguments:
		err = problem.At("args", err)
	case belay.CodeConflict:
		err = problem.At("version", err)
	case belay.CodeAlreadyAnswered:
		err = problem.At("actionId", hinted(err, "GET /v1/actions lists what waits yet"))
	case belay.CodeBadCommand:
		err = in.blame(err)
	}
	return nil, err
}

// OtherWriter is a session that became the writer of the workspace while the
// question waited.
type OtherWriter struct {
	Session belay.SessionID `json:"sessionId"`
	Path    string          `json:"path"` // where it writes
	Next    string          `json:"next"` // what becomes of the call that was allowed
}

// otherWriter is who keeps the call of a question from what it would change, or nil.
func (r *request) otherWriter(ctx context.Context, s belay.StreamID, action belay.ActionID) (*OtherWriter, error) {
	w, err := engine.OtherWriter(ctx, r.Store, s, action, r.Wiring.Root)
	if w == nil || err != nil {
		return nil, err
	}
	return &OtherWriter{Session: w.Session, Path: w.Path, Next: "the call is denied with OTHER_WRITER, and the session only reads, unless " + string(w.Session) +
		" has ended by the time it continues; submit_turn then makes it the writer"}, nil
}

// blame adds the field that the thread refused.
func (in *RespondAction) blame(err error) error {
	switch {
	case in.Scope == "prefix" && in.Decision == "allow":
		return problem.At("prefix", hinted(err, "GET /v1/actions shows the call; its first words, or its folder, can be a prefix"))
	case in.Allowance != (Allowance{}):
		return problem.At("scope", hinted(err, "leave it out to allow this call alone"))
	}
	return problem.At("decision", hinted(err, "allow or deny a permission, answer a question"))
}

// hinted is an error with what to do over HTTP, in place of what a person does at
// a terminal.
func hinted(err error, hint string) error {
	e, ok := errors.AsType[*belay.Error](err)
	if !ok {
		return err
	}
	said := *e
	return said.WithHint("%s", hint)
}

func (in *RespondAction) check() error {
	for _, err := range []error{named("actionId", string(in.Action)), text("message", in.Message, maxSaid)} {
		if err != nil {
			return err
		}
	}
	switch in.Decision {
	case "allow", "deny", "answer":
	default:
		return problem.At("decision", belay.Errorf(belay.CodeBadCommand, "%q is none of allow, deny, answer", problem.Shown(in.Decision)).WithHint("allow or deny a permission, answer a question"))
	}
	if in.Decision == "answer" && strings.TrimSpace(in.Message) == "" {
		return problem.At("message", belay.Errorf(belay.CodeBadCommand, "the answer is empty").WithHint("it is the message"))
	}
	if in.Decision != "allow" && in.Allowance != (Allowance{}) && in.Allowance != (Allowance{Scope: "once"}) {
		return problem.At("scope", belay.Errorf(belay.CodeBadCommand, "only what is allowed has a scope").WithHint("leave scope, prefix, count and until out"))
	}
	if err := in.Allowance.check(); err != nil || in.Args == nil {
		return err
	}
	switch {
	case in.Decision != "allow":
		return problem.At("args", belay.Errorf(belay.CodeBadCommand, "only a call that is allowed gets other arguments").WithHint("leave args out, or allow"))
	case in.Scope != "" && in.Scope != "once":
		return problem.At("scope", belay.Errorf(belay.CodeBadCommand, "a call that was changed is allowed once").WithHint("leave the scope out, or the args"))
	}
	return nil
}

// changed are the arguments that the call gets, nil when it keeps its own.
func (in *RespondAction) changed() json.RawMessage {
	if in.Args == nil {
		return nil
	}
	return in.Args.JSON()
}

// seen refuses an answer to a request that isn't the one it was given for. An
// approval must name what was looked at; a denial needn't.
func (in *RespondAction) seen(open *Action) error {
	switch {
	case in.Version == "" && in.Decision == "allow":
		return problem.At("version", belay.Errorf(belay.CodeBadCommand, "to allow something, say which version of it was seen").WithHint("GET /v1/actions shows it with its version"))
	case in.Version != "" && in.Version != open.Version:
		return problem.At("version", belay.Errorf(belay.CodeConflict, "the request has changed since this version; it is version %s now: %s", open.Version, event.CutText(open.Shown, maxSaid)).WithHint("GET /v1/actions shows it whole"))
	}
	return nil
}

// openAction is a question of a thread that waits, or nil.
func openAction(th *thread.State, id belay.ActionID) *Action {
	for _, a := range openActions(th) {
		if a.ID == id {
			return &a
		}
	}
	return nil
}

// openActions are the questions of a thread that wait.
func openActions(th *thread.State) []Action {
	var out []Action
	for _, o := range th.Opens() {
		a := Action{ID: o.Action, Version: o.Version(), Kind: o.Kind, Session: th.Session, Thread: th.Thread, Turn: th.Turn.Turn, Until: o.Until, Again: o.Again}
		if c := o.Call; c != nil {
			a.Boundary, a.Stands = o.Boundary, c.Stands
			a.Call, a.Tool, a.Args, a.ArgsRef, a.ArgsHash, a.Tags = c.ID, c.Name, c.Args, c.ArgsRef, c.ArgsHash, c.Tags
			for _, t := range th.Taint {
				a.Taint = append(a.Taint, t.Kind+" "+t.Origin)
			}
		}
		out = append(out, a)
	}
	return out
}

// showWhole puts the call as a person must see it: nothing of it is left out.
func (t *tenant) showWhole(ctx context.Context, a *Action) error {
	if a.Tool == "" {
		return nil
	}
	args := []byte(a.Args)
	if a.ArgsRef != nil {
		var err error
		if args, err = t.Store.Get(ctx, a.ArgsRef.Digest); err != nil {
			return err
		}
	}
	a.Shown = explain.Call(a.Tool, args)
	return nil
}

// actions are the open questions of a tenant, oldest first, of one session if it
// is named.
func (t *tenant) actions(ctx context.Context, only belay.SessionID) ([]Action, error) {
	if err := t.Reads.Views.Catchup(ctx); err != nil {
		return nil, err
	}
	all, err := view.Sessions(ctx, t.Store, view.Filter{})
	if err != nil {
		return nil, err
	}
	out := []Action{}
	for i := len(all) - 1; i >= 0; i-- {
		s := all[i]
		if len(s.Actions) == 0 || only != "" && s.ID != only {
			continue
		}
		threads := map[belay.ThreadID]*thread.State{}
		for _, o := range s.Actions {
			th := threads[o.Thread]
			if th == nil {
				if th, err = t.thread(ctx, o.Thread); err != nil {
					return nil, err
				}
				threads[o.Thread] = th
			}
			if a := openAction(th, o.ID); a != nil {
				a.Prompt, a.Asked = o.Prompt, o.Asked
				if err := t.showWhole(ctx, a); err != nil {
					return nil, err
				}
				out = append(out, *a)
			}
		}
	}
	return out, nil
}
