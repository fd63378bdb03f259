package turns

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/store"
)

// SubmitTurn is what submit_turn takes. Without a session id, and for one that
// there isn't yet, a session is made.
type SubmitTurn struct {
	Session   belay.SessionID    `json:"sessionId,omitempty" jsonschema:"the session; a new one is made for an id that is new, or none"`
	Thread    belay.ThreadID     `json:"threadId,omitempty" jsonschema:"the thread; the session's newest when it is left out"`
	Turn      belay.TurnID       `json:"turnId,omitempty" jsonschema:"the caller's id of the turn: told twice, it is one turn"`
	Task      belay.TaskID       `json:"taskId,omitempty" jsonschema:"the caller's id of the task that the turn is the first attempt of"`
	Text      string             `json:"text" jsonschema:"what to do"`
	Input     input.Object       `json:"input,omitempty" jsonschema:"data that the agent is started with which the settings name, by its schema"`
	Attached  []AttachedFile     `json:"attachments,omitempty" jsonschema:"files that are sent along with the text, at most 16"`
	Workspace string             `json:"workspace,omitempty" jsonschema:"folder of a new session; the server's own when it is left out. A session that exists keeps its own"`
	Title     string             `json:"title,omitempty" jsonschema:"what lists call the session; a new one the first line of the text when it is left out"`
	Settings  *app.SettingsInput `json:"settings,omitempty" jsonschema:"settings of the session from now on"`
	Queue     string             `json:"queue,omitempty" jsonschema:"while another turn runs: enqueue, steer, collect, interrupt, rollback, reject; as the thread is set when it is left out"`
	Priority  string             `json:"priority,omitempty" jsonschema:"among sessions that wait for a place to run: low, normal, high"`

	Acceptance []app.CheckInput `json:"acceptance,omitempty" jsonschema:"what must hold before the task counts as done, at most 16; settings.completion must be required"`
}

// AttachedFile is a file that is sent along with a text.
type AttachedFile struct {
	Name    string       `json:"name" jsonschema:"as the person calls it"`
	Content input.Base64 `json:"content" jsonschema:"text in UTF-8, an image (PNG, JPEG, GIF, WebP) or a PDF, as base64"`
}

// given is the text with what comes with it.
func (in *SubmitTurn) given() (app.Given, error) {
	g := app.Given{Text: in.Text}
	if len(in.Attached) > app.MaxAttached {
		return g, input.At("attachments", belay.Errorf(belay.CodeTooLarge, "%d files are attached; %d are the most", len(in.Attached), app.MaxAttached).
			WithHint("name the others in the text: the agent can read those of the workspace"))
	}
	for i, f := range in.Attached {
		at := fmt.Sprintf("attachments[%d]", i)
		if err := input.Text(at+".name", f.Name, maxFileName); err != nil {
			return g, err
		}
		if strings.TrimSpace(f.Name) == "" {
			return g, input.At(at+".name", belay.Errorf(belay.CodeBadCommand, "the file has no name"))
		}
		a, err := app.NewAttachment(f.Name, f.Content)
		if err != nil {
			return g, input.At(at, err)
		}
		g.Attached = append(g.Attached, a)
	}
	return g, nil
}

// maxFileName bounds what the caller calls a file, in bytes.
const maxFileName = 1 << 10

func (in *SubmitTurn) check() error {
	if err := cmp.Or(
		input.ID("sessionId", string(in.Session)), input.ID("threadId", string(in.Thread)), input.ID("turnId", string(in.Turn)), input.ID("taskId", string(in.Task)),
		input.Text("text", in.Text, app.MaxText), input.Text("title", in.Title, app.MaxTitle), input.Text("workspace", in.Workspace, 4<<10),
	); err != nil {
		return err
	}
	if strings.TrimSpace(in.Text) == "" {
		return input.At("text", belay.Errorf(belay.CodeBadCommand, "there is nothing to do: the text is empty"))
	}
	if in.Session == belay.SystemSession {
		return input.At("sessionId", belay.Errorf(belay.CodeBadState, "the system session takes no work"))
	}
	if err := (belay.Queueing{Mode: belay.QueueMode(in.Queue)}).Check(); err != nil {
		return queueError("queue", err)
	}
	_, err := app.PriorityOf(in.Priority)
	return input.At("priority", err)
}

// priority is the turn's.
func (in *SubmitTurn) priority() int {
	n, _ := app.PriorityOf(in.Priority) // it was checked
	return n
}

// submission is a turn on its way.
type submission struct {
	*app.Call
	in    *SubmitTurn
	given app.Given
	read  bool           // what the text names is in given
	state *session.State // of the session as it is; its Session is empty for a new one
	named bool           // the caller named the thread
}

