package belay

import (
	"cmp"
	"strings"
)

// AgentLimits bound the sub-agents of a session. 0 is the default, a negative depth none
// at all.
type AgentLimits struct {
	Depth    int `json:"depth,omitempty"`    // of a child; that of the main thread is 0
	Children int `json:"children,omitempty"` // of one agent that are open
	Running  int `json:"running,omitempty"`  // that work at the same time; others wait
	Total    int `json:"total,omitempty"`    // of a turn of a person, with those of its agents

	Memory      int64 `json:"memory,omitempty"`      // bytes that those that work may declare together
	MemoryShare int   `json:"memoryShare,omitempty"` // the same, in percent of the machine's

	Talk string `json:"talk,omitempty"` // with whom they talk besides those that they started: tree; empty: with no others
}

// TalkTree lets agents of a session send one another input, by name.
const TalkTree = "tree"

// MaxOpenAgents is how many children of a session may be open, whatever its limits.
const MaxOpenAgents = 256

// OrDefaults are the limits in force.
func (l AgentLimits) OrDefaults() AgentLimits {
	if l.Memory == 0 && l.MemoryShare == 0 {
		l.MemoryShare = DefaultMemoryShare
	}
	return AgentLimits{Talk: l.Talk, Memory: l.Memory, MemoryShare: l.MemoryShare, Depth: max(cmp.Or(l.Depth, 3), 0), Children: cmp.Or(l.Children, 16), Running: cmp.Or(l.Running, 8), Total: cmp.Or(l.Total, 200)}
}

// DefaultMemoryShare is the percentage of the machine's memory that agents that work may
// declare together.
const DefaultMemoryShare = 75

// MemoryNeed is the memory that the file of an agent declares.
type MemoryNeed struct {
	Declared int64 `json:"declared,omitempty"` // bytes
	Machine  int64 `json:"machine,omitempty"`  // bytes that there are
}

// MemoryLimit is what agents that work may declare together on a machine with so much; 0:
// any.
func (l AgentLimits) MemoryLimit(machine int64) int64 {
	l = l.OrDefaults()
	return least(l.Memory, machine*int64(l.MemoryShare)/100)
}

// Wording is the prompt template of an agent's domain, by which its tasks are told.
type Wording struct {
	Template string `json:"template"` // ORIGIN:NAME@VERSION
	Text     string `json:"text"`     // with TaskPlace where the task belongs
}

// TaskPlace stands in a Wording where the task belongs.
const TaskPlace = "{{task}}"

// Of is a task in these words; of none, the task.
func (w *Wording) Of(task string) string {
	if w == nil || strings.TrimSpace(task) == "" {
		return task
	}
	return strings.TrimSpace(strings.ReplaceAll(w.Text, TaskPlace, task))
}

