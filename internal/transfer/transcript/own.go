package transcript

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"time"

	"github.com/belay-run/belay"
)

// Our own transcripts are a header and then a message in each line.

const (
	ownFormat  = "belay-transcript"
	ownVersion = 1
)

// Header is the first line of a transcript.
type Header struct {
	Format    string          `json:"format"`
	Version   int             `json:"version"`
	Session   belay.SessionID `json:"session"`
	Title     string          `json:"title,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Model     string          `json:"model,omitempty"`
	Part      int             `json:"part,omitempty"` // of a transcript in several files, from 1
}

// Line is a message as it stands in a line.
type Line struct {
	Thread belay.ThreadID `json:"thread"`
	Turn   belay.TurnID   `json:"turn,omitempty"`
	Time   time.Time      `json:"time,omitzero"`
	Role   belay.Role     `json:"role"`
	Parts  []LinePart     `json:"parts"`
}

// LinePart is one piece of a message: exactly one of its fields is set.
type LinePart struct {
	Text   string            `json:"text,omitempty"`
	Image  *LineImage        `json:"image,omitempty"`
	Call   *belay.ToolCall   `json:"call,omitempty"`
	Result *belay.ToolResult `json:"result,omitempty"`
}

// LineImage is a picture with its bytes, so that a transcript stands alone.
type LineImage struct {
	Name  string `json:"name,omitempty"`
	Media string `json:"media"`
	Data  string `json:"data"` // base64
}

// Picture is an image as a line has it.
func Picture(name, media string, data []byte) *LineImage {
	return &LineImage{name, media, base64.StdEncoding.EncodeToString(data)}
}

// WriteHeader writes a transcript's first line.
func WriteHeader(w io.Writer, h Header) error {
	h.Format, h.Version = ownFormat, ownVersion
	return encode(w, h)
}

// WriteLine writes a message.
func WriteLine(w io.Writer, l Line) error { return encode(w, l) }

func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (c *Conversation) openOwn() error {
	c.About.Format = string(Own)
	type place struct {
		span
		thread belay.ThreadID
	}
	var places []place
	first := true
	err := c.file.each(func(at span, raw []byte) error {
		if first {
			first = false
			return c.ownHeader(at, raw)
		}
		var l Line
		if err := decode(raw, &l); err != nil {
			c.left.add("line that can't be read", at.number)
			return nil
		}
		places = append(places, place{at, l.Thread})
		return nil
	})
	if err != nil {
		return err
	}
	if len(places) == 0 {
		return bad(0, "it has no conversation")
	}
	thread := places[len(places)-1].thread
	var chosen []span
	for _, p := range places {
		if p.thread != thread {
			c.left.add("message of another thread", p.number)
			continue
		}
		chosen = append(chosen, p.span)
	}
	plays(c, chosen, ownSaid)
	return nil
}

func (c *Conversation) ownHeader(at span, raw []byte) error {
	var h Header
	if err := decode(raw, &h); err != nil {
		return bad(at.number, "the header can't be read").Wrap(err)
	}
	if h.Format != ownFormat {
		return bad(at.number, "the first line is no header of a transcript")
	}
	if h.Version > ownVersion {
		return belay.Errorf(belay.CodeRequires, "the transcript has version %d, this program knows up to %d", h.Version, ownVersion).
			At("line " + itoa(at.number)).WithHint("update belay; nothing was kept")
	}
	c.About.Session, c.About.Title, c.About.Workspace, c.About.Model = string(h.Session), h.Title, h.Workspace, h.Model
	return nil
}

func ownSaid(b *builder, l *Line, line int) {
	parts := ownParts(b, l, line)
	switch l.Role {
	case belay.RoleUser:
		b.user(l.Time, parts, l.Turn != b.task)
		b.task = l.Turn
	case belay.RoleAssistant:
		b.model(l.Time, "", parts, line)
	case belay.RoleTool: // what remains are remarks of the runtime after the results
		b.user(l.Time, parts, false)
	default:
		b.left.add("message of role "+kind(string(l.Role)), line)
	}
}

// ownParts takes a message's results and returns the rest of it.
func ownParts(b *builder, l *Line, line int) (parts []Part) {
	for _, p := range l.Parts {
		switch {
		case p.Image != nil:
			part := b.picture(p.Image.Media, p.Image.Data, line)
			if part.Image != nil && p.Image.Name != "" {
				part.Image.Name = clean(p.Image.Name)
			}
			parts = append(parts, part)
		case p.Result != nil:
			b.result(string(p.Result.ID), p.Result.Text, p.Result.Error, line)
		case p.Call != nil && l.Role == belay.RoleAssistant:
			parts = append(parts, call(string(p.Call.ID), p.Call.Name, p.Call.Args))
		case p.Call != nil:
			b.left.add("call that no model made", line)
		default:
			parts = append(parts, Part{Text: p.Text})
		}
	}
	return parts
}
