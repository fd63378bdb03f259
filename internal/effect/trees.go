package effect

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
)

// Trees makes worktrees for sub-agents, beside the store.
type Trees interface {
	// Plan is the worktree for an id whose workspace is a folder of a repository, and the
	// folder in it that the workspace is. Nothing is made.
	Plan(ctx context.Context, workspace, id string) (t belay.Worktree, inside string, err error)
	// Add makes a worktree, unless it is there.
	Add(ctx context.Context, t belay.Worktree) error
	// Settle removes a worktree in which nothing was changed, unless keep; of another one
	// it says what was changed.
	Settle(ctx context.Context, t belay.Worktree, keep bool) (belay.Worktree, belay.Diffstat, []string, error)
}

// ready makes the worktree that a folder lies in, if it is one of a sub-agent and isn't
// there: it is made when it is needed first, and again when it was removed.
func (e *Performers) ready(ctx context.Context, dir string) error {
	t := e.rules.tree(dir)
	if t == nil || e.c.Trees == nil {
		return nil
	}
	unlock, err := e.trees.Lock(ctx, t.Repository)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	return e.c.Trees.Add(ctx, *t)
}

// settleTree looks at the worktree of a sub-agent that has ended.
func (v *performer) settleTree(ctx context.Context, eff core.SettleTree) []core.Fact {
	p := event.SubagentStatus{Status: event.SubagentSettled, Worktree: &eff.Tree}
	if v.e.c.Trees == nil {
		p.Reason = "nothing here can look at worktrees"
		return []core.Fact{{IDs: eff.IDs, Data: p}}
	}
	unlock, err := v.e.trees.Lock(ctx, eff.Tree.Repository)
	if err != nil {
		return nil // the next drive looks
	}
	defer unlock()
	t, diff, files, err := v.e.c.Trees.Settle(ctx, eff.Tree, eff.Keep || v.e.background.in(eff.Tree.Path))
	switch {
	case ctx.Err() != nil:
		return nil // the next drive looks
	case err != nil:
		p.Reason = event.CutText(v.e.c.Secrets.String(err.Error()), 1000)
	default:
		p.Worktree, p.Diff, p.Changed = &t, &diff, event.Fitting(files, 2<<10)
	}
	return []core.Fact{{IDs: eff.IDs, Data: p}}
}

// in reports whether a program runs in a folder.
func (b *backgroundPrograms) in(dir string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.all, func(p backgroundProcess) bool { return p.workspace == dir || strings.HasPrefix(p.workspace, dir+"/") })
}

// showResults puts the result of a call together of what sub-agents ended with. The model
// is shown as much as of any other tool.
func (v *performer) showResults(ctx context.Context, eff core.ShowResults) []core.Fact {
	if eff.Tree {
		return v.showTree(ctx, eff)
	}
	var all []thread.ChildResult
	err := json.Unmarshal(eff.Results, &all)
	for i := range all {
		if err == nil && all[i].ChildEnd != nil {
			err = v.complete(ctx, all[i].ChildEnd)
		}
	}
	var text []byte
	if err == nil && eff.One && len(all) == 1 {
		text, err = json.Marshal(all[0])
	} else if err == nil {
		text, err = json.Marshal(all)
	}
	return v.showJSON(ctx, eff, text, err)
}

// showJSON is the result of a call with a text, unless there was an error.
func (v *performer) showJSON(ctx context.Context, eff core.ShowResults, text []byte, err error) []core.Fact {
	p := event.ToolResult{Name: eff.Name, Attempt: 1, Digest: belay.DigestOf(text)}
	var shown string
	if err == nil {
		shown, p.Whole, err = v.e.shown(ctx, belay.ToolSpec{}, string(text))
	}
	if err == nil {
		p.Output, err = v.e.content(ctx, shown, "application/json")
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		problem := event.Problem{Class: tool.Internal, Code: "INTERNAL", Message: v.e.c.Secrets.String(err.Error())}
		return []core.Fact{{IDs: eff.IDs, Data: event.ToolFailed{Name: eff.Name, Attempt: 1, Problem: problem, Final: true}}}
	}
	return []core.Fact{{IDs: eff.IDs, Data: p}}
}

// agentOfTree is an agent as its tree is shown to a model.
type agentOfTree struct {
	ID     belay.SubagentID `json:"agentId"`
	Name   string           `json:"name,omitempty"`
	Agent  string           `json:"agent"`
	Status string           `json:"status"`
	Doing  string           `json:"doing,omitempty"`
	Below  []agentOfTree    `json:"agents,omitempty"`
}

// showTree shows the agents below the caller, what the limits have room for, and what the
// caller has left: what list_subagents says, in few words.
func (v *performer) showTree(ctx context.Context, eff core.ShowResults) []core.Fact {
	var read struct {
		Agents []struct {
			agentOfTree
			ID     belay.SubagentID `json:"subagentId"`
			Parent belay.ThreadID   `json:"parentThreadId"`
			Thread belay.ThreadID   `json:"threadId"`
		} `json:"agents"`
		Free json.RawMessage `json:"free"`
		Left json.RawMessage `json:"left"`
	}
	if v.e.c.Command == nil {
		return v.showJSON(ctx, eff, nil, errors.New("nothing here performs commands"))
	}
	body, err := json.Marshal(struct {
		Session belay.SessionID `json:"sessionId"`
		Thread  belay.ThreadID  `json:"threadId"`
	}{eff.IDs.Session, eff.IDs.Thread})
	var answer []byte
	if err == nil {
		answer, err = v.e.c.Command(ctx, eff.IDs, "list_subagents", body)
	}
	if err == nil {
		err = json.Unmarshal(answer, &read)
	}
	var below func(belay.ThreadID) []agentOfTree
	below = func(parent belay.ThreadID) (all []agentOfTree) {
		for _, a := range read.Agents {
			if a.Parent == parent {
				a.agentOfTree.ID, a.Below = a.ID, below(a.Thread)
				all = append(all, a.agentOfTree)
			}
		}
		return all
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(struct {
			Agents []agentOfTree   `json:"agents"`
			Free   json.RawMessage `json:"freePlaces"`
			Left   json.RawMessage `json:"budgetLeft"`
		}{append([]agentOfTree{}, below(eff.IDs.Thread)...), read.Free, read.Left})
	}
	return v.showJSON(ctx, eff, text, err)
}

// complete puts the whole texts in place of what a fact has of them. What isn't kept any
// more stays as it is.
func (v *performer) complete(ctx context.Context, end *thread.ChildEnd) error {
	if end.Whole != nil {
		var said struct {
			Summary string          `json:"summary"`
			Output  json.RawMessage `json:"output"`
		}
		if raw, err := v.e.c.Store.Get(ctx, end.Whole.Digest); err == nil && json.Unmarshal(raw, &said) == nil {
			end.Summary, end.Output, end.Whole = strings.TrimSpace(said.Summary), said.Output, nil
		}
	}
	if end.More != nil {
		if raw, err := v.e.c.Store.Get(ctx, end.More.Digest); err == nil {
			end.Partial, end.More = string(raw), nil
		}
	}
	return ctx.Err()
}
