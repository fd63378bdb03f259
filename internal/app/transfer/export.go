package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/transfer/bundle"
	"github.com/belay-run/belay/internal/transfer/transcript"
	"github.com/belay-run/belay/internal/view/snapshot"
)

// Formats of an export.
const (
	Bundle     = "bundle"     // everything, for an import
	Transcript = "transcript" // the messages
	Events     = "events"     // the standard's events
	Snapshot   = "snapshot"   // the standard's snapshot
)

// Export is an export that knows everything it needs.
type Export struct {
	Write   func(context.Context, io.Writer) error `json:"-"`
	Facts   int64                                  `json:"facts,omitempty"`
	Content int                                    `json:"content,omitempty"` // pieces
	Waiting int64                                  `json:"waiting,omitempty"` // commands that no fact answers yet
	Missing int                                    `json:"missing,omitempty"` // content that is kept no more
	Expired int                                    `json:"expired,omitempty"` // outputs that expired, according to facts
}

// Prepare makes an export of a session ready to be written.
func Prepare(ctx context.Context, st store.Store, id belay.SessionID, format string) (*Export, error) {
	switch format {
	case Transcript:
		return &Export{Write: func(ctx context.Context, w io.Writer) error { return writeTranscript(ctx, st, id, w) }}, nil
	case Events:
		return &Export{Write: func(ctx context.Context, w io.Writer) error { return writeEvents(ctx, st, id, w) }}, nil
	case Snapshot:
		return snapshotOf(ctx, st, id)
	}
	p, err := bundle.Take(ctx, st, id)
	if err != nil {
		return nil, err
	}
	m := p.Manifest
	return &Export{Write: p.Write, Facts: m.Facts.Count, Content: len(m.Content), Waiting: m.Inbox.Count, Missing: len(m.Missing), Expired: len(m.Expired)}, nil
}

func exportSession(ctx context.Context, c *app.Call, _ app.Fresh, q app.Query) (*app.Document, error) {
	s, err := c.Known(ctx, belay.SessionID(q.ID))
	if err != nil {
		return nil, input.At("path id", err)
	}
	d := &app.Document{}
	format := q.Values.Get("format")
	switch format {
	case "", Bundle:
		format, d.Media, d.Name = Bundle, "application/x-tar", q.ID+bundle.Extension
	case Transcript, Events:
		d.Media = "application/jsonl"
	case Snapshot:
		d.Media = "application/json"
	}
	x, err := Prepare(ctx, c.Store, s.Session, format)
	if err != nil {
		return nil, c.Hinted(err, "get_session shows how far it is")
	}
	d.Write = x.Write
	return d, nil
}

// writeTranscript writes the messages of a session's newest thread.
func writeTranscript(ctx context.Context, st store.Store, id belay.SessionID, w io.Writer) error {
	return eachLine(ctx, st, id, func(h transcript.Header, l *transcript.Line) error {
		if l == nil {
			return transcript.WriteHeader(w, h)
		}
		return transcript.WriteLine(w, *l)
	})
}

// eachLine takes the header of a session's transcript, without a line, and then the
// messages of its newest thread.
func eachLine(ctx context.Context, st store.Store, id belay.SessionID, take func(transcript.Header, *transcript.Line) error) error {
	s, err := app.StateOf(ctx, st, id)
	if err != nil {
		return err
	}
	if _, err := app.PastOf(ctx, st, id, s.Threads); err != nil {
		return err
	}
	thread := s.Threads[len(s.Threads)-1]
	h := transcript.Header{Session: id, Title: s.Title, Workspace: s.Workspace, Model: s.Settings.Model}
	if err := take(h, nil); err != nil {
		return err
	}
	for m, err := range history.Transcript(ctx, st, thread) {
		if err != nil {
			return err
		}
		l := transcript.Line{Thread: thread, Turn: m.Turn, Time: m.Time, Role: m.Role}
		for _, p := range m.Flat().Parts {
			part := transcript.LinePart{Text: p.Text, Call: p.Call, Result: p.Result}
			if f := p.File; f != nil {
				part.Text = fmt.Sprintf("[belay] %s (%s, %d bytes) isn't in the transcript", f.Name, f.Ref.Media, f.Ref.Size)
			}
			if p.Image != nil {
				raw, err := st.Get(ctx, p.Image.Ref.Digest)
				if err != nil {
					return err
				}
				part.Image = transcript.Picture(p.Image.Name, p.Image.Ref.Media, raw)
			}
			l.Parts = append(l.Parts, part)
		}
		if err := take(h, &l); err != nil {
			return err
		}
	}
	return nil
}

// Vocabulary is what the tokens of a transcript's parts are counted by.
const Vocabulary = "cl100k_base"

// Parts hands over the transcript of a session in parts of whole messages, numbered
// from 1, each a transcript with a header of its own. The messages of a part have at
// most so many tokens; one that has more is alone.
func Parts(ctx context.Context, st store.Store, id belay.SessionID, limit int, put func(number int, part []byte) error) (n int, err error) {
	var part, line bytes.Buffer
	pack := window.Packer{Limit: limit}
	err = eachLine(ctx, st, id, func(h transcript.Header, l *transcript.Line) error {
		if l == nil {
			return nil
		}
		line.Reset()
		if err := transcript.WriteLine(&line, *l); err != nil {
			return err
		}
		if pack.Add(tokens.Whole(Vocabulary, line.String())) {
			if n > 0 {
				if err := put(n, part.Bytes()); err != nil {
					return err
				}
			}
			n++
			part.Reset()
			h.Part = n
			if err := transcript.WriteHeader(&part, h); err != nil {
				return err
			}
		}
		_, err := line.WriteTo(&part)
		return err
	})
	if err == nil && n > 0 {
		err = put(n, part.Bytes())
	}
	return n, err
}

// writeEvents writes a session's facts as the standard's events, a line each,
// in the order of the log.
func writeEvents(ctx context.Context, st store.Store, id belay.SessionID, w io.Writer) error {
	n := 0
	for f, err := range st.Window(ctx, store.Window{Session: id}) {
		if err != nil {
			return err
		}
		raw, err := json.Marshal(f.Event)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(bytes.TrimSpace(raw), '\n')); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return belay.Errorf(belay.CodeNotFound, "nothing of it has happened yet").At(string(id)).WithHint("belay sessions resume %s", id)
	}
	return nil
}

// snapshotOf is the standard's snapshot of a session as it is now.
func snapshotOf(ctx context.Context, st store.Store, id belay.SessionID) (*Export, error) {
	f := snapshot.New(st.Runtime(), id)
	for s, err := range st.Window(ctx, store.Window{Session: id}) {
		if err != nil {
			return nil, err
		}
		f.Apply(s.Event)
	}
	owner, err := st.OwnerOf(ctx, id)
	if err != nil {
		return nil, err
	}
	snap := f.Done(owner != nil)
	if len(snap.Threads) == 0 { // the standard wants one
		return nil, belay.Errorf(belay.CodeBadState, "it has no thread yet, so there is nothing to show").At(string(id)).WithHint("belay sessions resume %s", id)
	}
	return &Export{Write: func(_ context.Context, w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(snap)
	}}, nil
}

// Extension is how names of bundles end.
const Extension = bundle.Extension

// Loss is something that a transcript has and its session hasn't.
type Loss = transcript.Loss
