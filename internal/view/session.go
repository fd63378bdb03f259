// Package view folds the log into what people look at: one row per session, with
// its turns, tasks, open questions and figures, and the words in it. It promises
// that rows follow from the facts alone: the rows are the same in whichever
// process they are folded, wherever it begins and however often it is
// interrupted; that a session which has all words of a question in its texts is
// found until it is deleted; and that no text can be read from what it keeps of
// words. Rows run behind the log and nothing is decided by them.
package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Bounds of a row: what is older is dropped and only counted.
const (
	maxFiles   = 200
	maxSkills  = 200
	maxPublic  = 100
	maxTasks   = 50
	maxEdges   = 16  // of a task
	maxThreads = 100 // an unfinished one is never dropped
	maxPreview = 240 // bytes of a prompt, a reason, an objective
)

// Session is a row: a session as a list or a page shows it.
type Session struct {
	ID        belay.SessionID `json:"id"`
	Workspace string          `json:"workspace,omitempty"`
	Title     string          `json:"title,omitempty"`
	Tags      []string        `json:"tags,omitempty"`
	Archived  bool            `json:"archived,omitempty"`
	Granted   bool            `json:"granted,omitempty"` // a person allowed something for longer than one call
	Created   time.Time       `json:"created,omitzero"`  // zero: the log has no session.created
	Updated   time.Time       `json:"updated,omitzero"`  // of the newest fact
	Mode      belay.Mode      `json:"mode,omitempty"`
	Provider  string          `json:"provider,omitempty"`
	Model     string          `json:"model,omitempty"`

	Forked   *belay.Fork        `json:"forkedFrom,omitempty"`   // of its first thread
	Imported *belay.Import      `json:"importedFrom,omitempty"` // of its first thread
	Use      belay.WorkspaceUse `json:"use,omitzero"`
	Worktree *belay.Worktree    `json:"worktree,omitempty"`
	Trees    []Tree             `json:"trees,omitempty"`  // worktrees of its agents
	Branch   string             `json:"branch,omitempty"` // that was checked out when a model was told last

	Threads []Thread `json:"threads,omitempty"` // in the order they were heard of first
	Tasks   []Task   `json:"tasks,omitempty"`   // newest last
	Actions []Action `json:"actions,omitempty"` // open ones, oldest first
	Files   []File   `json:"files,omitempty"`   // changed ones, changed last is last

	Artifacts []Artifact `json:"artifacts,omitempty"` // the newest version of each, published last is last

	Skills map[string]int `json:"skills,omitempty"` // that were read, with how often

	Counts   Counts         `json:"counts"`
	Usage    belay.Usage    `json:"usage,omitzero"`
	Cost     event.CostSum  `json:"cost,omitzero"`    // of requests, as far as it is known
	Tokens   int64          `json:"tokens,omitempty"` // of requests, those without an answer too
	Active   belay.Duration `json:"active,omitempty"` // driven time of all turns
	Budget   belay.Amounts  `json:"budget,omitzero"`  // its limit; a kind without an amount isn't limited
	Programs Programs       `json:"programs,omitzero"`
	Position store.Position `json:"position"` // of the last fact in this row
}

// Tree is a worktree that was made for an agent.
type Tree struct {
	Agent belay.SubagentID `json:"subagentId"`
	Name  string           `json:"name"`
	belay.Worktree
	Status string `json:"status"` // running, or how the agent ended
}

// applyTree folds what becomes of worktrees of agents.
func (s *Session) applyTree(e event.Envelope) {
	if p, ok := e.Data.(event.SubagentSpawned); ok && p.Worktree != nil {
		s.Trees = append(s.Trees, Tree{e.IDs.Subagent, cmp.Or(p.Nickname, p.Agent), *p.Worktree, string(Running)})
	}
	i := slices.IndexFunc(s.Trees, func(t Tree) bool { return t.Agent == e.IDs.Subagent && e.Stream.Kind() == belay.KindSession })
	if i < 0 {
		return
	}
	t := &s.Trees[i]
	switch p := e.Data.(type) {
	case event.SubagentInput:
		if t.Removed = false; p.Again {
			t.Status = string(Running)
		}
	case event.SubagentStatus:
		if p.Status == event.SubagentSettled && p.Worktree != nil {
			t.Worktree = *p.Worktree
		}
	case event.SubagentCompleted:
		t.Status = string(p.Outcome)
	case event.SubagentFailed:
		t.Status = string(p.Outcome)
	}
}

