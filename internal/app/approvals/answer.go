package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/view"
)

// RespondAction is what respond_action takes.
type RespondAction struct {
	Action   belay.ActionID `json:"actionId"`
	Decision string         `json:"decision" jsonschema:"allow, deny, or answer for a question"`
	Version  string         `json:"version,omitempty" jsonschema:"of the request as it was seen; allow needs it"`
	Allowance
	Args    input.Object `json:"args,omitempty" jsonschema:"with allow: the arguments that the call runs with in place of the model's, whole, as a JSON object; it is judged again with them, as a request of who changes it, who must be allowed to give work"`
	Budget  string       `json:"budget,omitempty" jsonschema:"with allow, of kind budget: another raise than the proposed one, such as +5usd"`
	Message string       `json:"message,omitempty" jsonschema:"for the model: why it is denied, or the answer"`
	Clear   bool         `json:"clearTaint,omitempty" jsonschema:"with allow: the untrusted content of the conversation was reviewed; clears the taint"`
	Alike   bool         `json:"alike,omitempty" jsonschema:"answer the same question of the session's other agents too: the same call, folder and boundary; what a scope allows beyond that is allowed once"`
}

// ResolvePermission is what resolve_permission takes.
type ResolvePermission struct {
	Action   belay.ActionID `json:"actionId"`
	Decision string         `json:"decision" jsonschema:"allow or deny"`
	Version  string         `json:"version,omitempty" jsonschema:"of the request as it was seen; allow needs it"`
	Allowance
	Args    input.Object `json:"args,omitempty" jsonschema:"with allow: the arguments that the call runs with in place of the model's, whole, as a JSON object; it is judged again with them, and only an owner may"`
	Message string       `json:"message,omitempty" jsonschema:"for the model: why it is denied"`
	Alike   bool         `json:"alike,omitempty" jsonschema:"answer the same question of the session's other agents too"`
}

// Allowance is what an answer allows besides the call that asks.
type Allowance struct {
	Scope  string    `json:"scope,omitempty" jsonschema:"of what is allowed: once (default), session, prefix, count, until"`
	Prefix string    `json:"prefix,omitempty" jsonschema:"with scope prefix: the first words of the commands, or the folder of the files, that are allowed"`
	Count  int       `json:"count,omitempty" jsonschema:"how many calls are allowed, this one among them; with scope count, or with prefix and until"`
	Until  time.Time `json:"until,omitzero" jsonschema:"until when calls are allowed; with scope until, or with prefix and count"`
	Only   bool      `json:"only,omitempty" jsonschema:"allowed to the agent that asks and those below it; else to all agents of its tree, each within its own tools"`
}

// check refuses what isn't one allowance.
func (a *Allowance) check() error {
	if !slices.Contains([]string{"", "once", "session", "prefix", "count", "until"}, a.Scope) {
		return input.At("scope", belay.Errorf(belay.CodeBadCommand, "%q is none of once, session, prefix, count, until", input.Shown(a.Scope)).WithHint("leave it out to allow this call alone"))
	}
	if a.Only && (a.Scope == "" || a.Scope == "once") {
		return input.At("only", belay.Errorf(belay.CodeBadCommand, "what is allowed once is the agent's alone anyway").WithHint("leave it out, or name a scope"))
	}
	scoped := a.Scope == "prefix" || a.Scope == "count" || a.Scope == "until"
	switch {
	case a.Scope == "prefix" && strings.TrimSpace(a.Prefix) == "":
		return input.At("prefix", belay.Errorf(belay.CodeBadCommand, "the field is missing: with scope prefix it says what may begin how").WithHint("the first words of commands, such as git status, or a folder"))
	case a.Scope != "prefix" && a.Prefix != "":
		return input.At("prefix", belay.Errorf(belay.CodeBadCommand, "it goes with scope prefix").WithHint("say scope prefix, or leave it out"))
	case a.Scope == "count" && a.Count == 0, a.Count < 0, a.Count > 0 && !scoped:
		return input.At("count", belay.Errorf(belay.CodeBadCommand, "it is 1 or more, with scope count, prefix or until").WithHint("say one of these scopes and how many calls, or leave it out"))
	case a.Scope == "until" && a.Until.IsZero(), !a.Until.IsZero() && !scoped:
		return input.At("until", belay.Errorf(belay.CodeBadCommand, "it is a time to come, with scope until, prefix or count").WithHint("%s, or leave it out", input.ExampleTime))
	}
	return input.Text("prefix", a.Prefix, app.MaxTitle)
}

