package sessions

import (
	"context"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/store"
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
	Running   []NowShown      `json:"running"`   // of these that changed last, the one that began last first
	Since     time.Time       `json:"since"`     // from when on what follows counts: an hour that began a day ago
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

// overview reads the rows that it shows, and sums of all.
func overview(ctx context.Context, c *app.Call, f app.Fresh, _ app.Query) (*OverviewShown, error) {
	if err := c.Reads.Views.Catchup(ctx); err != nil {
		return nil, err
	}
	out := &OverviewShown{Fresh: f, Since: c.Now().UTC().Add(-overviewOf).Truncate(time.Hour), Needs: []QuestionShown{}, Running: []NowShown{}, Trouble: []NowShown{}}
	for _, fill := range []func(context.Context, store.Store) error{out.needs, out.running, out.trouble} {
		if err := fill(ctx, c.Store); err != nil {
			return nil, err
		}
	}
	day, err := view.DaySince(ctx, c.Store, out.Since)
	out.Day = DayShown(day)
	return out, err
}

// needs lists questions.
func (o *OverviewShown) needs(ctx context.Context, st store.Store) error {
	all, n, err := view.OpenActions(ctx, st, overviewMost)
	for _, at := range all {
		a := at.Open
		o.Needs = append(o.Needs, QuestionShown{a.ID, at.Session, at.Title, a.Kind, a.Tool, a.Prompt, a.Asked, a.Until})
	}
	o.Questions = n
	return err
}

// running lists the turns that run, of the sessions that changed last.
func (o *OverviewShown) running(ctx context.Context, st store.Store) (err error) {
	if o.Runs, err = view.CountIn(ctx, st, view.RunningList); err != nil {
		return err
	}
	all, err := view.In(ctx, st, view.RunningList, overviewMost)
	for i := range all {
		o.Running = append(o.Running, nowOf(&all[i], func(t *view.Turn) bool { return t.Status == view.Running })...)
	}
	slices.SortFunc(o.Running, func(a, b NowShown) int { return b.Began.Compare(a.Began) })
	o.Running = first(o.Running)
	return err
}

// trouble lists the turns that ended badly, of the sessions that changed last.
func (o *OverviewShown) trouble(ctx context.Context, st store.Store) error {
	all, err := view.In(ctx, st, view.TroubleList, overviewMost)
	for i := range all {
		o.Trouble = append(o.Trouble, nowOf(&all[i], func(t *view.Turn) bool { return t.Troubled() && !t.Ended.Before(o.Since) })...)
	}
	slices.SortFunc(o.Trouble, func(a, b NowShown) int { return b.Ended.Compare(a.Ended) })
	o.Trouble = first(o.Trouble)
	return err
}

func first[T any](of []T) []T { return of[:min(len(of), overviewMost)] }

// nowOf are the turns of a session's threads that are meant.
func nowOf(s *view.Session, takes func(*view.Turn) bool) (all []NowShown) {
	for _, th := range s.Threads {
		if t := th.Turn; t != nil && takes(t) {
			all = append(all, NowShown{s.ID, s.Title, t.ID, t.Started, t.Ended, t.Outcome, t.Reason, t.Steps, t.Calls, th.Flying, s.Cost})
		}
	}
	return all
}
