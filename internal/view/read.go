package view

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Filter chooses sessions. The zero value takes all.
type Filter struct {
	Workspace string                   // only sessions of this workspace, and of worktrees that were made of it
	Status    string                   // only sessions whose Turn has this status
	Tags      []string                 // only sessions that have them all
	Archived  *bool                    // only sessions that are archived, or only others
	Text      string                   // only sessions whose title, id or branch has it
	Found     map[belay.SessionID]bool // and these
	Outcome   belay.Outcome            // only sessions whose Turn ended so
	Before    *Session                 // only those behind this one in the list: its id and when it changed
	Limit     int                      // at most so many, the newest; 0 is all

	only map[belay.SessionID]bool // that the text means; nil: there is no text
}

// Sessions lists sessions, the one that changed last first. It shows what was
// folded so far: call Catchup before to see the end of the log. What it costs follows from
// how many it returns; with a text, from how many there are.
func Sessions(ctx context.Context, st store.Store, f Filter) (all []Session, err error) {
	if err = f.look(ctx, st); err != nil {
		return nil, err
	}
	return f.sessions(ctx, st)
}

func (f Filter) sessions(ctx context.Context, st store.Store) (all []Session, err error) {
	err = f.each(ctx, st, func(s *Session) bool {
		all = append(all, *s)
		return f.Limit == 0 || len(all) < f.Limit
	})
	return all, err
}

// Page is a part of a list of sessions, and by what all sessions can be chosen.
type Page struct {
	Sessions []Session
	Total    int      // that are chosen, apart from Before and Limit
	Folders  []string // of all sessions, those of the most sessions first
	Tags     []string // of all sessions, likewise
}

// maxChoices bounds the folders and tags of a page.
const maxChoices = 50

// PageOf is Sessions, with what a page says besides.
func PageOf(ctx context.Context, st store.Store, f Filter) (p Page, err error) {
	if err = f.look(ctx, st); err == nil {
		p.Sessions, err = f.sessions(ctx, st)
	}
	if err == nil {
		p.Total, err = f.count(ctx, st)
	}
	if err == nil {
		p.Folders, err = mostOf(ctx, st, folders)
	}
	if err == nil {
		p.Tags, err = mostOf(ctx, st, tags)
	}
	return p, err
}

// lists are the lists that the chosen sessions share, but for the text: of those that are
// archived, and of the others. Each is a list of lists.
func (f Filter) lists() (all [][]string) {
	for _, archived := range []bool{false, true} {
		if f.Archived != nil && *f.Archived != archived {
			continue
		}
		scope := scopes(archived, f.Workspace)
		in := scope[len(scope)-1]
		var of []string
		if f.Outcome != "" {
			of = append(of, endedIn(in, f.Outcome))
		}
		if f.Status != "" {
			of = append(of, statusIn(in, f.Status))
		}
		for _, t := range f.Tags {
			of = append(of, taggedIn(in, t))
		}
		if len(of) == 0 {
			of = []string{in}
		}
		all = append(all, of)
	}
	return all
}

// each hands on the chosen sessions behind Before, in order, until take has enough.
func (f Filter) each(ctx context.Context, st store.Store, take func(*Session) bool) error {
	var behind *store.Listed
	if f.Before != nil {
		behind = &store.Listed{Key: sessionKey + string(f.Before.ID), Rank: f.Before.Updated.UnixNano()}
	}
	if f.few() {
		return f.eachOf(ctx, st, behind, take)
	}
	part := partOfList
	if f.Limit > 0 && f.only == nil {
		part = min(f.Limit, mostOfList)
	}
	var merged []*listReader
	for _, in := range f.lists() {
		in, err := fewestFirst(ctx, st, in)
		if err != nil {
			return err
		}
		merged = append(merged, &listReader{st: st, in: in, behind: behind, next: part})
	}
	return eachOf(ctx, merged, f.only, take)
}

// eachOf is each, of few sessions.
func (f Filter) eachOf(ctx context.Context, st store.Store, behind *store.Listed, take func(*Session) bool) error {
	all, err := SessionsByID(ctx, st, slices.Collect(maps.Keys(f.only)))
	for i := range all {
		at := store.Listed{Key: sessionKey + string(all[i].ID), Rank: all[i].Updated.UnixNano()}
		if f.takes(&all[i]) && (behind == nil || behind.Compare(at) < 0) && !take(&all[i]) {
			return nil
		}
	}
	return err
}

