package view_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

func ask(t *testing.T, st store.Store, question string) string {
	t.Helper()
	if err := (view.Projector{Store: st, Of: view.Words}).Catchup(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := view.Search(t.Context(), st, question)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for id := range found {
		all = append(all, string(id))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Guarantee: L9.
func TestSessionsAreFoundByTheirWords(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := feedtest.New(t, st, nil)
	a, b := feedtest.IDs("a"), feedtest.IDs("b")
	w.AddTo(a.Session.Stream(), a, event.SessionCreated{Title: "Ärger im Parser"})
	if got := ask(t, st, "parser"); got != "sess_a" {
		t.Errorf("the title: %q", got)
	}
	long, err := st.Put(t.Context(), []byte(strings.Repeat("filler ", 1000)+"needle"), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	w.Add(a, event.TurnSubmitted{Text: belay.Content{Text: "filler", Ref: &long}})
	w.Add(b, event.ToolResult{Name: "read", Output: belay.Content{Text: "func Parser() {}"}})
	for i := range 600 { // more than a chunk
		w.Add(b, event.ModelCompleted{Text: belay.Content{Text: fmt.Sprint("number", i)}})
	}
	for question, want := range map[string]string{
		"PARSER":        "sess_a sess_b",
		"ärger":         "sess_a",
		"needle":        "sess_a",
		"parser needle": "sess_a",
		"number599":     "sess_b",
		"pars":          "",
		"func (parser)": "sess_b",
		"needle absent": "",
	} {
		if got := ask(t, st, question); got != want {
			t.Errorf("%q finds %q", question, got)
		}
	}
	if hit, err := view.Excerpt(t.Context(), st, b.Session, "parser"); err != nil || hit == nil || hit.Excerpt != "func Parser() {}" {
		t.Errorf("%+v %v", hit, err)
	}
	if hit, err := view.Excerpt(t.Context(), st, a.Session, "needle"); err != nil || hit == nil || !strings.HasSuffix(hit.Excerpt, "filler needle") || len(hit.Excerpt) > 200 {
		t.Errorf("%+v %v", hit, err)
	}
	if _, err := view.Search(t.Context(), st, " ! x "); belay.CodeOf(err) != belay.CodeUsage {
		t.Errorf("no word: %v", err)
	}
}

// TestWhatIsKeptFollowsFromTheFacts: folded in one go, step by step, or again
// from the beginning, the rows are the same; with a session its row is gone.
// Guarantee: L9.
func TestWhatIsKeptFollowsFromTheFacts(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := feedtest.New(t, st, nil)
	rows := func() string {
		var all []string
		for key, row := range st.ViewRows(t.Context(), "words/1", "") {
			all = append(all, fmt.Sprintf("%s %x", key, row))
		}
		return strings.Join(all, "\n")
	}
	for i := range 50 {
		w.Add(feedtest.IDs([]string{"a", "b", "c"}[i%3]), event.ModelCompleted{Text: belay.Content{Text: fmt.Sprint("some word", i)}})
		if i%7 == 0 {
			ask(t, st, "some")
		}
	}
	ask(t, st, "some")
	stepwise := rows()
	if err := view.Rebuild(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if again := rows(); again != stepwise || strings.Count(again, "\n") != 2 {
		t.Errorf("step by step\n%s\nagain\n%s", stepwise, again)
	}
	w.Add(feedtest.IDs("b"), event.ModelCompleted{Text: belay.Content{Text: "last"}})
	w.Delete("sess_b")
	if got := ask(t, st, "some"); got != "sess_a sess_c" {
		t.Errorf("after the deletion %q", got)
	}
	if err := view.Rebuild(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, st, "some"); got != "sess_a sess_c" {
		t.Errorf("folded again %q", got)
	}
}

// TestAChunkIsBoundedByItsText: what is looked at between two saves doesn't grow
// with how long the texts are, and no fact is left out.
// Guarantee: L18.
func TestAChunkIsBoundedByItsText(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := feedtest.New(t, st, nil)
	long, err := st.Put(t.Context(), []byte("needle "+strings.Repeat("filler ", 100_000)), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	const facts = 300 // of which 64 KiB are looked at each
	for range facts {
		w.Add(feedtest.IDs("a"), event.ToolResult{Name: "read", Output: belay.Content{Text: "…", Ref: &long}})
	}
	w.Add(feedtest.IDs("a"), event.ModelCompleted{Text: belay.Content{Text: "last"}})
	fold := view.Projector{Store: st, Of: view.Words}
	steps := 0
	for more := true; more; steps++ {
		if more, err = fold.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if steps < 5 {
		t.Errorf("%d facts with 64 KiB each were folded in %d steps", facts, steps)
	}
	end, _ := st.End(t.Context())
	if at, err := fold.At(t.Context()); err != nil || at != end {
		t.Errorf("folded up to %d of %d, %v", at, end, err)
	}
	if got := ask(t, st, "needle last"); got != "sess_a" {
		t.Errorf("found %q", got)
	}
}

// late is a store in which something happens after the log was read.
type late struct {
	store.Store
	happens func()
}

func (l *late) Tombstones(ctx context.Context, after store.Position) ([]store.Tombstone, error) {
	if l.happens != nil {
		l.happens()
		l.happens = nil
	}
	return l.Store.Tombstones(ctx, after)
}

// Guarantee: L17.
func TestASessionThatIsDeletedMeanwhileStaysAway(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := feedtest.New(t, st, nil)
	for _, name := range []string{"a", "b"} {
		w.Add(feedtest.IDs(name), event.ModelCompleted{Text: belay.Content{Text: "some words"}})
	}
	meanwhile := func() {
		w.Add(feedtest.IDs("c"), event.ModelCompleted{Text: belay.Content{Text: "more words"}})
		w.Delete("sess_b")
	}
	if got := ask(t, &late{st, meanwhile}, "words"); got != "sess_a" {
		t.Errorf("found %q", got)
	}
	if got := ask(t, st, "words"); got != "sess_a sess_c" { // what came before the deletion isn't passed over
		t.Errorf("then %q", got)
	}
}
