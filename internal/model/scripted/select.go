package scripted

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// choice is the step that answers a request.
type choice struct {
	step   *step
	n      int // repetition, from 1
	answer int // number of the answer in the conversation, from 1
}

// walk is a reading of a conversation from its start: where the main line
// stands and how often each branch was taken. Nothing of it outlives a
// request, so a process that was killed and started again reads the same.
type walk struct {
	script  *Script
	place   int
	taken   map[*step]int
	answers int
}

// choose finds the step for a request.
func (s *Script) choose(r model.Request) (choice, bool) {
	w := walk{script: s, taken: map[*step]int{}}
	from := 0
	for i := range r.Messages {
		if r.Messages[i].Role == belay.RoleAssistant {
			w.past(r.Messages, from, i)
			from = i + 1
		}
	}
	in := heard{r.Messages, from, len(r.Messages)}
	for _, b := range s.branch {
		if w.open(b) && b.When.input(in) && b.When.request(r) {
			return choice{b, 1, w.answers + 1}, true
		}
	}
	st, n := s.at(w.place)
	return choice{st, n, w.answers + 1}, st != nil
}

// past moves over an answer of the conversation: messages[at], which answers messages[from:at].
func (w *walk) past(messages []belay.Message, from, at int) {
	w.answers++
	main, n := w.script.at(w.place)
	in := heard{messages, from, at}
	for _, b := range w.script.branch {
		if !w.open(b) || !b.When.input(in) {
			continue
		}
		if b.When.unrecorded() {
			said := messages[at]
			if !b.says(said, 1) || main != nil && main.says(said, n) {
				continue
			}
		}
		w.taken[b]++
		w.move(b, false)
		return
	}
	if main != nil {
		w.move(main, n >= main.Repeat)
	}
}

// open reports whether a branch may be taken once more.
func (w *walk) open(b *step) bool { return b.Times == 0 || w.taken[b] < b.Times }

// move goes where an answer leads. A jump of a repeated step waits for its
// last repetition.
func (w *walk) move(st *step, last bool) {
	switch {
	case st.When == nil && (!last || st.jump == jumpNone), st.jump == jumpNext:
		w.place++
	case st.jump >= 0:
		w.place = st.jump
	}
}

// says reports whether a message is what a step says: the same text and calls of
// the same tools.
func (st *step) says(m belay.Message, n int) bool {
	var text strings.Builder
	var tools []string
	for _, p := range m.Parts {
		text.WriteString(p.Text)
		if p.Call != nil {
			tools = append(tools, p.Call.Name)
		}
	}
	same := func(name string, c model.Call) bool { return name == c.Name }
	return text.String() == st.number(st.Text, n) && slices.EqualFunc(tools, st.calls, same)
}

// heard is what was said to the model between two of its answers:
// messages[from:to].
type heard struct {
	messages []belay.Message
	from, to int
}

// tool is the tool that a result is of.
func (h heard) tool(r *belay.ToolResult) string {
	if r.Name == "" && h.from > 0 {
		return toolOf(h.messages[h.from-1], r.ID)
	}
	return r.Name
}

// toolOf is the tool of a call in an answer.
func toolOf(answer belay.Message, id belay.CallID) string {
	for _, p := range answer.Parts {
		if p.Call != nil && p.Call.ID == id {
			return p.Call.Name
		}
	}
	return ""
}

// input reports whether one and the same text or result meets the condition.
func (w *when) input(h heard) bool {
	if !w.aboutInput() {
		return true
	}
	for _, m := range h.messages[h.from:h.to] {
		for _, p := range m.Parts {
			if p.Result != nil && w.result(h, p.Result) || p.Result == nil && w.Tool == "" && w.Error == nil && w.text(textOf(p)) {
				return true
			}
		}
	}
	return false
}

// textOf is a part in words; a picture or a document is its name and kind in
// brackets.
func textOf(p belay.Part) string {
	if a := p.Attachment(); a != nil {
		return "[" + a.Ref.Media + " " + a.Name + "]"
	}
	return p.Text
}

func (w *when) result(h heard, r *belay.ToolResult) bool {
	said := r.Text
	for _, p := range r.Parts {
		said += "\n" + textOf(p)
	}
	return (w.Error == nil || *w.Error == r.Error) && (w.Tool == "" || w.Tool == h.tool(r)) && w.text(said)
}

func (w *when) text(s string) bool {
	return strings.Contains(s, w.Contains) && (w.matches == nil || w.matches.MatchString(s))
}

// request reports whether the request itself meets the condition.
func (w *when) request(r model.Request) bool {
	switch {
	case w.note != nil && (r.Note == "" || !w.note.MatchString(r.Note)),
		w.Attempt != 0 && w.Attempt != r.Attempt,
		w.Forced != "" && w.Forced != r.ForceTool:
		return false
	}
	return true
}
