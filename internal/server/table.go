package server

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/problem"
	"github.com/belay-run/belay/internal/store"
)

// Command is a line of the table: what the standard's control plane can be asked.
type Command struct {
	Name    string
	Doc     string
	Scope   auth.Scope
	Mutates bool   // it is recorded, and repeated under one id it is done once
	Later   string // what it waits for; empty: it works

	in, out reflect.Type
	call    func(ctx context.Context, r *request, body []byte) (any, error)
}

// request is a command on its way.
type request struct {
	*tenant
	by      auth.Principal
	command string
	key     string // the caller's Idempotency-Key; empty is none
	server  *Server
	channel string // the caller's Belay-Channel; empty is none
}

// CommandResult is the answer of every command that changes something.
type CommandResult struct {
	Position store.Position  `json:"position"`            // of the last fact that it caused; reads take it as after
	Command  belay.CommandID `json:"commandId,omitempty"` // the facts carry it as requestId
	Status   string          `json:"status"`              // done, or accepted: durable, and not handled yet
	Repeated bool            `json:"repeated,omitempty"`  // it is a repetition; nothing was done again
	Session  belay.SessionID `json:"sessionId,omitempty"`
	Thread   belay.ThreadID  `json:"threadId,omitempty"`
	Turn     belay.TurnID    `json:"turnId,omitempty"`
	Task     belay.TaskID    `json:"taskId,omitempty"`
	Run      belay.RunID     `json:"runId,omitempty"`
	Action   belay.ActionID  `json:"actionId,omitempty"`
	Writer   *OtherWriter    `json:"writer,omitempty"` // of an answer that allows a call: another session writes in the workspace, so the call won't
}

// Words of Told.Status.
const (
	done        = "done"
	notYet      = "accepted"
	maxMessage  = 1 << 20 // bytes of what a turn is given
	maxReason   = 2 << 10
	maxSaid     = 4 << 10 // bytes of an answer
	maxTitle    = 200
	maxKeyBytes = 128
)

// define makes a line of a function with typed input and output.
func define[I, O any](name string, scope auth.Scope, mutates bool, doc string, f func(context.Context, *request, *I) (*O, error)) Command {
	return Command{Name: name, Doc: doc, Scope: scope, Mutates: mutates, in: reflect.TypeFor[I](), out: reflect.TypeFor[O](),
		call: func(ctx context.Context, r *request, body []byte) (any, error) {
			in := new(I)
			if err := decode(body, in); err != nil {
				return nil, err
			}
			return f(ctx, r, in)
		}}
}

// planned makes a line of a command whose subsystem isn't here yet.
func planned(name string, scope auth.Scope, mutates bool, subsystem, doc string) Command {
	return Command{Name: name, Doc: doc, Scope: scope, Mutates: mutates, Later: subsystem}
}

