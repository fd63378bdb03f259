package processes

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
	"github.com/belay-run/belay/internal/view"
)

// Output is what facts say of a program and keep of its output.
type Output struct {
	IDs  belay.IDs // of its first fact
	Size int64     // in bytes, so far
	Kept exec.Kept

	st store.Store
}

// OpenOutput finds a program of a store, also one that has ended. session may be
// empty: sessions are asked one after the other then, those that run programs or have
// run some before others, and the one that changed last first.
func OpenOutput(ctx context.Context, c *app.Call, session belay.SessionID, id belay.ProcessID) (*Output, error) {
	facts, err := factsOf(ctx, c, session, id)
	if err != nil {
		return nil, err
	}
	if len(facts) == 0 {
		err := belay.Errorf(belay.CodeNotFound, "no fact of this store is about such a process").At(string(id)).WithHint("belay process list")
		return nil, input.At("processId", c.Hinted(err, "list_processes lists those that run"))
	}
	k := exec.KeptOf(facts)
	return &Output{IDs: facts[0].IDs, Size: k.Total, Kept: k, st: c.Store}, nil
}

// Read returns up to n bytes of the output from an offset on, fewer at its end, and
// where they begin: later where nothing was kept in between.
func (o *Output) Read(ctx context.Context, offset int64, n int) (b []byte, at int64, err error) {
	part := func(d belay.Digest, offset, n int64) ([]byte, error) { return store.Part(ctx, o.st, d, offset, n) }
	b, at, err = o.Kept.Window(part, offset, n)
	if te, ok := errors.AsType[*tool.Error](err); ok {
		err = belay.Errorf(belay.CodeExpired, "%s", te.Message).At(string(o.IDs.Process)).WithHint("%s", te.Hint)
	}
	return b, at, err
}

// factsOf are the facts of a program and the output.expired of its session, in the
// order of the log.
func factsOf(ctx context.Context, c *app.Call, session belay.SessionID, id belay.ProcessID) ([]event.Envelope, error) {
	if session != "" {
		return factsIn(ctx, c.Store, session, id)
	}
	if !strings.HasPrefix(string(id), belay.PrefixProcess+"_") {
		return nil, nil
	}
	if err := c.Reads.Views.Catchup(ctx); err != nil {
		return nil, err
	}
	sessions, err := view.Sessions(ctx, c.Store, view.Filter{})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(sessions, func(x, y view.Session) int { return -cmp.Compare(ran(&x), ran(&y)) })
	for _, s := range sessions {
		if facts, err := factsIn(ctx, c.Store, s.ID, id); err != nil || len(facts) > 0 {
			return facts, err
		}
	}
	return nil, nil
}

// ran is 1 if a session has run programs, or may be running one, else 0.
func ran(s *view.Session) int {
	if s.Programs.Ended > 0 || slices.ContainsFunc(s.Threads, func(t view.Thread) bool { return t.Turn != nil && t.Turn.Status != view.Ended }) {
		return 1
	}
	return 0
}

// factsIn are those that a session has.
func factsIn(ctx context.Context, st store.Store, session belay.SessionID, id belay.ProcessID) (facts []event.Envelope, err error) {
	for r, err := range st.Window(ctx, store.Window{Session: session}) {
		if err != nil {
			return nil, err
		}
		_, let := r.Event.Data.(event.OutputExpired)
		if r.Event.IDs.Process == id || let && len(facts) > 0 {
			facts = append(facts, r.Event)
		}
	}
	return facts, nil
}

// ReadProcessOutput is what read_process_output takes.
type ReadProcessOutput struct {
	Session belay.SessionID `json:"sessionId,omitempty" jsonschema:"where the program ran; found when it is left out"`
	Process belay.ProcessID `json:"processId"`
	Offset  int64           `json:"offset,omitempty" jsonschema:"the first byte; a negative number counts from the end"`
	Bytes   int64           `json:"bytes,omitempty" jsonschema:"how many at most; 1 MB when it is left out, which is the most"`
	Find    string          `json:"find,omitempty" jsonschema:"begin with the line that has this text, at the offset or behind it; the case of a to z doesn't matter"`
	app.AsOf
}

// OutputShown is a part of a program's output.
type OutputShown struct {
	app.Fresh
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty"`
	Process belay.ProcessID `json:"processId"`
	Ended   bool            `json:"ended"`
	Status  string          `json:"status,omitempty"` // how it ended, in words
	Size    int64           `json:"size"`             // of the whole output so far, in bytes
	Offset  int64           `json:"offset"`           // of the first byte: later than asked for where nothing was kept
	Found   *int64          `json:"found,omitempty"`  // where the text that was looked for is; left out: nowhere behind the offset
	Data    []byte          `json:"data"`             // in base64
}

// MaxOutput is how much of an output is read at once, in bytes.
const MaxOutput = 1 << 20

const maxLine = 32 << 10 // of a line is shown before what was found in it

// reader reads an output from a place on. What wasn't kept is read as zeros, so that each
// byte stays in its place.
type reader struct {
	ctx     context.Context
	o       *Output
	at      int64
	zerosTo int64
}

func (r *reader) Read(b []byte) (n int, err error) {
	if r.at >= r.zerosTo {
		part, at, err := r.o.Read(r.ctx, r.at, len(b))
		switch {
		case err != nil:
			return 0, err
		case len(part) == 0:
			return 0, io.EOF
		case at == r.at:
			n = copy(b, part)
			r.at += int64(n)
			return n, nil
		}
		r.zerosTo = at
	}
	n = int(min(r.zerosTo-r.at, int64(len(b))))
	clear(b[:n])
	r.at += int64(n)
	return n, nil
}

func readProcessOutput(ctx context.Context, c *app.Call, f app.Fresh, in *ReadProcessOutput) (*OutputShown, error) {
	if err := cmp.Or(input.Named("processId", string(in.Process)), input.ID("sessionId", string(in.Session))); err != nil {
		return nil, err
	}
	if in.Bytes < 0 || in.Bytes > MaxOutput {
		return nil, input.At("bytes", belay.Errorf(belay.CodeBadCommand, "%d bytes can't be read at once", in.Bytes).WithHint("leave it out for as many as can be: %d", MaxOutput))
	}
	if err := read.Findable("find", in.Find); err != nil {
		return nil, err
	}
	o, err := OpenOutput(ctx, c, in.Session, in.Process)
	if err != nil {
		return nil, err
	}
	from := in.Offset
	if from < 0 {
		from = max(0, o.Size+from)
	}
	out := &OutputShown{Fresh: f, Session: o.IDs.Session, Thread: o.IDs.Thread, Process: in.Process, Ended: o.Kept.Ended, Size: o.Size}
	if o.Kept.Ended {
		out.Status = o.Kept.Status
	}
	if in.Find != "" {
		found, line, err := read.Find(&reader{ctx: ctx, o: o, at: from}, in.Find, from)
		switch {
		case err != nil:
			return nil, input.At("processId", err)
		case found < 0:
			out.Data, out.Offset = []byte{}, o.Size
			return out, nil
		}
		out.Found, from = &found, max(line, found-maxLine)
	}
	if out.Data, out.Offset, err = o.Read(ctx, from, int(cmp.Or(in.Bytes, MaxOutput))); err != nil {
		return nil, input.At("processId", err)
	}
	if out.Data == nil { // null is no text
		out.Data = []byte{}
	}
	return out, nil
}