func submitTurn(ctx context.Context, r *app.Call, in *SubmitTurn) (*app.Result, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	mint(r, in)
	given, err := in.given()
	if err != nil {
		return nil, err
	}
	s := &submission{Call: r, in: in, given: given}
	if s.state, err = r.Session(ctx, in.Session); err != nil {
		return nil, err
	}
	if s.state.Session == "" {
		if told, err := s.begin(ctx); told != nil || err != nil {
			return told, err
		}
		if s.state, err = r.Session(ctx, in.Session); err != nil {
			return nil, err
		}
	}
	told, err := s.before(ctx)
	if told != nil || err != nil {
		return told, err
	}
	orders, err := s.orders(ctx)
	if err != nil {
		return nil, err
	}
	ans, err := r.Engine.Submit(ctx, orders...)
	if err != nil {
		return nil, conflict(r, err)
	}
	switch {
	case ans.Wants:
		r.Drives.Enqueue(in.Session, in.priority())
	case !ans.Rests:
		r.Wake(ctx, in.Session, in.priority())
	case !ans.Wake.IsZero(): // else it waits behind another that asks a person, say
		r.Drives.ApplyLanes([]store.LaneRow{{Session: in.Session, Lane: store.Lane{Wake: ans.Wake}}})
	}
	return s.told(ctx, ans.Position, orders[len(orders)-1].ID, ans.Pending)
}

// conflict adds the field to an id's conflict.
func conflict(r *app.Call, err error) error {
	switch {
	case belay.CodeOf(err) != belay.CodeIDConflict:
		return err
	case r.Key != "":
		return input.At("header Idempotency-Key", err)
	}
	return input.At("turnId", err)
}

// mint gives the ids that the caller didn't bring. They follow from the
// Idempotency-Key or the turn's id, so that the repeated request means the same.
func mint(r *app.Call, in *SubmitTurn) {
	derive := r.Keyed
	if r.Key == "" {
		base := belay.StreamID("turn/" + string(in.Session) + "/" + string(in.Turn))
		if in.Turn == "" {
			base = belay.StreamID("once/" + belay.NewID(belay.PrefixCommand))
		}
		derive = func(prefix string) string { return belay.DeriveID(prefix, base, 0, 0) }
	}
	if in.Session == "" {
		in.Session = belay.SessionID(derive(belay.PrefixSession))
	}
	if in.Turn == "" {
		in.Turn = belay.TurnID(derive(belay.PrefixTurn))
	}
	if in.Task == "" {
		in.Task = belay.TaskID(belay.DeriveID(belay.PrefixTask, belay.StreamID("turn/"+string(in.Session)+"/"+string(in.Turn)), 0, 0))
	}
}

// begin is the short way for a new session. nil: it exists now, or an id belongs
// to another session; the ordinary way says which.
func (s *submission) begin(ctx context.Context) (*app.Result, error) {
	named := s.in.Thread
	if named == "" {
		s.in.Thread = app.FirstThread(s.in.Session)
	}
	orders, err := s.orders(ctx)
	if err != nil {
		return nil, err
	}
	begun, err := s.Engine.Begin(ctx, store.Claim{}, orders...)
	if begun == nil || err != nil {
		s.in.Thread = named
		return nil, err
	}
	s.Drives.Enqueue(s.in.Session, s.in.priority())
	return s.told(ctx, begun.Position, orders[len(orders)-1].ID, false)
}

// orders are the commands that the submission becomes.
func (s *submission) orders(ctx context.Context) ([]belay.Order, error) {
	in := s.in
	ws, settings, changed, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	rules, err := s.Workspaces.Rules(ctx, s.By.String(), ws, settings)
	if err != nil {
		return nil, input.At("settings", err)
	}
	if !s.read {
		if err := input.At("text", s.Workspaces.Mentioned(ctx, ws, &s.given)); err != nil {
			return nil, err
		}
		if s.given.Text, err = s.withInput(ctx, ws, settings.Agent); err != nil {
			return nil, input.At("input", err)
		}
		s.read = true
	}
	checks, err := app.Acceptance(in.Acceptance, s.Clean)
	if err != nil {
		return nil, err
	}
	var again belay.Retry
	if len(s.given.Attached) > 0 || len(checks) > 0 || settings.Agent != "" {
		under, err := s.RulesOf(ctx, rules)
		if err == nil {
			again = under.Retry()
			err = cmp.Or(input.At("attachments", s.given.CheckTaken(under.Routes)), app.Verifiable(under, checks))
		}
		if err != nil {
			return nil, err
		}
	}
	text, err := s.content(ctx, ws, settings)
	if err != nil {
		return nil, err
	}
	quotas, err := s.Workspaces.Quotas(ctx, ws)
	if err != nil {
		return nil, err
	}
	var out []belay.Order
	add := func(kind string, c belay.Command) {
		base := belay.StreamID(kind + "/" + string(in.Session) + "/" + string(in.Turn))
		if s.Key != "" { // it belongs to one submission: with another session or turn it is in conflict
			base = belay.StreamID(kind + "/" + s.Keyed(belay.PrefixCommand))
		}
		out = append(out, s.Order(belay.CommandID(belay.DeriveID(belay.PrefixCommand, base, 0, 0)), in.Session, in.Session.Stream(), c))
	}
	switch {
	case s.state.Session == "":
		add("create", belay.CreateSession{Workspace: ws, Title: s.title(), Settings: settings})
	case changed:
		update, err := s.Update(ctx, s.state, settings)
		if err != nil {
			return nil, input.At("settings.budget", err)
		}
		add("update", update)
	}
	if s.state.Session != "" && s.in.Title != "" {
		add("label", belay.LabelSession{Title: s.title()}) // what it is called already changes nothing
	}
	add("submit", belay.SubmitWork{Thread: in.Thread, Task: in.Task, Turn: in.Turn, Text: text, Rules: rules, Queue: belay.QueueMode(in.Queue), Priority: in.priority(), Quotas: quotas, Acceptance: checks, Retry: again})
	return out, nil
}