// Counts are figures of a session. Tasks and Files count what a row has
// dropped too; a file that comes back after it was dropped counts again.
type Counts struct {
	Events int `json:"events"`
	Turns  int `json:"turns,omitempty"`
	Steps  int `json:"steps,omitempty"`
	Calls  int `json:"calls,omitempty"` // calls that are over
	Tasks  int `json:"tasks,omitempty"`
	Files  int `json:"files,omitempty"`
}

// Status of a turn.
const (
	Queued          = "queued"           // accepted, not begun
	Running         = "running"          // whether it is driven now, the owner knows
	Waiting         = "waiting"          // for a person
	WaitingResource = "waiting_resource" // for a part of the session's budget
	Ended           = "ended"
)

// Turn is a turn as far as it has come.
type Turn struct {
	ID     belay.TurnID `json:"id"`
	Status string       `json:"status"`
	Agent  string       `json:"agent,omitempty"` // whose turn it is, if a file or its kind describes it

	Mode      belay.QueueMode `json:"mode,omitempty"` // how it waits, other than for its turn
	Outcome   belay.Outcome   `json:"outcome,omitempty"`
	Code      string          `json:"code,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Summary   string          `json:"summary,omitempty"`
	Submitted time.Time       `json:"submitted,omitzero"`
	Started   time.Time       `json:"started,omitzero"`
	Ended     time.Time       `json:"ended,omitzero"`
	Active    belay.Duration  `json:"active,omitempty"`
	Back      bool            `json:"back,omitempty"` // it ended, and was taken back
	Steps     int             `json:"steps,omitempty"`
	Calls     int             `json:"calls,omitempty"`
	Usage     belay.Usage     `json:"usage,omitzero"`
}

// Thread is a thread with its running turn, or the one that ended last.
type Thread struct {
	ID     belay.ThreadID `json:"id"`
	Turn   *Turn          `json:"turn,omitempty"`
	Queue  []Turn         `json:"queue,omitempty"`   // accepted turns behind it, in order
	Joined []belay.TurnID `json:"joined,omitempty"`  // turns that are part of it
	Line   belay.Queueing `json:"queueing,omitzero"` // how turns are taken while one runs
	Flying []string       `json:"flying,omitempty"`  // requests and calls that are out

	Running []belay.ProcessID `json:"running,omitempty"` // programs that it started and whose end isn't known
	Last    time.Time         `json:"last,omitzero"`     // of the thread's newest fact
	Depth   int               `json:"depth,omitempty"`   // of a child; 0 is a main thread

	Plan []event.PlanItem `json:"plan,omitempty"`

	Programs Programs `json:"programs,omitzero"` // of this thread, which is one agent's
}

// Task is an objective and how far it is.
type Task struct {
	ID        belay.TaskID   `json:"id"`
	Title     string         `json:"title,omitempty"`
	Objective string         `json:"objective,omitempty"` // its beginning
	Owner     string         `json:"owner,omitempty"`
	Assignee  string         `json:"assignee,omitempty"` // the agent that does it
	Priority  int            `json:"priority,omitempty"`
	Planned   bool           `json:"planned,omitempty"` // it was made to be started later
	Parent    belay.TaskID   `json:"parent,omitempty"`
	Status    string         `json:"status"` // a word of the standard: accepted, running, completed, …
	Reason    string         `json:"reason,omitempty"`
	Attempts  int            `json:"attempts,omitempty"`
	Thread    belay.ThreadID `json:"thread,omitempty"`
	Run       belay.RunID    `json:"run,omitempty"` // the newest

	Progress *TaskProgress `json:"progress,omitempty"` // that was told last
	Delivery string        `json:"delivery,omitempty"` // of a sub-agent's result: pending, delivered, parent_missing

	Checks []TaskCheck `json:"checks,omitempty"` // that it must pass

	Archived bool `json:"archived,omitempty"` // it ended long ago: lists leave it out

	Edges []TaskEdge `json:"edges,omitempty"` // to what else it has to do with, at most 16
}

// TaskProgress is how far a task is.
type TaskProgress struct {
	Phase   string `json:"phase,omitempty"`
	Summary string `json:"summary,omitempty"` // its beginning
	Done    int    `json:"done,omitempty"`
	Total   int    `json:"total,omitempty"`
}

// TaskCheck is a check that a task must pass, and what is known of it.
type TaskCheck struct {
	ID     string          `json:"id"`
	Kind   belay.CheckKind `json:"kind"`
	Status string          `json:"status,omitempty"` // running, passed, failed, unknown, waived; empty: it wasn't looked at yet
	Reason string          `json:"reason,omitempty"`
}

// TaskEdge leads from a task to something that it has to do with.
type TaskEdge struct {
	Relation belay.Relation `json:"relation"`
	Target   string         `json:"target"` // an id
	OnFailed string         `json:"onFailed,omitempty"`
	Met      bool           `json:"met,omitempty"` // of a blocker: it ended well
}

// Action is a question that waits for a person.
type Action struct {
	ID     belay.ActionID `json:"id"`
	Kind   string         `json:"kind"` // permission, question, continue, budget
	Tool   string         `json:"tool,omitempty"`
	Prompt string         `json:"prompt,omitempty"` // its beginning
	Until  time.Time      `json:"until,omitzero"`
	Asked  time.Time      `json:"asked,omitzero"`
	Thread belay.ThreadID `json:"thread,omitempty"`
	Turn   belay.TurnID   `json:"turn,omitempty"`
	Call   belay.CallID   `json:"call,omitempty"`
	Stream belay.StreamID `json:"stream"` // takes the answer
}

// File is a file of the workspace and its outcome in this session.
type File struct {
	Path string    `json:"path"`
	Op   string    `json:"op"` // created, changed, removed
	At   time.Time `json:"at,omitzero"`
	Kept bool      `json:"kept,omitempty"` // every content before a change can be restored
}

// Artifact is something that the session handed over.
type Artifact struct {
	Name    string         `json:"name"`
	Version string         `json:"version"`
	Content belay.Ref      `json:"content"`
	Note    string         `json:"note,omitempty"`
	At      time.Time      `json:"at,omitzero"`
	Thread  belay.ThreadID `json:"thread,omitempty"`
}

// ArtifactOf reads a fact that publishes; false for any other.
func ArtifactOf(e event.Envelope) (Artifact, bool) {
	p, ok := e.Data.(event.ArtifactChanged)
	if !ok || p.Kind != "artifact" || p.After == nil {
		return Artifact{}, false
	}
	return Artifact{Name: p.Name, Version: p.Version, Content: *p.After, Note: p.Note, At: e.Time, Thread: e.IDs.Thread}, true
}

// Turn is the turn to speak of: one that waits for a person before one that
// runs, that before one in a queue, else the one that ended last. Nil when the
// session had none.
func (s *Session) Turn() *Turn {
	var best *Turn
	for i := range s.Threads {
		t := s.Threads[i].Turn
		if t == nil && len(s.Threads[i].Queue) > 0 {
			t = &s.Threads[i].Queue[0]
		}
		if t != nil && t.Status == Ended && s.Threads[i].Depth > 0 { // its parent tells
			continue
		}
		if t != nil && (best == nil || rank(t) > rank(best) || rank(t) == rank(best) && since(t).After(since(best))) {
			best = t
		}
	}
	return best
}

// Main is the newest thread that is no child; nil: there is none.
func (s *Session) Main() *Thread {
	for i := len(s.Threads) - 1; i >= 0; i-- {
		if s.Threads[i].Depth == 0 {
			return &s.Threads[i]
		}
	}
	return nil
}

func rank(t *Turn) int {
	switch t.Status {
	case Waiting:
		return 3
	case Running, WaitingResource:
		return 2
	case Queued:
		return 1
	}
	return 0
}

func since(t *Turn) time.Time {
	if !t.Ended.IsZero() {
		return t.Ended
	}
	return t.Started
}

// Apply folds one fact of the row's session. It takes any fact, in any order,
// and a fact that the row holds already changes nothing.
func Apply(row *Session, rec store.Record) {
	if rec.Position <= row.Position {
		return
	}
	e := rec.Event
	row.Position = rec.Position
	row.ID = e.IDs.Session
	row.Counts.Events++
	if _, let := e.Data.(event.OutputExpired); !let && e.Time.After(row.Updated) { // housekeeping doesn't make a session young
		row.Updated = e.Time
	}
	switch p := e.Data.(type) {
	case event.SessionCreated:
		row.Created, row.Workspace, row.Title = e.Time, p.Workspace, p.Title
		row.settings(p.Settings)
	case event.SessionUpdated:
		if p.Title != "" {
			row.Title = p.Title
		}
		if p.Settings != nil {
			row.settings(*p.Settings)
		}
		if p.Use != nil {
			row.Use = *p.Use
		}
		if p.Worktree != nil {
			row.Worktree = p.Worktree
		}
		row.labelled(p)
	case event.LimitChanged:
		if e.Stream.Kind() == belay.KindSession && p.Op == event.LimitSet {
			row.Budget = p.Limit
		}
	case event.ThreadStarted:
		if len(row.Threads) == 0 {
			row.Forked, row.Imported = p.ForkedFrom, p.ImportedFrom
		}
	case event.ContextResolved:
		for _, line := range p.Environment {
			if branch, ok := strings.CutPrefix(line, "git branch: "); ok && !strings.Contains(branch, " ") {
				row.Branch = preview(branch)
			}
		}
	case event.ArtifactChanged:
		if p.Kind == "file" && p.Path != "" {
			row.changed(File{Path: p.Path, Op: p.Op, At: e.Time, Kept: p.Kept})
		}
		if _, known := row.Skills[p.Name]; p.Kind == "skill" && (known || len(row.Skills) < maxSkills) {
			if row.Skills == nil {
				row.Skills = map[string]int{}
			}
			row.Skills[p.Name]++
		}
	}
	if a, ok := ArtifactOf(e); ok {
		row.Artifacts = slices.DeleteFunc(row.Artifacts, func(o Artifact) bool { return o.Name == a.Name && o.Thread == a.Thread })
		row.Artifacts = newest(append(row.Artifacts, a), maxPublic)
	}
	if _, is := e.Data.(event.PolicyChanged); is {
		row.Granted = true
	}
	row.applyTree(e)
	row.applyTask(e)
	row.applyThread(e)
}

// Spent is what the session has used, as far as it is known.
func (s *Session) Spent() belay.Amounts {
	return belay.Amounts{MicroUSD: s.Cost.MicroUSD, Tokens: s.Tokens, Calls: int64(s.Counts.Calls), Time: s.Active}
}

// spend counts what a request took.
func (s *Session) spend(e event.Envelope) {
	s.Cost = s.Cost.Add(e.Cost())
	used := e.Used()
	s.Tokens = belay.Amounts{Tokens: s.Tokens}.Add(belay.Amounts{Tokens: used.Total()}).Tokens
	if used.Reported {
		s.Usage = s.Usage.Add(used)
	}
}

func (s *Session) settings(b belay.Settings) {
	s.Mode, s.Provider, s.Model = b.Mode, b.Provider, b.Model
}

// labelled keeps tags and whether the session is archived.
func (s *Session) labelled(p event.SessionUpdated) {
	if p.Archived != nil {
		s.Archived = *p.Archived
	}
	tags := slices.DeleteFunc(slices.Concat(s.Tags, p.Tag), func(t string) bool { return slices.Contains(p.Untag, t) })
	slices.Sort(tags)
	if s.Tags = slices.Compact(tags); len(s.Tags) == 0 {
		s.Tags = nil
	}
}

// changed keeps the net effect: what was created here and then removed is no
// change at all.
func (s *Session) changed(f File) {
	s.Counts.Files++
	for i, old := range s.Files {
		if old.Path != f.Path {
			continue
		}
		s.Counts.Files--
		s.Files = append(s.Files[:i], s.Files[i+1:]...)
		switch {
		case old.Op == "created" && f.Op == "removed":
			s.Counts.Files--
			return
		case old.Op == "created":
			f.Op, f.Kept = "created", f.Kept && old.Kept
		case old.Op == "removed" && f.Op == "created":
			f.Op, f.Kept = "changed", old.Kept
		default:
			f.Kept = f.Kept && old.Kept
		}
		break
	}
	s.Files = newest(append(s.Files, f), maxFiles)
}

func newest[T any](s []T, n int) []T {
	if len(s) > n {
		return append(s[:0], s[len(s)-n:]...)
	}
	return s
}
