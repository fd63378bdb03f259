package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// first are the first commands of a session.
func (r *rig) first(who string) []belay.Order {
	id := belay.SessionID("sess_" + who)
	order := func(n int, c belay.Command) belay.Order {
		return belay.Order{ID: belay.CommandID(fmt.Sprint("cmd_", who, n)), Principal: "user:bench", Session: id, Stream: id.Stream(), Command: c}
	}
	return []belay.Order{order(0, belay.CreateSession{Workspace: "/ws", Settings: belay.Settings{Allow: []string{"look"}}}), order(1, belay.SubmitWork{
		Thread: belay.ThreadID("thr_" + who), Task: belay.TaskID("task_" + who), Turn: belay.TurnID("turn_" + who), Text: belay.Content{Text: who}, Rules: r.ref,
	})}
}

// story is the facts of a session in their order, by stream and without what
// follows from its name.
func (r *rig) story(t *testing.T, who string) (out []string) {
	t.Helper()
	for rec, err := range r.db.Window(t.Context(), store.Window{Session: belay.SessionID("sess_" + who)}) {
		if err != nil {
			t.Fatal(err)
		}
		ev := rec.Event
		line := fmt.Sprint(ev.Stream.Kind(), " ", ev.Seq, " ", ev.Type(), " ", ev.IDs.Request)
		switch ev.Data.(type) { // what it says has ids that follow from the session's
		case event.SessionCreated, event.SessionUpdated, event.PolicyChanged, event.TaskCreated, event.TaskStarted, event.ThreadStarted:
			raw, err := ev.Encoded()
			if err != nil {
				t.Fatal(err)
			}
			line += " " + string(raw)
		}
		out = append(out, strings.ReplaceAll(line, who, "NAME"))
	}
	return out
}

// lanesOf is a session's lanes without its name.
func lanesOf(t *testing.T, r *rig, who string) string {
	t.Helper()
	rows, err := r.db.Lanes(t.Context(), belay.SessionID("sess_"+who))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, row := range rows {
		out = append(out, fmt.Sprint(row.Stream.Kind(), row.Seq, row.Runnable, row.Inbox, row.Wake.IsZero()))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestABeginningIsAsTheLongWay: what Begin writes is what the store would have
// when the commands had been brought, and the session continues in the same way.
// Guarantee: S46.
func TestABeginningIsAsTheLongWay(t *testing.T) {
	r := newRig(t, 2)
	ans, err := r.e.Begin(t.Context(), store.Claim{}, r.first("AA")...)
	if err != nil || ans == nil || !ans.Wants || ans.Rests || ans.Pending {
		t.Fatalf("%+v %v", ans, err)
	}
	long, err := r.e.Submit(t.Context(), r.first("BB")...)
	if err != nil {
		t.Fatal(err)
	}
	if len(ans.Events) != len(long.Events) || len(ans.Events) != 1 || ans.Events[0].Type() != long.Events[0].Type() {
		t.Errorf("answers: %v and %v", ans.Events, long.Events)
	}
	mine := mask(r.story(t, "AA"))
	if theirs := mask(r.story(t, "BB")); !slices.Equal(mine, theirs) {
		t.Errorf("facts:\n%s\nand\n%s", strings.Join(mine, "\n"), strings.Join(theirs, "\n"))
	}
	if len(mine) < 6 {
		t.Errorf("only %d facts: %v", len(mine), mine)
	}
	if a, b := lanesOf(t, r, "AA"), lanesOf(t, r, "BB"); a != b || a == "" {
		t.Errorf("lanes: %s and %s", a, b)
	}
	for _, who := range []string{"AA", "BB"} {
		if err := r.e.Session(t.Context(), belay.SessionID("sess_"+who), nil); err != nil {
			t.Fatal(err)
		}
	}
	mine, theirs := kinds(r.story(t, "AA")), kinds(r.story(t, "BB"))
	slices.Sort(mine)
	slices.Sort(theirs)
	if !slices.Equal(mine, theirs) || !slices.ContainsFunc(mine, func(s string) bool { return strings.Contains(s, "task.completed") }) {
		t.Errorf("after the run:\n%s\nand\n%s", strings.Join(mine, "\n"), strings.Join(theirs, "\n"))
	}
	for _, o := range r.first("AA") { // told again it is known
		if ans, err := r.e.Submit(t.Context(), o); err != nil || len(ans.Events) != 0 {
			t.Errorf("told again: %+v %v", ans, err)
		}
	}
}

// mask leaves out the ids of commands that follow from a stream's name.
func mask(lines []string) []string {
	for i, l := range lines {
		f := strings.Fields(l)
		if len(f) > 3 && !strings.HasPrefix(f[3], "cmd_NAME") {
			f[3] = "sent"
		}
		lines[i] = strings.Join(f, " ")
	}
	return lines
}

// kinds are the first three words: stream, sequence and type.
func kinds(lines []string) []string {
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l)[:3], " ")
	}
	return lines
}

// TestABeginningCosts: one transaction with a bounded number of statements, and
// not one query.
func TestABeginningCosts(t *testing.T) {
	r := newRig(t, 1)
	if begun, err := r.e.Begin(t.Context(), store.Claim{}, r.first("warm")...); begun == nil || err != nil { // names of types
		t.Fatal(begun, err)
	}
	before := r.db.Stats()
	if begun, err := r.e.Begin(t.Context(), store.Claim{}, r.first("s")...); begun == nil || err != nil {
		t.Fatal(begun, err)
	}
	after := r.db.Stats()
	if n := after.Transactions - before.Transactions; n != 1 {
		t.Errorf("%d transactions, one was promised", n)
	}
	if n := after.Statements - before.Statements; n > 30 { // begin, version, owner, claim, a few for each of five commands and three streams, commit
		t.Errorf("%d statements, at most 30 were promised", n)
	}
	if n := after.Reads - before.Reads; n != 0 {
		t.Errorf("%d queries, none was promised", n)
	}
}

// TestBeginRefusesKnownSessions: a session that there is, one that is being
// claimed, and commands that are refused go the ordinary way, and nothing of
// them is written.
// Guarantee: S46.
func TestBeginRefusesKnownSessions(t *testing.T) {
	r := newRig(t, 1)
	if begun, err := r.e.Begin(t.Context(), store.Claim{}, r.first("AA")...); begun == nil || err != nil {
		t.Fatal(begun, err)
	}
	refused := r.first("BB")[1:] // there is no session to submit to
	_, release, err := r.e.Own(t.Context(), "sess_c")
	if err != nil {
		t.Fatal(err)
	}
	taken := r.first("d")
	taken[1].Command = belay.SubmitWork{Thread: "thr_AA", Task: "task_d", Turn: "turn_d", Text: belay.Content{Text: "d"}, Rules: r.ref}
	end, err := r.db.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, orders := range map[string][]belay.Order{"there is": r.first("AA"), "refused": refused, "owned": r.first("c"), "another's thread": taken} {
		if begun, err := r.e.Begin(t.Context(), store.Claim{}, orders...); begun != nil || err != nil {
			t.Errorf("%s: %+v %v", name, begun, err)
		}
	}
	if now, err := r.db.End(t.Context()); now != end || err != nil {
		t.Errorf("the log went from %d to %d: %v", end, now, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if rows, err := r.db.Waiting(t.Context()); len(rows) != 0 || err != nil {
		t.Errorf("commands wait: %v %v", rows, err)
	}
}
