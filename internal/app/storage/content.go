package storage

import (
	"context"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
)

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.DefineRead(app.Read{Name: "getContent", Path: "/v1/content/{id}", Tag: "reads", Doc: "Read a part of a content that a fact of a session names.", ID: "Its digest.",
			Query: []read.Param{{Name: "session", Doc: "The session whose fact names it.", Required: true},
				{Name: "offset", Doc: "The first byte.", Whole: true},
				{Name: "limit", Doc: "How many bytes at most; 65536 when nothing is said, which is the most.", Whole: true},
				{Name: "find", Doc: "Begin with the line that has this text, at the offset or behind it; the case of a to z doesn't matter."}}}, readContent),
	}
}

// ContentShown is a part of a content.
type ContentShown struct {
	app.Fresh
	Digest belay.Digest `json:"digest"`
	Offset int64        `json:"offset"`          // of its first byte
	Found  *int64       `json:"found,omitempty"` // where the text that was looked for is; left out: nowhere behind the offset
	Text   string       `json:"text,omitempty"`  // if it is text; it ends with a whole character
	Data   []byte       `json:"data,omitempty"`  // in base64, if it isn't
	Next   int64        `json:"next,omitempty"`  // offset of what follows; 0: nothing does
}

const maxPart = 64 << 10

func readContent(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*ContentShown, error) {
	d, session := belay.Digest(q.ID), belay.SessionID(q.Values.Get("session"))
	if !d.Valid() {
		return nil, input.At("path id", belay.Errorf(belay.CodeBadID, "%q is no digest", input.Shown(q.ID)).WithHint("sha256: and 64 hexadecimal digits, as facts have it"))
	}
	if err := input.Named("query session", string(session)); err != nil {
		return nil, err
	}
	offset, err := whole(q, "offset", 0, 1<<62)
	if err != nil {
		return nil, err
	}
	limit, err := whole(q, "limit", maxPart, maxPart)
	if err != nil {
		return nil, err
	}
	find := q.Values.Get("find")
	if err := read.Findable("query find", find); err != nil {
		return nil, err
	}
	gone := belay.Errorf(belay.CodeNotFound, "no fact of the session names a content with this digest, or it isn't kept any more").At(q.ID)
	if named, err := c.Reads.Names.Named(ctx, c.Store, session, d); err != nil || !named {
		return nil, input.At("path id", orElse(err, gone))
	}
	out := &ContentShown{Fresh: f, Digest: d, Offset: offset}
	if find != "" {
		if err := out.seek(ctx, c.Store, find); err != nil {
			return nil, err
		}
		if out.Found == nil {
			return out, nil
		}
	}
	part, err := part(ctx, c.Store, d, out.Offset, limit+1)
	if errors.Is(err, store.ErrNotFound) {
		err = input.At("path id", gone)
	}
	if err == nil {
		out.put(part, limit)
	}
	return out, err
}

func orElse(err error, otherwise *belay.Error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// whole is a whole number of a query, from 0 or 1 on.
func whole(q app.Query, name string, otherwise, most int64) (int64, error) {
	v := q.Values.Get(name)
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > most || n == 0 && otherwise > 0 {
		return 0, input.At("query "+name, belay.Errorf(belay.CodeUsage, "%q is no whole number up to %d", input.Shown(v), most).WithHint("%s=%d", name, otherwise))
	}
	return n, nil
}

// part is n bytes of a content, from offset on. The part at its end is read with all that
// is before it, so that damage shows.
func part(ctx context.Context, in store.Blobs, d belay.Digest, offset, n int64) ([]byte, error) {
	r, err := in.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := skip(r, offset, n); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, n))
}

// skip moves a content's reader to an offset, behind which more than least bytes are read;
// it reads what is before it where fewer follow.
func skip(r io.Reader, offset, least int64) error {
	if s, ok := r.(io.Seeker); ok {
		size, err := s.Seek(0, io.SeekEnd)
		from := offset
		if size < offset+least {
			from = 0
		}
		if err == nil {
			_, err = s.Seek(from, io.SeekStart)
		}
		if err != nil {
			return err
		}
		offset -= from
	}
	_, err := io.CopyN(io.Discard, r, offset)
	return err
}

// put takes bytes that were read, one more than are wanted if there are more.
func (s *ContentShown) put(b []byte, limit int64) {
	more := int64(len(b)) > limit
	if more {
		b = b[:limit]
	}
	text := b
	for cut := 0; more && cut < utf8.UTFMax && len(text) > 0 && !utf8.Valid(text); cut++ {
		text = text[:len(text)-1]
	}
	if utf8.Valid(text) && (len(text) > 0 || len(b) == 0) {
		s.Text, b = string(text), text
	} else {
		s.Data = b
	}
	if more {
		s.Next = s.Offset + int64(len(b))
	}
}

// seek moves to the beginning of the line that has a text.
func (s *ContentShown) seek(ctx context.Context, in store.Blobs, find string) error {
	r, err := in.Open(ctx, s.Digest)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := skip(r, s.Offset, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	found, line, err := read.Find(r, find, s.Offset)
	if err == nil && found >= 0 {
		s.Found, s.Offset = &found, max(line, found-maxPart/2)
	}
	return err
}
