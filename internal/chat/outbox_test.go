package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/screen"
)

// begins is a runtime that begins a session with the first message, and refuses a text.
type begins struct {
	answered
	refused string
}

func (r *begins) Do(ctx context.Context, command string, in, out any) error {
	if in.(map[string]any)["text"] == r.refused {
		return errors.New("refused")
	}
	return errors.Join(r.answered.Do(ctx, command, in, out), give(out))
}

func (*begins) Server() string { return "" }

func (*begins) Follow(context.Context, belay.SessionID, string) Stream {
	return func(func(Item, error) bool) {}
}

func give(out any) error {
	return json.Unmarshal([]byte(`{"sessionId":"sess_1"}`), out)
}

// paper is a desk on which the file note lies.
type paper struct{ Desk }

func (paper) Named(_, text string) ([]File, []string, error) {
	if strings.Contains(text, "@note") {
		return []File{{Name: "note", Content: []byte("x")}}, nil, nil
	}
	return nil, nil, nil
}

// TestMessagesGoToOneSessionInOrder: messages that are sent before the first was taken
// wait for it and go to the session that it began. Each has the files and the images
// that it names; one that is refused is in the composer again.
func TestMessagesGoToOneSessionInOrder(t *testing.T) {
	p := newPerson(t)
	p.begin()
	r := &begins{refused: "no"}
	p.Runtime, p.Desk, p.Explain = r, paper{}, func(err error) *belay.Error { return belay.Errorf(belay.CodeInternal, "%v", err) }
	p.addImage(File{Name: "a.png"})
	for _, text := range []string{p.comp.Text() + " and @note", "two", "no", "three"} {
		p.comp.Set(text)
		p.event(screen.Key{Name: "enter"})
	}
	for len(p.outbox) > 0 || p.sending {
		(<-p.jobs.done)()
	}
	var texts []string
	p.over()
	for _, in := range r.told {
		if in["command"] == "submit_turn" {
			texts = append(texts, in["text"].(string))
		}
	}
	told := r.told
	if want := []string{"[image 1] and @note", "two", "three"}; !slices.Equal(texts, want) {
		t.Fatalf("sent were %q", texts)
	}
	files, _ := told[0]["attachments"].([]File)
	if len(files) != 2 || files[0].Name != "note" || files[1].Name != "image 1 (a.png)" || told[1]["attachments"] != nil {
		t.Errorf("the files are %v", told[0])
	}
	if told[0]["sessionId"] != nil || told[1]["sessionId"] != belay.SessionID("sess_1") || told[2]["sessionId"] != belay.SessionID("sess_1") {
		t.Errorf("sessions: %v", told)
	}
	if got := p.comp.Text(); got != "no" {
		t.Errorf("the composer has %q", got)
	}
}
