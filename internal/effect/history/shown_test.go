package history

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// What a model can't take is withheld from it, in messages that stay the same
// from request to request: each is looked at once, and encoded once.
// Guarantee: M61.
func TestWhatAModelCantTakeIsWithheldOnce(t *testing.T) {
	v := newConversation("thread/t")
	picture := belay.Message{Role: belay.RoleUser, Parts: []belay.Part{{Text: "see"}, {Image: &belay.Attachment{Name: "a.png", Ref: belay.Ref{Media: "image/png"}}}, {File: &belay.Attachment{Name: "a.pdf", Ref: belay.Ref{Media: belay.MediaPDF}}}}}
	v.push(belay.Text(belay.RoleUser, "hello"))
	if got := v.Shown(model.Abilities{}); &got[0] != &v.msgs[0] {
		t.Error("a conversation of text was copied")
	}
	v.push(picture)
	v.push(belay.Text(belay.RoleAssistant, "hm"))
	for can, want := range map[model.Abilities][2]bool{{}: {}, {Images: true}: {true, false}, {Files: true}: {false, true}, {Images: true, Files: true}: {true, true}} {
		got := v.Shown(can)[1].Parts
		if seen := [2]bool{got[1].Image != nil, got[2].File != nil}; seen != want || !want[0] && !strings.Contains(got[1].Text, "takes no images") || !want[1] && !strings.Contains(got[2].Text, "takes no documents") {
			t.Errorf("%+v is shown %+v", can, got)
		}
	}
	if v.msgs[1].Parts[1].Image == nil || v.msgs[1].Parts[2].File == nil {
		t.Error("the conversation itself has lost something")
	}
	first := v.Shown(model.Abilities{})
	v.push(belay.Text(belay.RoleUser, "more"))
	second := v.Shown(model.Abilities{})
	if len(second) != 4 {
		t.Fatalf("%d messages", len(second))
	}
	for i := range first {
		if &first[i].Parts[0] != &second[i].Parts[0] {
			t.Errorf("message %d was made anew", i)
		}
	}
	if &second[0].Parts[0] != &v.msgs[0].Parts[0] {
		t.Error("a message of text is a copy")
	}
	v.push(belay.Text(belay.RoleUser, "and more"))
	if n := testing.AllocsPerRun(10, func() { v.Shown(model.Abilities{}) }); n > 0 {
		t.Errorf("asking again allocates %v times", n)
	}
}

// After a rollback nothing of what was taken back is shown.
func TestWhatWentBackIsNotShown(t *testing.T) {
	v := newConversation("thread/t")
	v.push(belay.Message{Role: belay.RoleUser, Parts: []belay.Part{{Image: &belay.Attachment{Name: "a.png"}}}})
	v.turns = []span{{turn: "t1", from: 0, to: 1, start: 1, end: 2}}
	v.push(belay.Text(belay.RoleUser, "one"))
	v.Shown(model.Abilities{})
	v.back(2)
	v.push(belay.Text(belay.RoleUser, "two"))
	if got := v.Shown(model.Abilities{}); len(got) != 2 || got[1].Parts[0].Text != "two" {
		t.Errorf("shown: %+v", got)
	}
}
