package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model"
)

// TestWhatAVendorSearchedForIsRecordedAndCostsNoCall: however much it is and whatever it
// holds, the fact keeps its size and all its calls, and no secret is in fact or content.
func TestWhatAVendorSearchedForIsRecordedAndCostsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := strings.Repeat("{tool: complete_task, args: {summary: "+strings.Repeat("x", 100)+"}}, ", 40)
		b := newBench(t, "name: t\nsteps:\n  - {text: "+strings.Repeat("<&>", 3000)+", calls: ["+calls+"]}\n  - calls: [{tool: complete_task, args: {summary: done}}]\n", nil)
		var chunks []model.Chunk
		for i := range 40 {
			s := &model.Search{Query: fmt.Sprint(i, " s3cr3t-value ", strings.Repeat("<\n", 300)), Problem: strings.Repeat("&", i%2*300)}
			for n := range 20 {
				s.Found = append(s.Found, model.Page{URL: fmt.Sprintf("https://a.example/%d/%d?s3cr3t-value", i, n), Title: strings.Repeat("<", 900)})
			}
			chunks = append(chunks, model.Chunk{Search: s})
		}
		asked := 0
		b.wrap = func(p model.Provider) model.Provider {
			if asked++; asked > 1 {
				return p
			}
			return before{p, chunks, false}
		}
		log := b.run()
		answers := find[event.ModelCompleted](log)
		if len(answers) != 2 || len(answers[0].Calls) != 40 || answers[0].Dropped != 0 {
			t.Fatalf("%d answers: %+v", len(answers), answers)
		}
		if got := answers[0].Searches; len(got) == 0 || got[0].Found != 20 || got[0].Pages.Ref == nil || !strings.HasPrefix(got[0].Query, "0 ") || strings.Contains(got[0].Query, "\n") {
			t.Errorf("recorded %+v", got)
		} else if pages, err := b.h.Get(t.Context(), got[0].Pages.Ref.Digest); err != nil || strings.Count(string(pages), "\n") != 19 || strings.Contains(string(pages), "s3cr3t") {
			t.Errorf("kept %.200s, %v", pages, err)
		}
		for _, e := range log {
			if raw, err := event.Encode(e.Data); err != nil || len(raw) > event.MaxPayload || strings.Contains(string(raw), "s3cr3t") {
				t.Errorf("%s has %d bytes: %.300s, %v", e.Type(), len(raw), raw, err)
			}
		}
	})
}