// takes reports whether a session is chosen, but for the text.
func (f Filter) takes(s *Session) bool {
	in := s.entry().In
	return slices.ContainsFunc(f.lists(), func(lists []string) bool {
		return !slices.ContainsFunc(lists, func(list string) bool { return !slices.Contains(in, list) })
	})
}

// fewFound is how many sessions that a text means are looked at each. Of more, the list of
// sessions has the newest soon.
const fewFound = 500

func (f Filter) few() bool { return f.only != nil && len(f.only) <= fewFound }

// look finds the sessions that the text means. Names are short, so all are looked at.
func (f *Filter) look(ctx context.Context, st store.Store) error {
	if f.Text == "" {
		return nil
	}
	text := strings.ToLower(f.Text)
	f.only = map[belay.SessionID]bool{}
	maps.Copy(f.only, f.Found)
	for key, names := range st.ViewRows(ctx, Name, namesKey) {
		id, is := strings.CutPrefix(key, namesKey)
		if !is {
			break
		}
		if strings.Contains(id, text) || strings.Contains(string(names), text) {
			f.only[belay.SessionID(id)] = true
		}
	}
	return ctx.Err()
}

// count is how many sessions are chosen, apart from Before and Limit.
func (f Filter) count(ctx context.Context, st store.Store) (n int, err error) {
	if f.few() {
		err = f.eachOf(ctx, st, nil, func(*Session) bool { n++; return true })
		return n, err
	}
	for _, in := range f.lists() {
		of, err := f.countIn(ctx, st, in)
		if err != nil {
			return 0, err
		}
		n += of
	}
	return n, nil
}

// countIn is how many of the chosen sessions stand in lists.
func (f Filter) countIn(ctx context.Context, st store.Store, in []string) (n int, err error) {
	if len(in) == 1 && f.only == nil {
		return size(ctx, st, in[0])
	}
	if in, err = fewestFirst(ctx, st, in); err != nil {
		return 0, err
	}
	if f.only == nil {
		all, err := st.ViewCount(ctx, Name, in...)
		return int(all), err
	}
	for q := (store.ViewList{In: in, Most: mostOfList, Bare: true}); ; {
		part, err := st.ViewList(ctx, Name, q)
		if err != nil {
			return 0, err
		}
		for i := range part {
			if f.only[store.About(part[i].Key)] {
				n++
			}
		}
		if len(part) < q.Most {
			return n, nil
		}
		q.Behind = &part[len(part)-1]
	}
}

// folder is where a session works; of a worktree, what it was made of.
func (s *Session) folder() string {
	if s.Worktree != nil {
		return s.Worktree.Repository
	}
	return s.Workspace
}

// WorksIn reports whether a session works in a folder, or in a worktree that was made of it.
func (s *Session) WorksIn(folder string) bool {
	return s.Workspace == folder || s.Worktree != nil && s.Worktree.Repository == folder
}

// names are what a session is called, in lower case.
func (s *Session) names() string {
	all := []string{s.Title, s.Branch}
	if s.Worktree != nil {
		all = append(all, s.Worktree.Branch)
	}
	return strings.ToLower(strings.Join(all, "\n"))
}

// inList compares the places of two sessions in a list.
func inList(a, b Session) int {
	return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(string(a.ID), string(b.ID)))
}

// SessionByID is one session. The beginning of its id is enough if no other
// session's id begins so, as are its last six or more characters: ids begin with the
// time, so lists show how they end.
func SessionByID(ctx context.Context, st store.Store, id string) (Session, error) {
	key, data, err := find(ctx, st, sessionKey, id, "session")
	if err != nil {
		return Session{}, err
	}
	var s Session
	if err := decode(key, data, &s); err != nil {
		return Session{}, err
	}
	if s.Created.IsZero() { // facts about a session that never was: refused commands
		return Session{}, missing("session", id)
	}
	return s, nil
}

