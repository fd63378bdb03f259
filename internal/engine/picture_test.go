package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model"
)

// before is a provider whose answers begin with some chunks; only says that
// nothing of the script's text follows.
type before struct {
	model.Provider
	chunks []model.Chunk
	only   bool
}

func (p before) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for _, c := range p.chunks {
			if !yield(c, nil) {
				return
			}
		}
		for c, err := range p.Provider.Stream(ctx, r) {
			if p.only {
				c.Text = ""
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

func conversational(s *belay.Settings) { s.Completion = belay.CompletionConversational }

// Pictures are published in the append that completes their answer, and an
// answer may have nothing else. The model reads later that it made them.
// Guarantee: M60.
func TestAModelsPicturesArePublishedWithItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "name: t\nsteps:\n  - text: nothing\n  - text: nothing\n", conversational)
		png := model.Image{Media: "image/PNG", Data: []byte("a picture")}
		odd := model.Image{Media: "text/html", Data: []byte("<script>")}
		b.wrap = func(p model.Provider) model.Provider {
			return before{p, []model.Chunk{{Image: &png}, {Image: &odd}}, true}
		}
		log := b.run()
		made, answers := find[event.ArtifactChanged](log), find[event.ModelCompleted](log)
		if len(made) != 2 || len(answers) != 1 || len(find[event.TurnCompleted](log)) != 1 {
			t.Fatalf("%d pictures, %d answers", len(made), len(answers))
		}
		d := belay.DigestOf(png.Data)
		if p := made[0]; p.Kind != "artifact" || p.Op != "published" || p.Name != "image-"+d.Short()+".png" || p.Version != "1" || p.After.Digest != d || p.Digest != d || p.After.Media != "image/png" {
			t.Errorf("published %+v", p)
		}
		if p := made[1]; !strings.HasSuffix(p.Name, ".bin") || p.After.Media != "application/octet-stream" {
			t.Errorf("published %+v", p)
		}
		if kept, err := b.h.Get(t.Context(), d); err != nil || !bytes.Equal(kept, png.Data) {
			t.Errorf("kept %q, %v", kept, err)
		}
		if got := answers[0].Images; len(got) != 2 || got[0].Name != made[0].Name || got[0].Ref != *made[0].After {
			t.Errorf("the answer names %+v", got)
		}
		at := slices.IndexFunc(log, func(e event.Envelope) bool { _, ok := e.Data.(event.ModelCompleted); return ok })
		if log[at-1].Data.(event.ArtifactChanged).Name != made[1].Name || log[at-1].IDs.Artifact == "" || log[at-1].IDs.Step != log[at].IDs.Step {
			t.Errorf("before the answer stands %+v", log[at-1])
		}
		b.again("more")
		var msgs []belay.Message
		if err := json.Unmarshal([]byte(b.asked[len(b.asked)-1]), &msgs); err != nil || len(msgs) != 3 || len(msgs[1].Parts) != 2 ||
			!strings.Contains(msgs[1].Parts[0].Text, made[0].Name+" (image/png, 9 bytes)") {
			t.Errorf("%v: the model is asked %s", err, b.asked)
		}
	})
}

// What can't be kept makes the attempt fail, and nothing is published.
// Guarantee: M60.
func TestPicturesAreBounded(t *testing.T) {
	many := slices.Repeat([]model.Chunk{{Image: &model.Image{Media: "image/png", Data: []byte("x")}}}, 9)
	large := []model.Chunk{{Image: &model.Image{Media: "image/png", Data: make([]byte, 32<<20+1)}}}
	secret := []model.Chunk{{Image: &model.Image{Media: "image/png", Data: []byte("tEXt s3cr3t-value")}}}
	for name, chunks := range map[string][]model.Chunk{"many": many, "large": large, "with a secret": secret} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, "name: t\nsteps:\n  - text: here\n", conversational)
				b.wrap = func(p model.Provider) model.Provider { return before{p, chunks, false} }
				log := b.run()
				failed := find[event.ModelFailed](log)
				if len(failed) != 4 || failed[0].Problem.Class != "transient" || !failed[0].Problem.Retryable || len(find[event.ArtifactChanged](log)) > 0 {
					t.Errorf("%d failures, %d published: %+v", len(failed), len(find[event.ArtifactChanged](log)), failed)
				}
			})
		})
	}
}

// What a provider tells of its reasoning is a fact of the same append as the
// answer, without secrets, however they are cut; nothing is kept of an attempt
// that fails, and the model is never sent it.
// Guarantee: X1, M60.
func TestReasoningIsAFact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "name: t\nsteps:\n  - text: the answer\n    fault: {kind: transient, attempts: 1}\n    usage: {input: 5, output: 9}\n  - text: again\n", conversational)
		b.wrap = func(p model.Provider) model.Provider {
			return before{p, []model.Chunk{{Reasoning: "the key is s3cr3t"}, {Reasoning: "-value,"}, {Reasoning: " so\n"}, {Reasoning: ""}}, false}
		}
		log := b.run()
		said := find[event.ReasoningSummary](log)
		if len(said) != 1 || strings.Contains(said[0].Text.Text, "s3cr3t") || !strings.HasPrefix(said[0].Text.Text, "the key is ") || !strings.HasSuffix(said[0].Text.Text, ", so") || said[0].Attempt != 2 {
			t.Fatalf("the reasoning is %+v", said)
		}
		at := slices.IndexFunc(log, func(e event.Envelope) bool { _, ok := e.Data.(event.ReasoningSummary); return ok })
		if _, ok := log[at+1].Data.(event.ModelCompleted); !ok || log[at+1].Time != log[at].Time {
			t.Errorf("after the reasoning stands %+v", log[at+1])
		}
		shown := ""
		for _, l := range b.live {
			if l.Kind == "reasoning" {
				shown += l.Text
			}
		}
		if strings.Contains(shown, "s3cr3t") || strings.Count(shown, "the key is") != 2 {
			t.Errorf("shown: %q", shown)
		}
		b.again("more")
		if last := b.asked[len(b.asked)-1]; strings.Contains(last, "the key") || !strings.Contains(last, "the answer") {
			t.Errorf("the model is sent %s", last)
		}
	})
}

// Long reasoning is content, and endless reasoning is cut.
func TestReasoningIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "name: t\nsteps:\n  - text: the answer\n", conversational)
		b.wrap = func(p model.Provider) model.Provider {
			return before{p, slices.Repeat([]model.Chunk{{Reasoning: strings.Repeat("hm, ", 16<<10)}}, 32), false}
		}
		said := find[event.ReasoningSummary](b.run())
		if len(said) != 1 || said[0].Text.Ref == nil || said[0].Text.Ref.Size > 257<<10 || said[0].Text.Ref.Size < 255<<10 {
			t.Fatalf("the reasoning is %+v", said)
		}
		if text, err := b.h.Get(t.Context(), said[0].Text.Ref.Digest); err != nil || !strings.HasSuffix(string(text), " …") {
			t.Errorf("%v: it ends in %q", err, text[max(0, len(text)-20):])
		}
	})
}

// again gives the session another turn under the same rules and runs it.
func (b *bench) again(text string) {
	b.t.Helper()
	o := belay.Order{ID: "cmd_again", Principal: "user:ann", Session: "sess_1", Stream: "session/sess_1",
		Command: belay.SubmitWork{Thread: "thr_1", Task: "task_again", Turn: "turn_again", Text: belay.Content{Text: text}, Rules: b.ref}}
	if err := b.h.Enqueue(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
	if err := b.e.Session(b.t.Context(), sess, nil); err != nil {
		b.t.Fatal(err)
	}
}