func resolvePermission(ctx context.Context, r *app.Call, in *ResolvePermission) (*app.Result, error) {
	if in.Decision != "allow" && in.Decision != "deny" {
		return nil, input.At("decision", belay.Errorf(belay.CodeBadCommand, "%q is none of allow, deny", input.Shown(in.Decision)).WithHint("respond_action answers questions, too"))
	}
	return respond(ctx, r, "permission", RespondAction{Action: in.Action, Decision: in.Decision, Version: in.Version, Allowance: in.Allowance, Args: in.Args, Message: in.Message, Alike: in.Alike})
}

// Respond brings an answer to the thread that asked.
func Respond(ctx context.Context, r *app.Call, in *RespondAction) (*app.Result, error) {
	return respond(ctx, r, "", *in)
}

// respond brings an answer to the thread that asked; what came through a channel
// is recorded as that, too.
func respond(ctx context.Context, r *app.Call, kind string, in RespondAction) (*app.Result, error) {
	told, err := decide(ctx, r, kind, in)
	if noted := r.Returned(ctx, in.Action, in.Decision, in.Scope, err); noted != nil && err == nil {
		return nil, noted // it is done, and repeated it answers the same
	}
	return told, err
}

// decide brings an answer to the thread that asked, if the question is still the
// one that was seen.
func decide(ctx context.Context, r *app.Call, kind string, in RespondAction) (*app.Result, error) {
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
		return nil, input.At("actionId", err)
	}
	th, err := r.Thread(ctx, at.Thread)
	if err != nil {
		return nil, err
	}
	asks := false
	if open := app.OpenAction(th, in.Action); open != nil {
		if kind != "" && open.Kind != kind {
			return nil, input.At("actionId", belay.Errorf(belay.CodeBadState, "it is a %s, not a %s", open.Kind, kind).WithHint("respond_action answers it"))
		}
		if asks, err = mayAnswer(r, open, &in); err != nil {
			return nil, err
		}
		if in.Version != "" && in.Version != open.Version { // the refusal shows it as it is
			if err := r.ShowWhole(ctx, open); err != nil {
				return nil, err
			}
		}
		if err := in.seen(open); err != nil {
			return nil, err
		}
	}
	if !in.Until.IsZero() && !in.Until.After(r.Now()) {
		return nil, input.At("until", belay.Errorf(belay.CodeBadCommand, "%s has passed", in.Until.UTC().Format(time.RFC3339)).WithHint("name a time to come"))
	}
	raise, err := app.ParseRaise(in.Budget)
	if err != nil {
		return nil, input.At("budget", err)
	}
	var other *app.OtherWriter
	if in.Decision == "allow" {
		if other, err = otherWriter(ctx, r, at.Stream, in.Action); err != nil {
			return nil, err
		}
	}
	alike, err := in.answerAlike(ctx, r, th)
	if err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, at.Session, at.Stream, belay.RespondAction{Action: in.Action, Decision: in.Decision, Scope: in.Scope, Message: in.Message, Clear: in.Clear,
		Prefix: in.Prefix, Count: in.Count, Until: in.Until, Only: in.Only, Seen: in.Version, Args: in.changed(), Asks: asks, Budget: raise})
	if err == nil {
		told.Action, told.Writer, told.Alike = in.Action, other, alike
		return app.With(told, nil, at.Thread, at.Turn)
	}
	switch belay.CodeOf(err) {
	case belay.CodeBadArguments:
		field := "args"
		if in.Decision == "answer" {
			field = "message"
		}
		err = input.At(field, err)
	case belay.CodeConflict:
		err = input.At("version", err)
	case belay.CodeAlreadyAnswered:
		err = input.At("actionId", r.Hinted(err, "GET /v1/actions lists what waits yet"))
	case belay.CodeBadCommand:
		err = in.blame(r, err)
	}
	return nil, err
}

// Alike are the open questions of other agents that are like one of a thread.
func Alike(ctx context.Context, r *app.Runtime, thread belay.ThreadID, id belay.ActionID) ([]app.Action, error) {
	th, err := r.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	if a := app.OpenAction(th, id); a != nil {
		return r.LikeIt(ctx, a)
	}
	return nil, nil
}

// answerAlike gives the other questions that are alike the same answer, before the one that
// was named gets it: repeated after a crash it finds those that are left.
func (in *RespondAction) answerAlike(ctx context.Context, r *app.Call, th *thread.State) (done []belay.ActionID, err error) {
	open := app.OpenAction(th, in.Action)
	if !in.Alike || open == nil {
		return nil, nil
	}
	like, err := r.LikeIt(ctx, open)
	if err != nil {
		return nil, err
	}
	for _, o := range like {
		c := belay.RespondAction{Action: o.ID, Decision: in.Decision, Message: in.Message, Seen: o.Version}
		order := r.Order(belay.CommandID(belay.NewID(belay.PrefixCommand)), o.Session, o.Thread.Stream(), c)
		switch _, err := r.Engine.Submit(ctx, order); {
		case belay.CodeOf(err) == belay.CodeAlreadyAnswered, belay.CodeOf(err) == belay.CodeUnknownAction: // meanwhile
		case err != nil:
			return nil, input.At("alike", err)
		default:
			done = append(done, o.ID)
		}
	}
	return done, nil
}