// Commands about sub-agents.
type (
	// SpawnSubagent asks a session to open a child of one of its threads. The same
	// child asked for again is the child that there is.
	SpawnSubagent struct {
		cmd
		Subagent   SubagentID `json:"subagentId"`
		Parent     ThreadID   `json:"parent"`
		Turn       TurnID     `json:"turn"`           // of the parent
		Call       CallID     `json:"call,omitempty"` // empty: a person, or a program, starts it
		ParentTask TaskID     `json:"parentTask,omitempty"`
		Agent      string     `json:"agent"`
		Nickname   string     `json:"nickname,omitempty"`
		Text       Content    `json:"text"`
		Rules      Ref        `json:"rules"` // the child's, a blob
		Background bool       `json:"background,omitempty"`
		Priority   int        `json:"priority,omitempty"`
		Taint      []string   `json:"taint,omitempty"` // of the parent's conversation
		Acceptance []Check    `json:"acceptance,omitempty"`
		Retry      Retry      `json:"retry,omitzero"`
		Memory     MemoryNeed `json:"memory,omitzero"`
		Lent       Amounts    `json:"-"` // of the money and tokens of the parent's turn
		Team       *Team      `json:"team,omitempty"`

		Begin     *Beginning `json:"begin,omitempty"`     // a copy of the parent's conversation; nil: it begins with the task
		Workspace string     `json:"workspace,omitempty"` // in a worktree; empty: the parent's
		Worktree  *Worktree  `json:"worktree,omitempty"`  // of its own

		Refused *Error `json:"refused,omitempty"` // why it can't be opened: the session records that
	}

	// Team makes a child that of several agents: its task has parts, which they do.
	Team struct {
		Version string   `json:"version,omitempty"`
		Digest  Digest   `json:"digest,omitempty"` // of its file
		Plan    TaskPlan `json:"plan"`             // of its task
		Members Ref      `json:"members"`          // a blob: a list of TeamMember
		Parts   int      `json:"parts"`            // so many
		Taint   []string `json:"taint,omitempty"`  // that each begins with
	}

	// TeamMember is a part of a team's task, and the agent that does it. It is behind those
	// that it begins after.
	TeamMember struct {
		Task      TaskID     `json:"taskId"`
		Agent     string     `json:"agent"`
		Objective Content    `json:"objective"`
		Plan      TaskPlan   `json:"plan"`
		BlockedBy []Blocker  `json:"blockedBy,omitempty"`
		Rules     Ref        `json:"rules"`
		Memory    MemoryNeed `json:"memory,omitzero"`
		Starved   string     `json:"starved,omitempty"` // why it can't begin
	}

	// TellParent tells a thread what became of a child that it asked for: with End how
	// it ended, else that it is open. Code says that it was refused.
	TellParent struct {
		cmd
		Subagent SubagentID  `json:"subagentId"`
		Call     CallID      `json:"call"`
		End      *AttemptEnd `json:"end,omitempty"`
		Again    bool        `json:"again,omitempty"`  // it had ended, and goes on
		Budget   *Amounts    `json:"budget,omitempty"` // what the call lends it
		Agent    string      `json:"agent,omitempty"`  // of one that somebody else started
		Nickname string      `json:"nickname,omitempty"`
		Task     TaskID      `json:"taskId,omitempty"` // of such a one, if it isn't made for it
		Code     string      `json:"code,omitempty"`
		Hint     string      `json:"hint,omitempty"`
	}

	// EndSubagent tells a session how a child ended. The child's task sends it.
	EndSubagent struct {
		cmd
		Subagent SubagentID `json:"subagentId"`
		End      AttemptEnd `json:"end"`
		Inputs   int        `json:"inputs,omitempty"` // that the task had been given by then
	}

	// SendSubagentInput gives a child another text. One that works gets it before its
	// next step; one that has ended goes on with it in a new turn.
	SendSubagentInput struct {
		cmd
		Subagent  SubagentID `json:"subagentId"`
		Name      string     `json:"name,omitempty"` // in its place, where agents may talk: a name or an id
		Turn      TurnID     `json:"turn"`           // of the child, new
		Text      Content    `json:"text"`
		Interrupt bool       `json:"interrupt,omitempty"` // what it does now ends

		Parent ThreadID `json:"parent,omitempty"` // whose call it is; empty: a person's
		Call   CallID   `json:"call,omitempty"`
		Taint  []string `json:"taint,omitempty"` // of the parent's conversation
		Limits Limits   `json:"limits,omitzero"` // what the parent's turn has left
	}

	// ContinueTask gives a task that a sub-agent does another turn: an attempt more.
	ContinueTask struct {
		cmd
		Input    int          `json:"input"` // its number, from 1
		Turn     TurnID       `json:"turn"`
		Text     Content      `json:"text"`
		Rules    Ref          `json:"rules"`
		Queue    QueueMode    `json:"queue,omitempty"`
		Priority int          `json:"priority,omitempty"`
		Wait     bool         `json:"wait,omitempty"`   // until StartTask
		Reason   string       `json:"reason,omitempty"` // why it waits
		Budget   *BudgetGrant `json:"budget,omitempty"`
		Taint    []string     `json:"taint,omitempty"`
		Limits   Limits       `json:"limits,omitzero"`
		Rest     bool         `json:"rest,omitempty"` // it hasn't ended: of money and tokens it has what is left of its own
	}

	// CloseSubagent ends a child, with the children that it started. With grace it gets one
	// more step, in which it can only complete.
	CloseSubagent struct {
		cmd
		Subagent SubagentID `json:"subagentId"`
		Reason   string     `json:"reason,omitempty"`
		Grace    bool       `json:"grace,omitempty"`
	}

	// PauseSubagent makes a child, and those that it started, begin nothing more until
	// they are resumed.
	PauseSubagent struct {
		cmd
		Subagent SubagentID `json:"subagentId"`
		Now      bool       `json:"now,omitempty"` // what is in flight is cancelled
		Reason   string     `json:"reason,omitempty"`
	}

	// ResumeSubagent ends a pause.
	ResumeSubagent struct {
		cmd
		Subagent SubagentID `json:"subagentId"`
		Reason   string     `json:"reason,omitempty"`
	}

	// LimitMode tells the thread of a child that no call of it is decided in a wider mode,
	// or a wider boundary, whatever its rules say. What is empty limits nothing.
	LimitMode struct {
		cmd
		Mode     Mode   `json:"mode,omitempty"`
		Boundary string `json:"boundary,omitempty"`
	}

	// PauseThread tells a thread that it begins nothing more, or does again.
	PauseThread struct {
		cmd
		Op     string `json:"op"`              // paused, resumed
		Now    bool   `json:"now,omitempty"`   // what is in flight is cancelled
		Agent  string `json:"agent,omitempty"` // because of this agent, and only the turn that runs; empty: the thread
		Reason string `json:"reason,omitempty"`
	}
)
