package modelserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is how a server fails. The zero value is none.
type Fault struct {
	// Before anything of a stream:
	Before time.Duration     // it is silent so long; less than zero is forever
	Status int               // it answers with this status instead
	Class  string            // of the failure that the body speaks of
	Body   string            // in place of the vendor's way to say it
	Header map[string]string // sent besides; Content-Type replaces the stream's

	// In the stream, at its event number At, from 0; less than zero counts from
	// the end. Upon is the first event that holds this text instead.
	At   int
	Upon string
	Kind Kind
	Drip time.Duration // pause between single bytes
	Gait time.Duration // pause between events
	Gzip bool          // the stream is compressed
}

// Kind names what happens in the middle of a stream.
type Kind string

const (
	Cut       Kind = "cut"       // the connection breaks
	CutLine   Kind = "cut-line"  // it breaks in the middle of a line
	End       Kind = "end"       // the stream ends as if all had been said
	Hang      Kind = "hang"      // it goes silent
	Alive     Kind = "alive"     // it says every ten seconds that it is there, and nothing else
	Garbage   Kind = "garbage"   // something that is no JSON
	HalfJSON  Kind = "half-json" // an event whose JSON ends in the middle
	Giant     Kind = "giant"     // a line without an end, a gigabyte long
	Duplicate Kind = "duplicate" // an event comes twice
	Missing   Kind = "missing"   // an event doesn't come
	Comments  Kind = "comments"  // keep-alive lines between events
	Flood     Kind = "flood"     // an event comes again and again, a gigabyte of it
	NoHTTP    Kind = "no-http"   // what answers doesn't speak HTTP
)

// giant is how long a line without an end or a flood is, in bytes.
const giant = 1 << 30

// place is the number of the event that is struck.
func (f Fault) place(frames [][]byte) int {
	if f.Upon != "" {
		at := slices.IndexFunc(frames, func(b []byte) bool { return bytes.Contains(b, []byte(f.Upon)) })
		if at < 0 {
			panic("no event holds " + f.Upon)
		}
		return at
	}
	if f.At < 0 {
		return max(len(frames)+f.At, 0)
	}
	return f.At
}

// send writes the frames of a stream and fails in the middle of it.
func (f Fault) send(ctx context.Context, w http.ResponseWriter, frames [][]byte) {
	out := &drip{ctx: ctx, w: w, flush: w.(http.Flusher).Flush, pause: f.Drip}
	if f.Gzip {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close() //nolint:errcheck // the client may have left
		out.w, out.flush = z, func() { z.Flush(); w.(http.Flusher).Flush() }
	}
	at := f.place(frames)
	for i, frame := range frames {
		if i == at && f.Kind != "" && !f.strike(ctx, out, &frame) {
			return
		}
		switch {
		case frame == nil:
			panic(http.ErrAbortHandler)
		case len(frame) == 0 && i == len(frames)-1:
			out.flush()
			<-ctx.Done()
			return
		}
		if !out.write(frame) || f.Gait > 0 && !wait(ctx, f.Gait) {
			return
		}
	}
	if f.Kind != "" && at >= len(frames) {
		f.strike(ctx, out, new([]byte))
	}
}

// strike does what the fault is; it reports whether the stream continues, with what
// it left in frame.
func (f Fault) strike(ctx context.Context, out *drip, frame *[]byte) bool {
	switch f.Kind {
	case Cut:
		panic(http.ErrAbortHandler)
	case CutLine:
		out.write((*frame)[:len(*frame)/2])
		panic(http.ErrAbortHandler)
	case End:
		return false
	case Hang:
		out.flush()
		<-ctx.Done()
		return false
	case Alive:
		for out.write([]byte(": keep-alive\n\n")) && wait(ctx, 10*time.Second) {
		}
		return false
	case Garbage:
		*frame = []byte("data: <html>oops\x00\xff\n\n")
	case HalfJSON:
		at := bytes.Index(*frame, []byte("data: ")) + len("data: ")
		*frame = append(bytes.Clone((*frame)[:at+(len(*frame)-at)/2]), "\n\n"...)
	case Giant:
		line := []byte(strings.Repeat("x", 1<<20))
		return out.giant(func(int) []byte { return line })
	case Flood:
		return out.giant(renumbered(*frame))
	case Duplicate:
		*frame = bytes.Repeat(*frame, 2)
	case Missing:
		*frame = []byte(": left out\n\n")
	case Comments:
		*frame = append([]byte(": keep-alive\n\n: and again\n"), *frame...)
	}
	return true
}

// drip writes at once, or byte by byte with a pause.
type drip struct {
	ctx   context.Context
	w     io.Writer
	flush func()
	pause time.Duration
}

func (d *drip) write(b []byte) bool {
	if d.pause == 0 {
		_, err := d.w.Write(b)
		d.flush()
		return err == nil
	}
	for i := range b {
		if _, err := d.w.Write(b[i : i+1]); err != nil || !wait(d.ctx, d.pause) {
			return false
		}
		d.flush()
	}
	return true
}

// giant writes pieces until there is a gigabyte of them or the client stops
// reading.
func (d *drip) giant(piece func(i int) []byte) bool {
	for i, sent := 0, 0; sent < giant; i++ {
		b := piece(i)
		if _, err := d.w.Write(b); err != nil {
			return false
		}
		sent += len(b)
	}
	return false
}

var sequence = regexp.MustCompile(`"sequence_number":(\d+)`)

// renumbered is an event again and again, each with the number after the one
// before it where the protocol numbers its events.
func renumbered(frame []byte) func(int) []byte {
	at := sequence.FindSubmatchIndex(frame)
	if at == nil {
		return func(int) []byte { return frame }
	}
	first, _ := strconv.Atoi(string(frame[at[2]:at[3]]))
	return func(i int) []byte {
		return slices.Concat(frame[:at[2]], strconv.AppendInt(nil, int64(first+i), 10), frame[at[3]:])
	}
}

// stranger answers as a server of something else does.
func stranger(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err) // only HTTP/2 can't, and no test asks for it there
	}
	io.WriteString(conn, "220 mail.example ESMTP\r\n") //nolint:errcheck // the client may have left
	conn.Close()                                       //nolint:errcheck // likewise
}