// blame adds the field that the thread refused.
func (in *RespondAction) blame(r *app.Call, err error) error {
	switch {
	case in.Budget != "":
		return input.At("budget", r.Hinted(err, "leave it out, or raise what the question is about"))
	case in.Scope == "prefix" && in.Decision == "allow":
		return input.At("prefix", r.Hinted(err, "GET /v1/actions shows the call; its first words, or its folder, can be a prefix"))
	case in.Allowance != (Allowance{}):
		return input.At("scope", r.Hinted(err, "leave it out to allow this call alone"))
	}
	return input.At("decision", r.Hinted(err, "allow or deny a permission, answer a question"))
}

func (in *RespondAction) check() error {
	if err := cmp.Or(input.Named("actionId", string(in.Action)), input.Text("message", in.Message, app.MaxSaid)); err != nil {
		return err
	}
	switch in.Decision {
	case "allow", "deny", "answer":
	default:
		return input.At("decision", belay.Errorf(belay.CodeBadCommand, "%q is none of allow, deny, answer", input.Shown(in.Decision)).WithHint("allow or deny a permission, answer a question"))
	}
	if in.Decision == "answer" && strings.TrimSpace(in.Message) == "" {
		return input.At("message", belay.Errorf(belay.CodeBadCommand, "the answer is empty").WithHint("it is the message"))
	}
	if in.Decision != "allow" && in.Allowance != (Allowance{}) && in.Allowance != (Allowance{Scope: "once"}) {
		return input.At("scope", belay.Errorf(belay.CodeBadCommand, "only what is allowed has a scope").WithHint("leave scope, prefix, count and until out"))
	}
	if err := in.Allowance.check(); err != nil || in.Args == nil {
		return err
	}
	switch {
	case in.Alike:
		return input.At("alike", belay.Errorf(belay.CodeBadCommand, "a call that was changed isn't like the others any more").WithHint("leave alike out, or args"))
	case in.Decision != "allow":
		return input.At("args", belay.Errorf(belay.CodeBadCommand, "only a call that is allowed gets other arguments").WithHint("leave args out, or allow"))
	case in.Scope != "" && in.Scope != "once":
		return input.At("scope", belay.Errorf(belay.CodeBadCommand, "a call that was changed is allowed once").WithHint("leave the scope out, or the args"))
	}
	return nil
}

// mayAnswer refuses callers whose role isn't for the answer: who gives work decides what
// it may cost, who answers for what agents do decides the rest. To change a call is to
// give work: who may do that and not decide asks for the changed call.
func mayAnswer(r *app.Call, open *app.Action, in *RespondAction) (asks bool, err error) {
	need, who := app.Answers(*open)
	switch {
	case in.Args != nil && !r.By.May(auth.Work):
		return false, input.At("args", belay.Errorf(belay.CodeForbidden, "a token of role %s allows or denies a call and doesn't change it", r.By.Role).At(string(open.ID)).
			WithHint("leave args out, or deny with a message that says how it should be; a token of role owner or operator may"))
	case r.By.May(need):
		return false, nil
	case in.Args != nil && open.Kind == "permission":
		return true, nil
	}
	return false, belay.Errorf(belay.CodeForbidden, "a token of role %s may not answer a question of kind %s", r.By.Role, open.Kind).At(string(open.ID)).WithHint("a token of role owner or %s may", who)
}

// Change makes the call run with other arguments: a JSON object.
func (in *RespondAction) Change(args []byte) error { return json.Unmarshal(args, &in.Args) }

// changed are the arguments that the call gets, nil when it keeps its own.
func (in *RespondAction) changed() json.RawMessage {
	if in.Args == nil {
		return nil
	}
	return in.Args.JSON()
}

// seen refuses an answer to a request that isn't the one it was given for. An
// approval must name what was looked at; a denial needn't.
func (in *RespondAction) seen(open *app.Action) error {
	switch {
	case in.Version == "" && in.Decision == "allow":
		return input.At("version", belay.Errorf(belay.CodeBadCommand, "to allow something, say which version of it was seen").WithHint("GET /v1/actions shows it with its version"))
	case in.Version != "" && in.Version != open.Version:
		return input.At("version", belay.Errorf(belay.CodeConflict, "the request has changed since this version; it is version %s now: %s", open.Version, event.CutText(open.Shown, app.MaxSaid)).WithHint("GET /v1/actions shows it whole"))
	}
	return nil
}
