package view

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Lists in which rows stand, and sums that they add to. A filter of sessions is a list, or
// what several lists share: see entry and Filter.lists.
const (
	RunningList  = "running"   // sessions with a turn that runs
	TroubleList  = "trouble"   // sessions with a thread whose last turn ended otherwise than completed or cancelled
	ProgramsList = "programs"  // sessions with programs that run
	TreesList    = "worktrees" // sessions that have worktrees, or had
	GrantsList   = "grants"    // sessions in which a person allowed something for longer
	openList     = "open"      // actions that wait, the nearest deadline first

	folders = "folders" // sessions by folder
	tags    = "tags"    // sessions by tag
	skills  = "skills"  // how often skills were read
	days    = "days"    // figures of the hours in which sessions changed last: hour/what
)

// worksList are the sessions with a turn of an agent that has begun and not ended.
func worksList(agent string) string { return "agent " + strconv.Quote(agent) }

// endsList are the rows of a kind with ids that have the same last digits.
func endsList(prefix, id string) []string {
	if tail := id[max(0, len(id)-leastTail):]; isTail(tail) {
		return []string{prefix + "ends " + tail}
	}
	return nil
}

// scopes are the lists of sessions of which others are parts: all sessions that are
// archived, or all that aren't, and those of them that work in a folder.
func scopes(archived bool, folders ...string) (all []string) {
	which := map[bool]string{false: "sessions", true: "archived"}[archived]
	for _, f := range slices.Compact(append([]string{""}, folders...)) {
		if all = append(all, which); f != "" {
			all[len(all)-1] += " in " + strconv.Quote(f)
		}
	}
	return all
}

func statusIn(scope, status string) string { return scope + " status " + strconv.Quote(status) }
func endedIn(scope string, o belay.Outcome) string {
	return scope + " outcome " + strconv.Quote(string(o))
}
func taggedIn(scope, tag string) string { return scope + " tag " + strconv.Quote(tag) }