// Commands are the standard's, those of its contract first and then the two that
// only its specification names, and the runtime's own.
var Commands = []Command{
	define("submit_turn", auth.Work, true, "Give a session, a new one if need be, something to do.", submitTurn),
	define("interrupt_turn", auth.Work, true, "End the running turn, or one that waits; its partial text is kept.", interruptTurn),
	define("resume_thread", auth.Work, true, "Go on with an unfinished turn, under other settings perhaps.", resumeThread),
	planned("create_task", auth.Work, true, "tasks", "Create a task without starting it."),
	planned("update_task", auth.Work, true, "tasks", "Change a task's objective or constraints."),
	planned("start_task", auth.Work, true, "tasks", "Start a task that was created."),
	planned("append_task_progress", auth.Work, true, "tasks", "Record progress of a task."),
	planned("pause_task", auth.Work, true, "tasks", "Pause a task."),
	planned("resume_task", auth.Work, true, "tasks", "Go on with a paused task."),
	define("cancel_task", auth.Work, true, "Record the wish to stop a task and interrupt its thread.", cancelTask),
	define("retry_task", auth.Work, true, "Start another attempt of a task that ended without success.", retryTask),
	planned("complete_task", auth.Work, true, "tasks", "Reconcile a task as completed."),
	planned("fail_task", auth.Work, true, "tasks", "Reconcile a task as failed."),
	define("list_tasks", auth.Read, false, "List the tasks of a session.", listTasks),
	define("get_task", auth.Read, false, "Show a task and its attempts.", getTask),
	planned("link_tasks", auth.Work, true, "task graphs", "Add an edge between tasks."),
	planned("unlink_tasks", auth.Work, true, "task graphs", "Remove an edge between tasks."),
	define("respond_action", auth.Answer, true, "Answer what an agent asks: allow, deny, or answer.", respondAction),
	define("remove_queued_turn", auth.Work, true, "Remove a turn that waits.", removeQueuedTurn),
	define("promote_queued_turn", auth.Work, true, "Move a waiting turn to the front, or to another place.", promoteQueuedTurn),
	define("get_session", auth.Read, false, "Show a session: its threads, tasks, open questions and figures.", getSession),
	define("get_thread_read", auth.Read, false, "Show a thread: its turn, what waits behind it, what it asks.", getThreadRead),
	define("get_tool_inventory", auth.Read, false, "List the tools of a session, or of a workspace.", getToolInventory),
	planned("spawn_subagent", auth.Work, true, "sub-agents", "Start a child."),
	planned("send_subagent_input", auth.Work, true, "sub-agents", "Send a child input."),
	planned("wait_subagents", auth.Read, false, "sub-agents", "Wait for children."),
	planned("close_subagent", auth.Work, true, "sub-agents", "End a child."),
	planned("export_evidence", auth.Read, false, "evidence", "Export an evidence pack."),
	planned("export_replay", auth.Read, false, "replay", "Export a replay case."),
	define("evaluate_permission", auth.Read, false, "Say what the rules that count now make of a call, and why; nothing is recorded.", evaluatePermission),
	define("resolve_permission", auth.Answer, true, "Answer a question of the gate: allow or deny.", resolvePermission),
	define("get_execution_environment", auth.Read, false, "Show a session's workspace and the boundary of its processes.", getExecutionEnvironment),
	define("write_process_stdin", auth.Work, true, "Give a program in the background input.", writeProcessStdin),
	define("terminate_process", auth.Work, true, "End a program in the background, with all it started.", terminateProcess),
	planned("list_subagents", auth.Read, false, "sub-agents", "List children."),
	planned("create_job", auth.Work, true, "jobs", "Create a job."),
	planned("get_job", auth.Read, false, "jobs", "Show a job."),
	planned("cancel_job", auth.Work, true, "jobs", "Cancel a job."),
	define("reconnect_channel", auth.Read, true, "Register a channel, or recover one: a snapshot, and where its stream continues.", reconnectChannel),
	define("ack_events", auth.Read, true, "Acknowledge what a channel has, up to a position.", ackEvents),
	planned("export_review", auth.Read, false, "evidence", "Export a review."),
	planned("start_benchmark_trial", auth.Work, true, "benchmarks", "Start a trial."),
	planned("record_benchmark_reward", auth.Work, true, "benchmarks", "Record a reward."),
	planned("export_benchmark_trial", auth.Read, false, "benchmarks", "Export a trial."),
	planned("compare_benchmark_runs", auth.Read, false, "benchmarks", "Compare trials."),
	planned("resume_subagent", auth.Work, true, "sub-agents", "Go on with a child."),
	planned("list_jobs", auth.Read, false, "jobs", "List jobs."),

	// The runtime's own.
	define("reorder_queued_turns", auth.Work, true, "Put the turns that wait into another order.", reorderQueuedTurns),
	define("configure_queue", auth.Work, true, "Set how a thread takes turns while one runs.", configureQueue),
	define("list_grants", auth.Read, false, "List what people allowed in a session and that counts yet.", listGrants),
	define("revoke_grant", auth.Answer, true, "Take back what a person allowed; it counts from the next call that is judged.", revokeGrant),
}

// Own is how many commands at the end of the table aren't the standard's.
const Own = 4

