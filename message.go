package belay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
)

// Role is the speaker of a message.
type Role string

const (
	RoleUser      Role = "user"      // the person, or the runtime in a note
	RoleAssistant Role = "assistant" // the model
	RoleTool      Role = "tool"      // results of calls
)

// Message is one entry of a conversation as a model sees it.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one piece of a message: exactly one of its fields besides Whole is set.
type Part struct {
	Text   string      `json:"text,omitempty"`
	Image  *Attachment `json:"image,omitempty"` // a picture, by the digest of its bytes
	File   *Attachment `json:"file,omitempty"`  // a document that isn't text, such as a PDF
	Echo   *Echo       `json:"echo,omitempty"`  // before the rest of an answer
	Call   *ToolCall   `json:"call,omitempty"`
	Result *ToolResult `json:"result,omitempty"`
	Whole  *Ref        `json:"whole,omitempty"` // all of a text, or of a result's text, that stands here in part
}

// Attachment is the part's picture or document; nil: it is neither.
func (p Part) Attachment() *Attachment { return cmp.Or(p.Image, p.File) }

// Echo is what a vendor gave with an answer and wants back unchanged, such as
// reasoning that it signed or encrypted. Only that vendor can read it: a request
// to another API leaves it out.
type Echo struct {
	By   string          `json:"by"` // the dialect that understands it: protocol and model
	Data json.RawMessage `json:"data"`
}

// Size is the number of bytes; of none it is zero.
func (e *Echo) Size() int {
	if e == nil {
		return 0
	}
	return len(e.By) + len(e.Data)
}

// Calls are the calls of a message, in order.
func (m Message) Calls() []*ToolCall {
	var calls []*ToolCall
	for i := range m.Parts {
		if c := m.Parts[i].Call; c != nil {
			calls = append(calls, c)
		}
	}
	return calls
}

// ToolCall is a call as the model asked for it.
type ToolCall struct {
	ID   CallID          `json:"id"` // the runtime's id, not the provider's
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // an object, or a JSON string holding what could not be parsed
	Echo *Echo           `json:"echo,omitempty"`
}

// ToolResult is the successful end of a call.
type ToolResult struct {
	ID    CallID `json:"id"`
	Name  string `json:"name,omitempty"`
	Text  string `json:"text"`
	Parts []Part `json:"parts,omitempty"` // pictures and documents after the text; a text stands for one that isn't shown
	Error bool   `json:"error,omitempty"` // the call failed, was denied or is lost
}

// Attachments yields the pictures and documents of a message, in order, those of
// results included.
func (m Message) Attachments() iter.Seq[*Attachment] {
	return func(yield func(*Attachment) bool) {
		for _, p := range m.Flat().Parts {
			if a := p.Attachment(); a != nil && !yield(a) {
				return
			}
		}
	}
}

// Flat is the message with the parts of its results behind all results, for readers that
// take results of text only. Each picture and document is announced by its name.
func (m Message) Flat() Message {
	var rest []Part
	for i, p := range m.Parts {
		if p.Result == nil || len(p.Result.Parts) == 0 {
			continue
		}
		if rest == nil {
			m.Parts = slices.Clone(m.Parts)
		}
		r := *p.Result
		for _, part := range r.Parts {
			if a := part.Attachment(); a != nil {
				rest = append(rest, Part{Text: fmt.Sprintf("[belay] %s returned: %s", r.Name, a.Name)})
			}
			rest = append(rest, part)
		}
		r.Parts = nil
		m.Parts[i].Result = &r
	}
	m.Parts = append(m.Parts, rest...)
	return m
}

// Withheld is the text that stands for a picture or a document which isn't shown.
func (a Attachment) Withheld(why string) string {
	kind := "file"
	if a.Image() {
		kind = "image"
	}
	return fmt.Sprintf("[%s: %s (%s, %d bytes) isn't shown: %s]", kind, a.Name, a.Ref.Media, a.Ref.Size, why)
}

// Text is a message of one text part.
func Text(r Role, s string) Message { return Message{Role: r, Parts: []Part{{Text: s}}} }
