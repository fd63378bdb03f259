package chat

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// asksOnce is a runtime with a session that asks.
type asksOnce struct {
	answered
	last event.Envelope
}

func (*asksOnce) Server() string { return "there" }

func (*asksOnce) Follow(ctx context.Context, _ belay.SessionID, _ string) Stream {
	return func(func(Item, error) bool) { <-ctx.Done() }
}

func (r *asksOnce) Read(_ context.Context, name string, _ Query, out any) error {
	switch name {
	case "listActions":
		return json.Unmarshal([]byte(`{"actions":[{"actionId":"act_1","version":"v1"}]}`), out)
	case "previewAction":
		*out.(*block.Preview) = block.Preview{ID: "act_1", Version: "v1", Kind: "permission", Tool: "exec", Shows: block.PreviewCommand, What: "rm -r all", Line: "rm -r all"}
		return nil
	}
	raw, err := r.last.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(`{"events":[`+string(raw)+`]}`), out)
}

// printed is a terminal that notes what it shows.
type printed struct {
	Terminal
	lines []string
}

func (p *printed) Print(lines ...string) { p.lines = append(p.lines, lines...) }
func (*printed) Draw(screen.Region)      {}
func (*printed) Send(string)             {}
func (*printed) Size() (int, int)        { return 80, 24 }

// TestAnOpenQuestionIsBelowWhatWasSaid: a session that is continued is shown to its newest
// fact before its question is; what is typed until then answers nothing.
func TestAnOpenQuestionIsBelowWhatWasSaid(t *testing.T) {
	for _, by := range []ByLine{Drawn, Typed} {
		r, at := &asksOnce{}, time.Unix(1000, 0).UTC()
		fact := func(seq int64, p event.Payload) event.Envelope {
			ids := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Action: "act_1", Call: "call_1"}
			return event.Envelope{Stream: "thr_1", Seq: seq, Time: at, IDs: ids, Data: p, Version: 1}
		}
		history := []event.Envelope{
			fact(1, event.ThreadStarted{}),
			fact(2, event.TurnSubmitted{Kind: belay.TurnUser, Text: belay.Content{Text: "Remove it."}}),
			fact(3, event.TurnStarted{}),
			fact(4, event.ActionRequired{Kind: "permission", Tool: "exec"}),
			fact(5, event.RuntimeWarning{Code: "LATER", Message: "what came after it"}),
		}
		r.last = history[len(history)-1]
		screen := &printed{}
		now := at.Add(time.Hour)
		c := &Chat{Options: Options{Runtime: r, Terminal: screen, By: by, Now: func() time.Time { return now }, Explain: func(err error) *belay.Error { return belay.Errorf(belay.CodeInternal, "%v", err) }},
			jobs: newJobs(t.Context(), func() {}), items: make(chan arrival, 1)}
		done := func() {
			for c.jobs.open > 0 {
				(<-c.jobs.done)()
			}
		}
		c.resume("sess_1")
		done()
		for _, f := range history {
			if c.ask != nil {
				t.Errorf("%q: it is asked before %s", by, f.Type())
			}
			if err := c.arrived(arrival{Item: Item{Fact: &f}, session: "sess_1"}); err != nil {
				t.Fatal(err)
			}
			done()
		}
		c.jobs.close()
		all := strings.Join(screen.lines, "\n")
		question, before, found := strings.Index(all, "rm -r all"), strings.Index(all, "what came after it"), c.ask != nil
		if !found || before < 0 || question < before {
			t.Errorf("%q: the question is at %d, what was said at %d:\n%s", by, question, before, all)
		}
	}
}