// withInput is the text with the data that the agent is started with.
func (s *submission) withInput(ctx context.Context, ws, agent string) (string, error) {
	if s.in.Input == nil && agent == "" {
		return s.given.Text, nil
	}
	cat, err := s.Workspaces.Agents(ctx, ws)
	if err != nil {
		return "", err
	}
	var data json.RawMessage
	if s.in.Input != nil {
		data = s.in.Input.JSON()
	}
	text, starts := s.given.Text, s.state.Session == ""
	if starts {
		text = cat.Worded(agent, text)
	}
	return cat.Told(agent, text, data, starts)
}

// content is the text, with what comes with it, as facts hold it.
func (s *submission) content(ctx context.Context, ws string, settings belay.Settings) (belay.Content, error) {
	return s.given.Keep(ctx, s.Store, s.Workspaces.Secrets(), s.Workspaces.Counts(ctx, ws, settings), settings)
}

func (s *submission) settings(ctx context.Context) (ws string, settings belay.Settings, changed bool, err error) {
	var c app.SettingsInput
	if s.in.Settings != nil {
		c = *s.in.Settings
	}
	if err := s.MayWiden(ctx, c, s.state); err != nil {
		return "", settings, false, err
	}
	if st := s.state; st.Session != "" {
		if err := s.checkSameWorkspace(ctx); err != nil {
			return "", settings, false, err
		}
		if s.in.Settings == nil {
			return st.Workspace, st.Settings, false, nil
		}
		settings, err = s.Workspaces.Settings(ctx, st.Workspace, &st.Settings, c)
		return st.Workspace, settings, true, input.At("settings", err)
	}
	if ws, err = s.Workspaces.Workspace(ctx, s.in.Workspace); err != nil {
		return "", settings, false, input.At("workspace", err)
	}
	settings, err = s.Workspaces.Settings(ctx, ws, nil, c)
	return ws, settings, false, input.At("settings", err)
}

// checkSameWorkspace refuses another folder for a session that exists.
func (s *submission) checkSameWorkspace(ctx context.Context) error {
	if s.in.Workspace == "" || s.in.Workspace == s.state.Workspace {
		return nil
	}
	ws, err := s.Workspaces.Workspace(ctx, s.in.Workspace)
	if err == nil && ws != s.state.Workspace {
		err = belay.Errorf(belay.CodeBadState, "session %s works in %s, and a session keeps its workspace", s.in.Session, s.state.Workspace).
			WithHint("leave the workspace out, or name a new session")
	}
	return input.At("workspace", err)
}

func (s *submission) title() string {
	title := s.in.Title
	if title == "" {
		title, _, _ = strings.Cut(strings.TrimSpace(s.in.Text), "\n")
	}
	return app.Cut(strings.TrimSpace(s.Clean(title)), 80)
}

// told is the answer: where the turn is, and under which run.
func (s *submission) told(ctx context.Context, pos store.Position, cmd belay.CommandID, pending bool) (*app.Result, error) {
	in := s.in
	t := &app.Result{Position: pos, Command: cmd, Status: app.Done, Session: in.Session, Thread: in.Thread, Turn: in.Turn, Task: in.Task, Run: firstRun(in.Task)}
	if pending {
		t.Status = app.Accepted
	}
	return t, s.End(ctx, t)
}

// firstRun is the run of a task's first attempt: it follows from the task's id.
func firstRun(task belay.TaskID) belay.RunID {
	return belay.RunID(belay.DeriveID(belay.PrefixRun, task.Stream(), 3, 0))
}
