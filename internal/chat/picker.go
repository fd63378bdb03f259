package chat

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// picker is a list to choose from. What is typed leaves those in whose text it is.
type picker struct {
	title  string
	rows   []row
	filter string
	at     int
	more   bool                // there are others, which more letters find
	typed  func(filter string) // finds other rows for what was typed; nil: those that there are are filtered
}

// picking lets the person choose from lists.
type picking struct{ *Chat }

// row is something to choose.
type row struct {
	text   string
	chosen func()
}

// shownRows is how many rows are drawn at a time.
const shownRows = 8

// matching are the rows that have what was typed.
func (p *picker) matching() []row {
	if p.filter == "" || p.typed != nil {
		return p.rows
	}
	return slices.DeleteFunc(slices.Clone(p.rows), func(r row) bool {
		return !strings.Contains(strings.ToLower(r.text), strings.ToLower(p.filter))
	})
}

// take takes a key. over: the list is done with; chosen is what was chosen, or nil.
func (p *picker) take(k screen.Key) (over bool, chosen func()) {
	rows := p.matching()
	typed := func(filter string) {
		p.filter, p.at = filter, 0
		if p.typed != nil {
			p.typed(filter)
		}
	}
	switch k.Name {
	case "esc", "ctrl+c":
		return true, nil
	case "enter":
		if len(rows) > 0 {
			return true, rows[min(p.at, len(rows)-1)].chosen
		}
	case "up", "ctrl+p":
		p.at = max(0, p.at-1)
	case "down", "ctrl+n":
		p.at = min(p.at+1, max(0, len(rows)-1))
	case "backspace":
		if r := []rune(p.filter); len(r) > 0 {
			typed(string(r[:len(r)-1]))
		}
	default:
		if k.Text != "" {
			typed(p.filter + k.Text)
		}
	}
	return false, nil
}

// lines are the list as it is drawn, and the column of the cursor in the first.
func (p *picker) lines(l look) (lines []string, col int) {
	head := p.title + ": " + block.Line(p.filter)
	lines = append(lines, head)
	rows := p.matching()
	from := max(0, min(p.at-shownRows/2, len(rows)-shownRows))
	for i, r := range rows[from:min(from+shownRows, len(rows))] {
		mark := "  "
		if from+i == p.at {
			mark = l.pick("› ", "> ")
		}
		lines = append(lines, mark+block.Line(r.text))
	}
	if len(rows) == 0 {
		lines = append(lines, "  nothing fits")
	}
	many := block.Plural(len(rows), "line")
	if p.more {
		many = fmt.Sprintf("the newest %d", len(rows))
	}
	return append(lines, l.dim("  "+many+" · Enter chooses · Esc goes back · type to search")), screen.Width(head)
}

// choose puts a list on the screen.
func (c *Chat) choose(p *picker) {
	c.pick = p
	byLine{c}.lists(p)
}

// picks takes a key for the list on the screen.
func (c picking) picks(k screen.Key) {
	p := c.pick
	over, chosen := p.take(k)
	if over && c.pick == p {
		c.pick = nil
	}
	if chosen != nil {
		chosen()
	}
}

// listed is a session as lists have it.
type listed struct {
	ID      belay.SessionID `json:"id"`
	Title   string          `json:"title"`
	Updated time.Time       `json:"updated"`
	Cost    event.CostSum   `json:"cost"`
	Actions []struct{}      `json:"actions"`
	Threads []struct {
		Turn *struct {
			Status  string        `json:"status"`
			Outcome belay.Outcome `json:"outcome"`
		} `json:"turn"`
	} `json:"threads"`
	Worktree *belay.Worktree `json:"worktree"`
	Branch   string          `json:"branch"`
	Driven   bool            `json:"driven"`
}

// state is a session in a word.
func (s *listed) state() string {
	if n := len(s.Actions); n > 0 {
		return block.Plural(n, "question") + " waits"
	}
	if len(s.Threads) == 0 || s.Threads[len(s.Threads)-1].Turn == nil {
		return "new"
	}
	t := s.Threads[len(s.Threads)-1].Turn
	if t.Status == "running" && !s.Driven {
		return "parked"
	}
	return cmp.Or(string(t.Outcome), t.Status)
}

func (s *listed) line(now time.Time) string {
	text := fmt.Sprintf("%s  %7s  %s  %s", Tail(s.ID), age(now.Sub(s.Updated)), s.state(), cmp.Or(s.Title, "(no title)"))
	if s.Worktree != nil {
		s.Branch = s.Worktree.Branch
	}
	if s.Branch != "" {
		text += "  (" + s.Branch + ")"
	}
	return text
}

// age is a time in the past, roughly.
func age(d time.Duration) string {
	if d < time.Minute {
		return "now"
	}
	unit := strings.Fields(block.Ago(d))
	return unit[0] + " " + unit[1]
}

// tail is how many characters at its end are enough to name a session.
const tail = 6

// Tail is the end of a session's id, which is enough to name it.
func Tail(id belay.SessionID) string { return string(id)[max(0, len(id)-tail):] }

// pickSession lets the person choose a session of this workspace; what they type
// searches the words of all of them.
func (c picking) pickSession() {
	p := &picker{title: "resume"}
	p.typed = func(filter string) {
		c.jobs.start(func(ctx context.Context) func() {
			all, more, err := c.list(ctx, filter)
			return func() {
				if p.filter != filter {
					return // something else was typed meanwhile
				}
				c.failed(err)
				p.rows, p.more = nil, more
				for _, s := range all {
					p.rows = append(p.rows, row{s.line(c.Now()), func() { c.resume(s.ID) }})
				}
				byLine(c).lists(p)
			}
		})
	}
	c.pick = p
	p.typed("")
}