// SessionsByID are sessions by their whole ids, the one that changed last first. Those that
// the view hasn't heard of are left out.
func SessionsByID(ctx context.Context, st store.Store, ids []belay.SessionID) (all []Session, err error) {
	for _, id := range ids {
		s, err := load(ctx, st, id)
		if err != nil {
			return nil, err
		}
		if !s.Created.IsZero() {
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, inList)
	return all, nil
}

// ActionAt finds the place of an action: its answer goes to Stream. It is found
// also after it was answered; Open tells.
type ActionAt struct {
	Place
	ID   belay.ActionID
	Open *Action // nil once it is answered, or its turn has ended

	Title string // of its session, while it waits
}

// ActionByID finds an action by its id or an unambiguous beginning of it.
func ActionByID(ctx context.Context, st store.Store, id string) (ActionAt, error) {
	key, data, err := find(ctx, st, actionKey, id, "action")
	if err != nil {
		return ActionAt{}, err
	}
	a := ActionAt{ID: belay.ActionID(idOf(actionKey, key))}
	if err := decode(key, data, &a.Place); err != nil {
		return ActionAt{}, err
	}
	s, err := load(ctx, st, a.Session)
	if err != nil {
		return ActionAt{}, err
	}
	a.open(s)
	return a, nil
}

// RunAt finds the place of a run.
type RunAt struct {
	Place
	ID belay.RunID
}

// RunByID finds a run, also one that is over, by its whole id.
func RunByID(ctx context.Context, st store.Store, id belay.RunID) (RunAt, error) {
	r := RunAt{ID: id}
	prefix := runKey + string(id) + "/"
	for key, data := range st.ViewRows(ctx, Name, prefix) {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		return r, decode(key, data, &r.Place)
	}
	return r, cmp.Or(ctx.Err(), error(belay.Errorf(belay.CodeNotFound, "no run %s in this store", id)))
}

// At is the position up to which the view of sessions is folded.
func At(ctx context.Context, st store.Store) (store.Position, error) {
	return Projector{Store: st}.At(ctx)
}

// leastTail is how many of the last digits of an id are enough to name it, if no other
// has the same.
const leastTail = 6

// Named reports whether a text means an id: it is its beginning, or its last digits.
func Named(id, text string) bool {
	return strings.HasPrefix(id, text) || isTail(text) && strings.HasSuffix(id, text)
}

// Tails are sessions' ids as lists show them: as many of the last digits as tell them
// apart, six at least; of an id that doesn't end in digits, all of it.
func Tails(all []Session) []string {
	out := make([]string, len(all))
	for n := leastTail; ; n += 2 {
		seen, same, cut := map[string]bool{}, false, false
		for i, s := range all {
			out[i] = tailOf(string(s.ID), n)
			same, cut = same || seen[out[i]], cut || len(out[i]) < len(s.ID)
			seen[out[i]] = true
		}
		if !same || !cut {
			return out
		}
	}
}

// Tail is an id as a list shows it where others can't be mistaken for it.
func Tail(id string) string { return tailOf(id, leastTail) }

// tailOf is the last n digits of an id; all of one that doesn't end in so many.
func tailOf(id string, n int) string {
	if tail := id[max(0, len(id)-n):]; isTail(tail) {
		return tail
	}
	return id
}

// isTail reports whether a text can be the last digits of an id.
func isTail(text string) bool {
	return len(text) >= leastTail && strings.Trim(text, "0123456789abcdef") == ""
}

// idOf is the id in a row's key.
func idOf(prefix, key string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
	return id
}

// find reads a row by the whole id, else by its beginning or its last digits.
func find(ctx context.Context, st store.Store, prefix, id, what string) (key string, data []byte, err error) {
	if id == "" {
		return "", nil, missing(what, id)
	}
	rows := map[string][]byte{}
	for _, from := range []string{prefix + id + "/", prefix + id} { // the whole id first
		n := 0
		for k, v := range st.ViewRows(ctx, Name, from) {
			if !strings.HasPrefix(k, from) || n == 2 {
				break
			}
			if idOf(prefix, k) == id {
				return k, v, nil
			}
			rows[k] = v
			n++
		}
	}
	for _, list := range endsList(prefix, id) {
		part, err := st.ViewList(ctx, Name, store.ViewList{In: []string{list}, Most: 1000})
		if err != nil {
			return "", nil, err
		}
		for _, r := range part {
			if Named(idOf(prefix, r.Key), id) {
				rows[r.Key] = r.Data
			}
		}
	}
	keys := slices.Sorted(maps.Keys(rows))
	switch len(keys) {
	case 0:
		return "", nil, cmp.Or(ctx.Err(), missing(what, id))
	case 1:
		return keys[0], rows[keys[0]], ctx.Err()
	}
	return "", nil, belay.Errorf(belay.CodeUsage, "several %ss have an id that begins or ends with %s", what, id).
		WithHint("write more of it: %s, %s …", idOf(prefix, keys[0]), idOf(prefix, keys[1]))
}

func missing(what, id string) error {
	return belay.Errorf(belay.CodeNotFound, "no %s %s in this store", what, id).WithHint("belay sessions list --all")
}