// entry is the row as it is saved: with the lists that it stands in, and what it adds.
func (s *Session) entry() (r store.ViewRow) {
	if s.Created.IsZero() { // facts about a session that never was
		return r
	}
	r.Rank = s.Updated.UnixNano()
	add := func(kind, name string, n int64) {
		if n != 0 {
			r.Adds = append(r.Adds, store.Sum{Kind: kind, Name: name, N: max(min(n, maxAdded), -maxAdded)})
		}
	}
	list := func(name string) { r.In = append(r.In, name) }
	in := []string{s.Workspace}
	if s.Worktree != nil && s.Worktree.Repository != s.Workspace {
		in = append(in, s.Worktree.Repository)
	}
	for _, scope := range scopes(s.Archived, in...) {
		list(scope)
		if t := s.Turn(); t != nil {
			list(statusIn(scope, t.Status))
			if t.Outcome != "" {
				list(endedIn(scope, t.Outcome))
			}
		}
		for _, t := range s.Tags {
			list(taggedIn(scope, t))
		}
	}
	for name, is := range s.special() {
		if is {
			list(name)
		}
	}
	r.In = append(r.In, endsList(sessionKey, string(s.ID))...)
	slices.Sort(r.In)
	if f := s.folder(); f != "" {
		add(folders, f, 1)
	}
	for _, t := range s.Tags {
		add(tags, t, 1)
	}
	for name, n := range s.Skills {
		add(skills, name, int64(n))
	}
	s.day(add)
	slices.SortFunc(r.Adds, func(a, b store.Sum) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return r
}

// special are the lists of sessions that something is known of.
func (s *Session) special() map[string]bool {
	all := map[string]bool{TreesList: s.Worktree != nil || len(s.Trees) > 0, GrantsList: s.Granted}
	for i := range s.Threads {
		th := &s.Threads[i]
		all[ProgramsList] = all[ProgramsList] || len(th.Running) > 0
		t := th.Turn
		if t == nil {
			continue
		}
		all[RunningList] = all[RunningList] || t.Status == Running
		all[TroubleList] = all[TroubleList] || t.Troubled()
		if t.Status != Ended && t.Agent != "" {
			all[worksList(t.Agent)] = true
		}
	}
	return all
}

// Troubled reports whether a turn ended otherwise than well.
func (t *Turn) Troubled() bool {
	return t.Status == Ended && t.Outcome != belay.Completed && t.Outcome != belay.Cancelled
}

// Figures of an hour, as sums name them.
const (
	hourSessions  = "sessions"
	hourTokens    = "tokens"
	hourMicroUSD  = "microUsd"
	hourPriced    = "priced"
	hourUnpriced  = "unpriced"
	hourEstimated = "estimated"
	hourEnds      = "ended " // + outcome
)

func hourOf(t time.Time) string { return t.UTC().Format(hourForm) + "/" }

// day adds what the session spent to the hour in which it changed last, and how the last
// turn of each thread ended to the hour of that.
func (s *Session) day(add func(kind, name string, n int64)) {
	for what, n := range map[string]int64{hourSessions: 1, hourTokens: s.Tokens, hourMicroUSD: s.Cost.MicroUSD,
		hourPriced: int64(s.Cost.Priced), hourUnpriced: int64(s.Cost.Unpriced), hourEstimated: int64(s.Cost.Estimated)} {
		add(days, hourOf(s.Updated)+what, n)
	}
	for i := range s.Threads {
		if t := s.Threads[i].Turn; t != nil && t.Status == Ended {
			add(days, hourOf(t.Ended)+hourEnds+string(t.Outcome), 1)
		}
	}
}

// Day is what sessions that changed since an hour have spent, and how the last turns of
// their threads ended that ended since.
type Day struct {
	Sessions int
	Cost     event.CostSum
	Tokens   int64
	Ends     map[belay.Outcome]int
}

// DaySince adds up the hours from the one of a time on.
func DaySince(ctx context.Context, st store.Store, since time.Time) (Day, error) {
	d := Day{Ends: map[belay.Outcome]int{}}
	all, err := st.ViewSums(ctx, Name, store.ViewSums{Kind: days, From: hourOf(since)})
	for _, s := range all {
		_, what, _ := strings.Cut(s.Name, "/")
		switch outcome, ended := strings.CutPrefix(what, hourEnds); {
		case ended:
			d.Ends[belay.Outcome(outcome)] += int(s.N)
		case what == hourSessions:
			d.Sessions += int(s.N)
		case what == hourTokens:
			d.Tokens += s.N
		case what == hourMicroUSD:
			d.Cost.MicroUSD += s.N
		case what == hourPriced:
			d.Cost.Priced += int(s.N)
		case what == hourUnpriced:
			d.Cost.Unpriced += int(s.N)
		case what == hourEstimated:
			d.Cost.Estimated += int(s.N)
		}
	}
	return d, err
}

// SkillUse is how often skills were read in the sessions of the store.
func SkillUse(ctx context.Context, st store.Store) (map[string]int, error) {
	used := map[string]int{}
	all, err := st.ViewSums(ctx, Name, store.ViewSums{Kind: skills})
	for _, s := range all {
		used[s.Name] = int(s.N)
	}
	return used, err
}

// size is how many sessions stand in a list.
func size(ctx context.Context, st store.Store, list string) (int, error) {
	all, err := st.ViewSums(ctx, Name, store.ViewSums{Kind: store.ListSizes, From: list, Most: 1})
	if err != nil || len(all) == 0 || all[0].Name != list {
		return 0, err
	}
	return int(all[0].N), nil
}

// mostOf are the names of the largest sums of a kind.
func mostOf(ctx context.Context, st store.Store, kind string) ([]string, error) {
	all, err := st.ViewSums(ctx, Name, store.ViewSums{Kind: kind, Largest: true, Most: maxChoices})
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names, err
}

// In returns the sessions of a list, the one that changed last first, at most so many; 0 is
// all.
func In(ctx context.Context, st store.Store, list string, most int) (all []Session, err error) {
	err = eachOf(ctx, []*listReader{{st: st, in: []string{list}, next: partOfList}}, nil, func(s *Session) bool {
		all = append(all, *s)
		return most == 0 || len(all) < most
	})
	return all, err
}

// CountIn is how many sessions a list has.
func CountIn(ctx context.Context, st store.Store, list string) (int, error) {
	return size(ctx, st, list)
}

// OpenActions are actions that wait, the one with the nearest deadline first, at most so
// many, and how many there are.
func OpenActions(ctx context.Context, st store.Store, most int) (all []ActionAt, count int, err error) {
	if all, err = openIn(ctx, st, []string{openList}, most); err == nil {
		count, err = size(ctx, st, openList)
	}
	return all, count, err
}

// OpenActionsNamed are the actions that wait and that a text means: their whole id, the
// beginning of it, or its last digits.
func OpenActionsNamed(ctx context.Context, st store.Store, text string) ([]ActionAt, error) {
	lists := []string{openList}
	if tail := endsList(actionKey, text); len(tail) > 0 { // few have it
		lists = append(tail, openList)
	}
	all, err := openIn(ctx, st, lists, mostOpen)
	return slices.DeleteFunc(all, func(a ActionAt) bool { return !Named(string(a.ID), text) }), err
}

// mostOpen bounds the actions in which one is looked for.
const mostOpen = 10_000

// openIn are the actions in lists, with what their sessions say of them.
func openIn(ctx context.Context, st store.Store, lists []string, most int) (all []ActionAt, err error) {
	part, err := st.ViewList(ctx, Name, store.ViewList{In: lists, Most: most})
	if err != nil {
		return nil, err
	}
	sessions := map[belay.SessionID]*Session{}
	for _, r := range part {
		a := ActionAt{ID: belay.ActionID(idOf(actionKey, r.Key))}
		if err := decode(r.Key, r.Data, &a.Place); err != nil {
			return nil, err
		}
		s := sessions[a.Session]
		if s == nil {
			if s, err = load(ctx, st, a.Session); err != nil {
				return nil, err
			}
			sessions[a.Session] = s
		}
		if a.open(s); a.Open != nil { // else it was answered just now
			all = append(all, a)
		}
	}
	return all, nil
}

// open notes what the action's session says of it; nothing, if it doesn't wait.
func (a *ActionAt) open(s *Session) {
	if i := slices.IndexFunc(s.Actions, func(o Action) bool { return o.ID == a.ID }); i >= 0 {
		a.Open, a.Title = &s.Actions[i], s.Title
	}
}

// fewestFirst puts the smallest of lists first.
func fewestFirst(ctx context.Context, st store.Store, in []string) ([]string, error) {
	if len(in) < 2 {
		return in, nil
	}
	sizes := map[string]int{}
	for _, list := range in {
		n, err := size(ctx, st, list)
		if err != nil {
			return nil, err
		}
		sizes[list] = n
	}
	in = slices.Clone(in)
	slices.SortStableFunc(in, func(a, b string) int { return sizes[a] - sizes[b] })
	return in, nil
}

// How many rows of a list are read at once, when how many are needed isn't known: first,
// and at most.
const (
	partOfList = 32
	mostOfList = 1024
)

// listReader reads the rows that stand in lists, part by part.
type listReader struct {
	st     store.Store
	in     []string
	behind *store.Listed
	next   int // rows of the next part
	part   []store.Listed
	over   bool
}

// first is the next row; nil: there is none.
func (r *listReader) first(ctx context.Context) (*store.Listed, error) {
	if len(r.part) == 0 && !r.over {
		part, err := r.st.ViewList(ctx, Name, store.ViewList{In: r.in, Behind: r.behind, Most: r.next})
		if err != nil {
			return nil, err
		}
		r.part, r.over = part, len(part) < r.next
		r.next = min(2*r.next, mostOfList)
	}
	if len(r.part) == 0 {
		return nil, nil
	}
	return &r.part[0], nil
}

func (r *listReader) skip() {
	r.behind, r.part = &r.part[0], r.part[1:]
}

// eachOf hands on the sessions of several lists as if they were one, until take has enough:
// if only isn't nil, those that it has.
func eachOf(ctx context.Context, lists []*listReader, only map[belay.SessionID]bool, take func(*Session) bool) error {
	for {
		var from *listReader
		var best *store.Listed
		for _, r := range lists {
			row, err := r.first(ctx)
			if err != nil {
				return err
			}
			if row != nil && (best == nil || row.Compare(*best) < 0) {
				from, best = r, row
			}
		}
		if best == nil {
			return ctx.Err()
		}
		from.skip()
		if only != nil && !only[store.About(best.Key)] {
			continue
		}
		var s Session
		if err := decode(best.Key, best.Data, &s); err != nil {
			return err
		}
		if !take(&s) {
			return nil
		}
	}
}
