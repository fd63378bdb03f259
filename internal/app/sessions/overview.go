package sessions

import (
	"context"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/view"
)

// Bounds of an overview.
const (
	overviewOf   = 24 * time.Hour // back
	overviewMost = 50             // of each list
)

// OverviewShown is what needs a person, what runs, and how the last day went. Of each
// list it has the first, and the figures count all.
type OverviewShown struct {
	app.Fresh
	Questions int             `json:"questions"` // that wait for an answer
	Needs     []QuestionShown `json:"needs"`     // of these, the one with the nearest deadline first
	Runs      int             `json:"runs"`      // sessions with a turn that runs
	Running   []NowShown      `json:"running"`   // of these, the one that began last first
	Since     time.Time       `json:"since"`     // from when on what follows counts
	Day       DayShown        `json:"day"`
	Trouble   []NowShown      `json:"trouble"` // sessions whose last turn ended otherwise than completed or cancelled, the newest first
}

// QuestionShown is an open question in a list.
type QuestionShown struct {
	Action  belay.ActionID  `json:"actionId"`
	Session belay.SessionID `json:"sessionId"`
	Title   string          `json:"title,omitempty"`
	Kind    string          `json:"kind"` // permission, question, continue, budget
	Tool    string          `json:"tool,omitempty"`
	Prompt  string          `json:"prompt,omitempty"` // its beginning
	Asked   time.Time       `json:"asked,omitzero"`
	Until   time.Time       `json:"until,omitzero"`
}

// NowShown is a session with its newest turn.
type NowShown struct {
	Session belay.SessionID `json:"sessionId"`
	Title   string          `json:"title,omitempty"`
	Turn    belay.TurnID    `json:"turnId"`
	Began   time.Time       `json:"began,omitzero"`
	Ended   time.Time       `json:"ended,omitzero"`
	Outcome belay.Outcome   `json:"outcome,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Steps   int             `json:"steps,omitempty"`
	Calls   int             `json:"calls,omitempty"`
	Flying  []string        `json:"flying,omitempty"` // requests and calls that are out
	Cost    event.CostSum   `json:"cost,omitzero"`    // of the session
}

// DayShown are figures of the sessions that changed within the last day. Their cost and
// tokens are those of the whole sessions.
type DayShown struct {
	Sessions int                   `json:"sessions"`
	Cost     event.CostSum         `json:"cost,omitzero"`
	Tokens   int64                 `json:"tokens,omitempty"`
	Ends     map[belay.Outcome]int `json:"ends"` // of the last turn of each thread, if it ended within the day
}

// overview looks at the row of each session once.
func overview(ctx context.Context, c *app.Call, f app.Fresh, _ app.Query) (*OverviewShown, error) {
	if err := c.Reads.Views.Catchup(ctx); err != nil {
		return nil, err
	}
	all, err := view.Sessions(ctx, c.Store, view.Filter{})
	if err != nil {
		return nil, err
	}
	out := &OverviewShown{Fresh: f, Since: c.Now().Add(-overviewOf).UTC(), Needs: []QuestionShown{}, Running: []NowShown{}, Trouble: []NowShown{}, Day: DayShown{Ends: map[belay.Outcome]int{}}}
	for i := range all {
		out.add(&all[i])
	}
	out.Questions, out.Runs = len(out.Needs), len(out.Running)
	slices.SortFunc(out.Needs, func(a, b QuestionShown) int { return a.Until.Compare(b.Until) })
	slices.SortFunc(out.Running, func(a, b NowShown) int { return b.Began.Compare(a.Began) })
	slices.SortFunc(out.Trouble, func(a, b NowShown) int { return b.Ended.Compare(a.Ended) })
	out.Needs, out.Running, out.Trouble = first(out.Needs), first(out.Running), first(out.Trouble)
	return out, nil
}

func first[T any](of []T) []T { return of[:min(len(of), overviewMost)] }

// add counts a session.
func (o *OverviewShown) add(s *view.Session) {
	for _, a := range s.Actions {
		o.Needs = append(o.Needs, QuestionShown{a.ID, s.ID, s.Title, a.Kind, a.Tool, a.Prompt, a.Asked, a.Until})
	}
	if s.Updated.After(o.Since) {
		o.Day.Sessions++
		o.Day.Cost, o.Day.Tokens = o.Day.Cost.Add(s.Cost), o.Day.Tokens+s.Tokens
	}
	for _, th := range s.Threads {
		t := th.Turn
		if t == nil {
			continue
		}
		now := NowShown{s.ID, s.Title, t.ID, t.Started, t.Ended, t.Outcome, t.Reason, t.Steps, t.Calls, th.Flying, s.Cost}
		switch {
		case t.Status == view.Running:
			o.Running = append(o.Running, now)
		case t.Status == view.Ended && t.Ended.After(o.Since):
			o.Day.Ends[t.Outcome]++
			if t.Outcome != belay.Completed && t.Outcome != belay.Cancelled {
				o.Trouble = append(o.Trouble, now)
			}
		}
	}
}
