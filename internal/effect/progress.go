package effect

import (
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// Bounds of what a call tells about itself.
const (
	progressEvery = 2 * time.Second
	maxProgress   = 500 // bytes of its text
)

// progress is how far a call is. The newest waits while the one before is young.
type progress struct {
	mu      sync.Mutex
	last    event.ToolProgress
	waiting *time.Timer // until last is recorded; nil: it is
	at      time.Time   // when one was recorded; before the first, when the call began
	over    bool        // the call has ended
}

// Progress takes how far the call is.
func (s *sink) Progress(p tool.Progress) {
	text := strings.ToValidUTF8(p.Text, "\uFFFD")
	said := event.ToolProgress{Attempt: s.attempt, Text: event.CutText(s.v.e.c.Secrets.String(text), maxProgress), Done: max(0, p.Done), Total: max(0, p.Total)}
	t := &s.told
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || said == t.last {
		return
	}
	t.last = said
	if t.waiting != nil {
		return
	}
	t.waiting = time.AfterFunc(time.Until(t.at.Add(progressEvery)), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waiting = nil; !t.over {
			t.at = time.Now()
			s.Fact(t.last)
		}
	})
}

// end stops taking progress and returns the last one in words. Nothing is recorded after it.
func (t *progress) end() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.waiting != nil {
		t.waiting.Stop()
	}
	return t.last.String()
}
