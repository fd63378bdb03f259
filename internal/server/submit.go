package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/problem"
	"github.com/belay-run/belay/internal/store"
)

// SubmitTurn is what submit_turn takes. Without a session id, and for one that
// there isn't yet, a session is made.
type SubmitTurn struct {
	Session   belay.SessionID `json:"sessionId,omitempty" jsonschema:"the session; a new one is made for an id that is new, or none"`
	Thread    belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the thread; the session's newest when it is left out"`
	Turn      belay.TurnID    `json:"turnId,omitempty" jsonschema:"the caller's id of the turn: told twice, it is one turn"`
	Task      belay.TaskID    `json:"taskId,omitempty" jsonschema:"the caller's id of the task that the turn is the first attempt of"`
	Text      string          `json:"text" jsonschema:"what to do"`
	Workspace string          `json:"workspace,omitempty" jsonschema:"folder of a new session; the server's own when it is left out"`
	Title     string          `json:"title,omitempty" jsonschema:"what lists call a new session; the first line of the text"`
	Settings  *Choices        `json:"settings,omitempty" jsonschema:"settings of the session from now on"`
	Queue     string          `json:"queue,omitempty" jsonschema:"while another turn runs: enqueue, steer, collect, interrupt, rollback, reject; as the thread is set when it is left out"`
	Priority  string          `json:"priority,omitempty" jsonschema:"among sessions that wait for a place to run: low, normal, high"`
}

// priorities are the words of SubmitTurn.Priority.
var priorities = map[string]int{"low": -1, "": 0, "normal": 0, "high": 1}

func (in *SubmitTurn) check() error {
	for _, err := range []error{
		id("sessionId", string(in.Session)), id("threadId", string(in.Thread)), id("turnId", string(in.Turn)), id("taskId", string(in.Task)),
		text("text", in.Text, maxMessage), text("title", in.Title, maxTitle), text("workspace", in.Workspace, 4<<10),
	} {
		if err != nil {
			return err
		}
	}
	if strings.TrimSpace(in.Text) == "" {
		return problem.At("text", belay.Errorf(belay.CodeBadCommand, "there is nothing to do: the text is empty"))
	}
	if in.Session == belay.SystemSession {
		return problem.At("sessionId", belay.Errorf(belay.CodeBadState, "the system session takes no work"))
	}
	if err := (belay.Queueing{Mode: belay.QueueMode(in.Queue)}).Check(); err != nil {
		return queueError("queue", err)
	}
	if _, ok := priorities[in.Priority]; !ok {
		return problem.At("priority", belay.Errorf(belay.CodeBadCommand, "%q is none of low, normal, high", shown(in.Priority)))
	}
	return nil
}

// submission is a turn on its way.
type submission struct {
	*request
	in    *SubmitTurn
	text  belay.Content
	state *session.State // of the session as it is; its Session is empty for a new one
}