// find is a line of the table, or nil.
func find(name string) *Command {
	i := slices.IndexFunc(Commands, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &Commands[i]
}

// command answers POST /v1/commands/{name}.
func (s *Server) command(w http.ResponseWriter, r *http.Request) {
	c := find(r.PathValue("name"))
	if c == nil {
		s.forbid(w, r, problem.At("path name", belay.Errorf(belay.CodeNotFound, "there is no command %q", problem.Shown(r.PathValue("name"))).WithHint("GET /v1/openapi.json lists them")))
		return
	}
	s.perform(w, r, c, nil)
}

// perform lets a command through if its caller may, does it, records it and
// answers. change, if it isn't nil, makes the command's body of another one.
func (s *Server) perform(w http.ResponseWriter, r *http.Request, c *Command, change func([]byte) ([]byte, error)) {
	if err := auth.Check(r.Context(), c.Scope); err != nil {
		s.forbid(w, r, err)
		return
	}
	begun := s.c.Now()
	req, out, err := s.do(w, r, c, change)
	s.metrics.command(c.Name, string(codeOf(err)), s.c.Now().Sub(begun))
	if err == nil {
		writeJSON(w, http.StatusOK, out)
		return
	}
	if belay.CodeOf(err) == belay.CodeInternal {
		s.c.Log.Error("command", "command", c.Name, "error", err.Error())
	}
	if req == nil { // it didn't come as far as a tenant
		s.forbid(w, r, err)
		return
	}
	problem.Write(w, r, err)
}

func codeOf(err error) belay.Code {
	if err == nil {
		return accepted
	}
	return problem.Of(err).Code
}

func (s *Server) do(w http.ResponseWriter, r *http.Request, c *Command, change func([]byte) ([]byte, error)) (*request, any, error) {
	p, _ := auth.From(r.Context())
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKeyBytes || len(r.Header.Values("Idempotency-Key")) > 1 {
		return nil, nil, problem.At("header Idempotency-Key", belay.Errorf(belay.CodeBadCommand, "the key must be one of at most %d bytes", maxKeyBytes).WithHint("send one header, with a key such as a UUID"))
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, nil, err
	}
	if change != nil {
		if body, err = change(body); err != nil {
			return nil, nil, err
		}
	}
	if c.Mutates {
		if err := s.working(); err != nil {
			return nil, nil, err
		}
	}
	t, err := s.tenant(r.Context(), p.Tenant)
	if err != nil {
		return nil, nil, err
	}
	req := &request{tenant: t, by: p, command: c.Name, key: key, server: s, channel: r.Header.Get(channelHeader)}
	if err := req.ofChannel(r.Context()); err != nil {
		return nil, nil, c.withHint(err)
	}
	var out any
	if c.Later != "" {
		err = unavailable(c, body)
	} else {
		out, err = c.call(r.Context(), req, body)
		err = c.withHint(err)
	}
	if !c.Mutates && err == nil {
		return req, out, nil
	}
	e := entry{principal: p.String(), command: c.Name, code: codeOf(err), at: s.c.Now()}
	if !c.Mutates {
		t.audit.reader(r.Context(), e, c.Name)
		return req, nil, err
	}
	if told, ok := out.(*CommandResult); ok && err == nil {
		e.request, e.message = told.Command, string(told.Session)
	}
	s.c.Log.Info("command", "tenant", p.Tenant, "principal", p.String(), "command", c.Name, "code", string(e.code), "request", string(e.request), "session", e.message)
	if aerr := t.audit.record(r.Context(), e); aerr != nil && err == nil {
		return req, nil, aerr // it is done, and repeated it answers the same
	}
	return req, out, err
}

// withHint adds a hint to a refusal that has none: to look at what the command
// takes.
func (c *Command) withHint(err error) error {
	e, ok := errors.AsType[*belay.Error](err)
	p := problem.Of(err)
	if !ok || p.Hint != "" || p.Status >= http.StatusInternalServerError || p.RetryAfter > 0 {
		return err
	}
	said := *e
	return problem.At(p.Field, said.WithHint("GET /v1/openapi.json describes %s", c.Name))
}

// unavailable is the answer of a command whose subsystem isn't here, to a body
// that could be one.
func unavailable(c *Command, body []byte) error {
	if err := unambiguous(body); err != nil {
		return err
	}
	return belay.Errorf(belay.CodeUnavailable, "this build has no %s: %s can't be done", c.Later, c.Name).WithHint("GET /v1/openapi.json says which commands work")
}
