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
}

// Sessions lists sessions, the one that changed last first. It shows what was
// folded so far: call Catchup before to see the end of the log.
func Sessions(ctx context.Context, st store.Store, f Filter) ([]Session, error) {
	p, err := PageOf(ctx, st, f)
	return p.Sessions, err
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
	var out []Session
	folders, tags := map[string]int{}, map[string]int{}
	for key, data := range st.ViewRows(ctx, Name, "") {
		if !strings.HasPrefix(key, sessionKey) {
			break
		}
		var s Session
		if err := decode(key, data, &s); err != nil {
			return Page{}, err
		}
		if !s.Created.IsZero() {
			folders[s.folder()]++
			for _, t := range s.Tags {
				tags[t]++
			}
		}
		if !f.takes(&s) {
			continue
		}
		if p.Total++; f.Before != nil && inList(*f.Before, s) >= 0 {
			continue
		}
		if out = append(out, s); f.Limit > 0 && len(out) >= 2*f.Limit {
			out = newestFirst(out)[:f.Limit]
		}
	}
	if err := ctx.Err(); err != nil { // a listing that was cut short is no listing
		return Page{}, err
	}
	p.Sessions, p.Folders, p.Tags = newestFirst(out), mostOf(folders), mostOf(tags)
	if f.Limit > 0 && len(out) > f.Limit {
		p.Sessions = p.Sessions[:f.Limit]
	}
	return p, nil
}

// mostOf are the names that were counted most.
func mostOf(counted map[string]int) []string {
	delete(counted, "")
	names := slices.SortedFunc(maps.Keys(counted), func(a, b string) int {
		return cmp.Or(counted[b]-counted[a], strings.Compare(a, b))
	})
	return names[:min(len(names), maxChoices)]
}

func (f Filter) takes(s *Session) bool {
	if s.Created.IsZero() || f.Workspace != "" && !s.in(f.Workspace) {
		return false
	}
	if f.Text != "" && !f.Found[s.ID] && !s.has(strings.ToLower(f.Text)) {
		return false
	}
	if f.Archived != nil && *f.Archived != s.Archived {
		return false
	}
	if slices.ContainsFunc(f.Tags, func(t string) bool { return !slices.Contains(s.Tags, t) }) {
		return false
	}
	if f.Status == "" && f.Outcome == "" {
		return true
	}
	t := s.Turn()
	return t != nil && (f.Status == "" || t.Status == f.Status) && (f.Outcome == "" || t.Outcome == f.Outcome)
}

// folder is where a session works; of a worktree, what it was made of.
func (s *Session) folder() string {
	if s.Worktree != nil {
		return s.Worktree.Repository
	}
	return s.Workspace
}

func (s *Session) in(workspace string) bool {
	return s.Workspace == workspace || s.Worktree != nil && s.Worktree.Repository == workspace
}

// has reports whether a text, in lower case, is in what names a session.
func (s *Session) has(text string) bool {
	return strings.Contains(string(s.ID), text) || strings.Contains(strings.ToLower(s.Title), text) ||
		strings.Contains(strings.ToLower(s.Branch), text) || s.Worktree != nil && strings.Contains(strings.ToLower(s.Worktree.Branch), text)
}

func newestFirst(s []Session) []Session {
	slices.SortFunc(s, inList)
	return s
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

// ActionAt finds the place of an action: its answer goes to Stream. It is found
// also after it was answered; Open tells.
type ActionAt struct {
	Place
	ID   belay.ActionID
	Open *Action // nil once it is answered, or its turn has ended
}

// ActionByID finds an action by its id or an unambiguous beginning of it.
func ActionByID(ctx context.Context, st store.Store, id string) (ActionAt, error) {
	key, data, err := find(ctx, st, actionKey, id, "action")
	if err != nil {
		return ActionAt{}, err
	}
	a := ActionAt{ID: belay.ActionID(strings.TrimPrefix(key, actionKey))}
	if err := decode(key, data, &a.Place); err != nil {
		return ActionAt{}, err
	}
	s, err := load(ctx, st, a.Session)
	if err != nil {
		return ActionAt{}, err
	}
	if i := slices.IndexFunc(s.Actions, func(o Action) bool { return o.ID == a.ID }); i >= 0 {
		a.Open = &s.Actions[i]
	}
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
	there, err := row(ctx, st, runKey+string(id), &r.Place)
	if err == nil && !there {
		err = belay.Errorf(belay.CodeNotFound, "no run %s in this store", id)
	}
	return r, err
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

// find reads a row by the whole id, else by its beginning or its last digits.
func find(ctx context.Context, st store.Store, prefix, id, what string) (key string, data []byte, err error) {
	if id == "" {
		return "", nil, missing(what, id)
	}
	key = prefix + id
	if data, err = st.ViewRow(ctx, Name, key); err != nil || data != nil {
		return key, data, err
	}
	var keys []string
	for k, v := range st.ViewRows(ctx, Name, prefix) {
		own, is := strings.CutPrefix(k, prefix)
		if !is {
			break
		}
		if Named(own, id) {
			keys, data = append(keys, k), v
		}
	}
	switch len(keys) {
	case 0:
		return "", nil, missing(what, id)
	case 1:
		return keys[0], data, ctx.Err()
	}
	return "", nil, belay.Errorf(belay.CodeUsage, "%d %ss have an id that begins or ends with %s", len(keys), what, id).
		WithHint("write more of it: %s, %s …", strings.TrimPrefix(keys[0], prefix), strings.TrimPrefix(keys[1], prefix))
}

func missing(what, id string) error {
	return belay.Errorf(belay.CodeNotFound, "no %s %s in this store", what, id).WithHint("belay sessions list --all")
}