func submitTurn(ctx context.Context, r *request, in *SubmitTurn) (*Told, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	r.mint(in)
	s := &submission{request: r, in: in}
	var err error
	if s.text, err = r.content(ctx, in.Text); err != nil {
		return nil, err
	}
	if s.state, err = r.seen(ctx, in.Session); err != nil {
		return nil, err
	}
	if s.state.Session == "" {
		if told, err := s.begin(ctx); told != nil || err != nil {
			return told, err
		}
		if s.state, err = r.seen(ctx, in.Session); err != nil {
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
	ans, err := r.Engine.SubmitAll(ctx, orders...)
	if err != nil {
		return nil, turnError(err)
	}
	switch {
	case ans.Wants:
		r.drives.want(in.Session, priorities[in.Priority])
	case !ans.Rests:
		r.stir(ctx, in.Session, priorities[in.Priority])
	case !ans.Wake.IsZero(): // else it waits behind another that asks a person, say
		r.drives.learn([]store.LaneRow{{Session: in.Session, Lane: store.Lane{Wake: ans.Wake}}})
	}
	return s.told(ctx, ans.Position, orders[len(orders)-1].ID, ans.Pending)
}

// turnError says which field an id's conflict is about.
func turnError(err error) error {
	if belay.CodeOf(err) == belay.CodeIDConflict {
		return problem.At("turnId", err)
	}
	return err
}

// mint gives the ids that the caller didn't bring. They follow from the
// Idempotency-Key or the turn's id, so that the request told again means the same.
func (r *request) mint(in *SubmitTurn) {
	base := belay.StreamID("key/" + r.by.TokenID + "/" + r.command + "/" + r.key)
	switch {
	case r.key != "":
	case in.Turn != "":
		base = belay.StreamID("turn/" + string(in.Session) + "/" + string(in.Turn))
	default:
		base = belay.StreamID("once/" + belay.NewID(belay.PrefixCommand))
	}
	derive := func(prefix string) string { return belay.DeriveID(prefix, base, 0, 0) }
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

// firstThread is a session's thread when nobody named one.
func firstThread(id belay.SessionID) belay.ThreadID {
	return belay.ThreadID(belay.DeriveID(belay.PrefixThread, id.Stream(), 0, 0))
}

// begin is the short way for a session that there isn't yet. nil: there is one
// now, or an id is somebody else's; the ordinary way says which.
func (s *submission) begin(ctx context.Context) (*Told, error) {
	named := s.in.Thread
	if named == "" {
		s.in.Thread = firstThread(s.in.Session)
	}
	orders, err := s.orders(ctx)
	if err != nil {
		return nil, err
	}
	ans, begun, err := s.Engine.Begin(ctx, orders...)
	if err != nil {
		return nil, err
	}
	if !begun {
		s.in.Thread = named
		return nil, nil
	}
	s.drives.want(s.in.Session, priorities[s.in.Priority])
	return s.told(ctx, ans.Position, orders[len(orders)-1].ID, false)
}

// before answers a submission that was told before, and refuses one that can't be.
func (s *submission) before(ctx context.Context) (*Told, error) {
	in, st := s.in, s.state
	if n := len(st.Threads); in.Thread == "" && n > 0 {
		in.Thread = st.Threads[n-1]
	} else if in.Thread == "" {
		in.Thread = firstThread(in.Session)
	}
	if err := s.foreign(ctx); err != nil {
		// Perhaps it was told a moment before, and the session knows by now.
		if s.state, _ = s.session(ctx, in.Session); s.state == nil || !slices.Contains(s.state.Turns, in.Turn) {
			return nil, err
		}
		st = s.state
	}
	if st.Session == "" {
		return nil, nil
	}
	if in.Workspace != "" {
		ws, err := s.Wiring.Workspace(ctx, in.Workspace)
		if err != nil {
			return nil, problem.At("workspace", err)
		}
		if ws != st.Workspace {
			return nil, problem.At("workspace", belay.Errorf(belay.CodeBadState, "the session works in another folder").At(string(in.Session)))
		}
	}
	if slices.Contains(st.Turns, in.Turn) {
		return s.repeated(ctx)
	}
	if !slices.Contains(st.Threads, in.Thread) {
		return nil, nil
	}
	var refused error
	err := s.Engine.Look(ctx, in.Session, in.Thread.Stream(), func(d core.Decider) {
		refused = d.(*thread.Decider).State().Takes(belay.QueueMode(in.Queue))
	})
	return nil, cmp.Or(err, refused)
}

// foreign refuses ids of threads and tasks that are another session's.
func (s *submission) foreign(ctx context.Context) error {
	in := s.in
	if !slices.Contains(s.state.Threads, in.Thread) {
		if _, err := s.Store.Head(ctx, in.Thread.Stream()); !errors.Is(err, store.ErrNotFound) {
			return problem.At("threadId", cmp.Or(err, error(belay.Errorf(belay.CodeIDConflict, "thread %s isn't one of this session", in.Thread))))
		}
	}
	if slices.Contains(s.state.Turns, in.Turn) {
		return nil // its task is compared with the one it had
	}
	if _, err := s.Store.Head(ctx, in.Task.Stream()); !errors.Is(err, store.ErrNotFound) {
		return problem.At("taskId", cmp.Or(err, error(belay.Errorf(belay.CodeIDConflict, "task %s exists already", in.Task))))
	}
	return nil
}

// repeated answers a turn that the session knows: it must be the same one. The
// thread may learn of it a moment after the session.
func (s *submission) repeated(ctx context.Context) (*Told, error) {
	soon, cancel := context.WithTimeout(ctx, staleAfter)
	defer cancel()
	for {
		changed := s.Store.Changed(soon)
		told, err := s.submitted(ctx)
		if told != nil || err != nil {
			return told, err
		}
		select {
		case <-changed:
		case <-soon.Done():
			return nil, belay.Errorf(belay.CodeBusy, "turn %s was accepted and isn't handled yet", s.in.Turn).WithHint("repeat the request")
		}
	}
}

// submitted answers a turn that a thread of the session knows; nil: none does.
func (s *submission) submitted(ctx context.Context) (*Told, error) {
	in := s.in
	threads := append([]belay.ThreadID{in.Thread}, s.state.Threads...)
	for _, th := range threads {
		for ev, err := range s.Store.Read(ctx, th.Stream(), 0) {
			if err != nil {
				return nil, err
			}
			p, ok := ev.Data.(event.TurnSubmitted)
			if !ok || ev.IDs.Turn != in.Turn {
				continue
			}
			if th != in.Thread || p.Text.Text != s.text.Text || refOf(p.Text) != refOf(s.text) || ev.IDs.Task != in.Task {
				return nil, problem.At("turnId", belay.Errorf(belay.CodeIDConflict, "turn %s was submitted with another text, thread or task", in.Turn).WithHint("bring a new turn id"))
			}
			told, err := s.told(ctx, 0, "", false)
			told.Repeated = true
			return told, err
		}
	}
	return nil, nil
}

func refOf(c belay.Content) belay.Digest {
	if c.Ref == nil {
		return ""
	}
	return c.Ref.Digest
}

// orders are the commands that the submission becomes.
func (s *submission) orders(ctx context.Context) ([]belay.Order, error) {
	in := s.in
	ws, settings, changed, err := s.settings(ctx)
	if err != nil {
		return nil, err
	}
	rules, err := s.Wiring.Rules(ctx, s.by.String(), ws, settings)
	if err != nil {
		return nil, problem.At("settings", err)
	}
	var out []belay.Order
	add := func(kind string, c belay.Command) {
		base := belay.StreamID(kind + "/" + string(in.Session) + "/" + string(in.Turn))
		out = append(out, s.order(belay.CommandID(belay.DeriveID(belay.PrefixCommand, base, 0, 0)), in.Session, in.Session.Stream(), c))
	}
	switch {
	case s.state.Session == "":
		add("create", belay.CreateSession{Workspace: ws, Title: s.title(), Settings: settings})
	case changed:
		add("update", belay.UpdateSession{Settings: settings})
	}
	add("submit", belay.SubmitWork{Thread: in.Thread, Task: in.Task, Turn: in.Turn, Text: s.text, Rules: rules, Queue: belay.QueueMode(in.Queue)})
	return out, nil
}

func (s *submission) settings(ctx context.Context) (ws string, settings belay.Settings, changed bool, err error) {
	var c Choices
	if s.in.Settings != nil {
		c = *s.in.Settings
	}
	if err := s.mayWiden(ctx, c, s.state); err != nil {
		return "", settings, false, err
	}
	if st := s.state; st.Session != "" {
		if s.in.Settings == nil {
			return st.Workspace, st.Settings, false, nil
		}
		settings, err = s.Wiring.Settings(ctx, st.Workspace, &st.Settings, c)
		return st.Workspace, settings, true, problem.At("settings", err)
	}
	if ws, err = s.Wiring.Workspace(ctx, s.in.Workspace); err != nil {
		return "", settings, false, problem.At("workspace", err)
	}
	settings, err = s.Wiring.Settings(ctx, ws, nil, c)
	return ws, settings, false, problem.At("settings", err)
}

// mayWiden refuses settings by which fewer things would be asked, of somebody who
// may not answer what is asked.
func (r *request) mayWiden(ctx context.Context, c Choices, s *session.State) error {
	if r.by.Role.May(auth.Answer) {
		return nil
	}
	said := func(field, format string, args ...any) error {
		return problem.At("settings."+field, belay.Errorf(belay.CodeForbidden, format, args...).WithHint("a token of role owner may"))
	}
	if len(c.Allow) > 0 {
		return said("allow", "a token of role %s may not allow tools beforehand", r.by.Role)
	}
	switch belay.Mode(c.Mode) {
	case "", belay.ModePlan, belay.ModeUntrusted, belay.ModeNever, s.Settings.Mode:
		return nil
	}
	if s.Session == "" {
		ws, err := r.Wiring.Workspace(ctx, "")
		if err != nil {
			return err
		}
		usual, err := r.Wiring.Settings(ctx, ws, nil, Choices{})
		if err != nil || belay.Mode(c.Mode) == usual.Mode {
			return err
		}
	}
	return said("mode", "a token of role %s may not choose the mode %q", r.by.Role, shown(c.Mode))
}

func (s *submission) title() string {
	title := s.in.Title
	if title == "" {
		title, _, _ = strings.Cut(strings.TrimSpace(s.in.Text), "\n")
	}
	return cut(strings.TrimSpace(s.Wiring.Clean(title)), 80)
}

// told is the answer: where the turn is, and under which run.
func (s *submission) told(ctx context.Context, pos store.Position, cmd belay.CommandID, pending bool) (*Told, error) {
	in := s.in
	t := &Told{Position: pos, Command: cmd, Status: done, Session: in.Session, Thread: in.Thread, Turn: in.Turn, Task: in.Task, Run: firstRun(in.Task)}
	if pending {
		t.Status = notYet
	}
	return t, s.end(ctx, t)
}

// end gives an answer that caused no fact the end of the log as its position.
func (r *request) end(ctx context.Context, t *Told) (err error) {
	if t.Position == 0 {
		t.Position, err = r.Store.End(ctx)
	}
	return err
}

// firstRun is the run of a task's first attempt: it follows from the task's id.
func firstRun(task belay.TaskID) belay.RunID {
	return belay.RunID(belay.DeriveID(belay.PrefixRun, task.Stream(), 3, 0))
}

// order is a command of whoever sent the request.
func (r *request) order(id belay.CommandID, to belay.SessionID, stream belay.StreamID, c belay.Command) belay.Order {
	return belay.Order{ID: id, Principal: r.by.String(), Time: r.now().UTC(), Session: to, Stream: stream, Command: c}
}

// send brings one command to its stream and waits for what becomes of it. Told
// again under its Idempotency-Key it is answered as it was before.
func (r *request) send(ctx context.Context, session belay.SessionID, stream belay.StreamID, c belay.Command) (*Told, error) {
	id := belay.CommandID(belay.NewID(belay.PrefixCommand))
	if r.key != "" {
		base := belay.StreamID("key/" + r.by.TokenID + "/" + r.command + "/" + r.key)
		id = belay.CommandID(belay.DeriveID(belay.PrefixCommand, base, 0, 0))
	}
	ans, err := r.Engine.Submit(ctx, r.order(id, session, stream, c))
	if belay.CodeOf(err) == belay.CodeIDConflict {
		err = problem.At("header Idempotency-Key", err)
	}
	if err != nil {
		return nil, err
	}
	r.drives.want(session, 0)
	t := &Told{Position: ans.Position, Command: id, Status: done, Session: session}
	switch {
	case ans.Pending:
		t.Status = notYet
	case len(ans.Events) == 0 && r.key != "":
		if t.Repeated, err = r.answered(ctx, stream, id); err != nil {
			return nil, err
		}
	}
	return t, r.end(ctx, t)
}

// answered finds what became of a command that was told before: its refusal is
// its answer again.
func (r *request) answered(ctx context.Context, s belay.StreamID, id belay.CommandID) (bool, error) {
	for ev, err := range r.Store.Read(ctx, s, 0) {
		if err != nil {
			return false, err
		}
		if ev.IDs.Request != id {
			continue
		}
		if m, ok := ev.Data.(event.ChannelMessage); ok && m.Kind == "audit" {
			return true, &belay.Error{Code: belay.Code(m.Code), Message: m.Message, Hint: m.Hint}
		}
		return true, nil
	}
	return false, nil
}

// known is a session that there is.
func (r *request) known(ctx context.Context, id belay.SessionID) (*session.State, error) {
	if err := named("sessionId", string(id)); err != nil {
		return nil, err
	}
	s, err := r.session(ctx, id)
	if err == nil && s.Session == "" || errors.Is(err, store.ErrNotFound) {
		err = belay.Errorf(belay.CodeNotFound, "there is no session %s", id)
	}
	return s, problem.At("sessionId", err)
}

// threadOf is a thread of a session: the one that is named, else the newest.
func (r *request) threadOf(ctx context.Context, s *session.State, id belay.ThreadID) (*thread.State, error) {
	if id == "" && len(s.Threads) > 0 {
		id = s.Threads[len(s.Threads)-1]
	}
	if id == "" || !slices.Contains(s.Threads, id) {
		return nil, problem.At("threadId", belay.Errorf(belay.CodeNotFound, "the session has no thread %s", id).At(string(s.Session)))
	}
	return r.thread(ctx, id)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// cut shortens a text to so many characters, in one line.
func cut(s string, most int) string {
	s, _, _ = strings.Cut(s, "\n")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