// list are sessions of this workspace, the newest first: those whose name or words have
// a text.
func (c picking) list(ctx context.Context, text string) (all []listed, more bool, err error) {
	var out struct {
		Sessions []listed `json:"sessions"`
		More     bool     `json:"more"`
	}
	q := url.Values{"workspace": {c.Workspace}, "archived": {"false"}, "q": {text}}
	err = c.Runtime.Read(ctx, "read_sessions", Query{Values: q}, &out)
	return out.Sessions, out.More, err
}

// Named returns the session of a workspace that a text names: its id, the only one that
// begins with it, or that ends with it, if that are six characters or more; without a
// text it is the one that changed last.
func Named(ctx context.Context, r Runtime, workspace, text string) (belay.SessionID, error) {
	var out struct {
		Sessions []listed `json:"sessions"`
	}
	q := url.Values{"workspace": {workspace}, "archived": {"false"}, "q": {text}}
	if err := r.Read(ctx, "read_sessions", Query{Values: q}, &out); err != nil {
		return "", err
	}
	var found []belay.SessionID
	for _, s := range out.Sessions {
		switch id := string(s.ID); {
		case id == text || text == "":
			return s.ID, nil
		case strings.HasPrefix(id, text) || len(text) >= tail && strings.HasSuffix(id, text):
			found = append(found, s.ID)
		}
	}
	switch len(found) {
	case 0:
		if text == "" {
			return "", belay.Errorf(belay.CodeNotFound, "this workspace has no session yet").At(workspace).WithHint("belay begins one")
		}
		return "", belay.Errorf(belay.CodeNotFound, "this workspace has no session %q", text).At(workspace).WithHint("belay sessions list --all")
	case 1:
		return found[0], nil
	}
	return "", belay.Errorf(belay.CodeUsage, "%d sessions are named so, among them %s and %s", len(found), Tail(found[0]), Tail(found[1])).At(text).WithHint("belay -r %s", Tail(found[0]))
}

// resume puts a session on the screen, and continues its turn if one was parked. Lines
// and its question wait until all that was there is shown.
func (c *Chat) resume(id belay.SessionID) {
	c.jobs.start(func(ctx context.Context) func() {
		var page struct {
			Events []event.Envelope `json:"events"`
		}
		err := c.Runtime.Read(ctx, "read_sessions_id_events", Query{ID: string(id), Values: url.Values{"last": {"1"}}}, &page)
		return func() {
			if c.failed(err); len(page.Events) > 0 {
				c.resumeFrom(id, page.Events[0].ID())
			}
		}
	})
}

// resumeFrom follows a session whose last fact is known, or none.
func (c *Chat) resumeFrom(id belay.SessionID, last belay.EventID) {
	c.follow(id)
	c.until = last
	c.changes = maps.Clone(c.Changes)
	slash{c}.continues(id)
}

// pickTurn lets the person choose a message to go back before, and what goes back.
func (c picking) pickTurn() {
	p := &picker{title: "go back before"}
	for i, t := range slices.Backward(c.conv.turns) {
		p.rows = append(p.rows, row{fmt.Sprintf("turn %d: %s", i+1, block.Short(t.text, 100)), func() { c.pickScope(i, t.text) }})
	}
	if len(p.rows) == 0 {
		c.note = "there is no message to go back before"
		return
	}
	c.choose(p)
}

// pickScope lets the person choose what goes back to before a turn; i is its place.
func (c picking) pickScope(i int, text string) {
	again, stays := func() { byLine(c).again(text) }, "0"
	if i > 0 {
		stays = string(c.conv.turns[i-1].id)
	}
	c.choose(&picker{title: "take back", rows: []row{
		{"conversation and files", func() {
			c.takesBack("rollback_thread", map[string]any{"turn": stays}, again)
		}},
		{"files only", func() { c.takesBack("undo_turns", map[string]any{"turns": len(c.conv.turns) - i}, nil) }},
		{"conversation only, in a new session", func() { slash(c).fork(stays, again) }},
	}})
}

// plan is what taking back means.
type plan struct {
	Files []struct {
		Path string `json:"path"`
	} `json:"files"`
	Foreign []reason `json:"foreign"`
	Lost    []reason `json:"lost"`
	Ran     []struct {
		Tool string `json:"tool"`
		What string `json:"what"`
	} `json:"ran"`
}

type reason struct{ Path, Why string }

// lines say what a plan does, and what it can't.
func (p *plan) lines() (all []string) {
	for _, f := range p.Files {
		all = append(all, "  goes back: "+f.Path)
	}
	for _, r := range p.Foreign {
		all = append(all, "  changed by others: "+r.Path+": "+r.Why)
	}
	for _, r := range p.Lost {
		all = append(all, "  can't be taken back: "+r.Path+": "+r.Why)
	}
	for _, r := range p.Ran {
		all = append(all, "  can't be taken back: what "+strings.TrimSpace(r.Tool+" "+r.What)+" did")
	}
	for i := range all {
		all[i] = block.Line(all[i])
	}
	return all
}

// takesBack shows what a rollback means, and does it if the person still wants it.
func (c picking) takesBack(command string, in map[string]any, then func()) {
	in["sessionId"], in["dryRun"] = c.conv.session, true
	c.jobs.start(func(ctx context.Context) func() {
		var p plan
		err := c.Runtime.Do(ctx, command, in, &p)
		return func() {
			if c.failed(err); err != nil {
				return
			}
			c.print(p.lines()...)
			delete(in, "dryRun")
			rows := []row{{"yes, take it back", func() { c.do(command, in, then) }}, {"no", func() {}}}
			if len(p.Foreign) > 0 {
				in["force"] = true
				rows[0].text = "yes, also what others changed"
			}
			c.choose(&picker{title: "take it back", rows: rows})
		}
	})
}
