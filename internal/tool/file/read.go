//go:build unix

package file

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

//go:embed read.md
var readDoc string

type readArgs struct {
	Path   string `json:"path" jsonschema:"file"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"number of lines"`
}

// Read shows text files. It streams: a file of any size costs the same memory.
// A file shown whole is kept, so that a later conflict can show what changed.
func Read() tool.Tool {
	spec := reading("read", strings.TrimSpace(readDoc))
	spec.OutputLimit = readLimit
	return tool.New(spec, read)
}

func read(ctx context.Context, c tool.Call, in readArgs) (r tool.Result, err error) {
	if in.Offset < 0 || in.Limit < 0 {
		return r, tool.Failf(tool.BadArguments, tool.CodeBadArguments, "offset and limit can't be negative")
	}
	err = at(ctx, c.Root, in.Path, func(p *place) error {
		r, err = p.read(ctx, c, in)
		return err
	})
	if e, ok := errors.AsType[*tool.Error](err); ok && e.Code == CodeNoSuchFile {
		if name, cleanErr := Clean(Within(c.Root.Name(), in.Path)); cleanErr == nil {
			e.Files = []event.FileSeen{{Path: name, Digest: Absent}}
		}
	}
	return r, err
}

func (p *place) read(ctx context.Context, c tool.Call, in readArgs) (tool.Result, error) {
	f, err := p.file()
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()
	if r, shown, err := p.other(c, in, f); shown || err != nil {
		return r, err
	}
	w := &window{first: max(in.Offset, 1), limit: in.Limit, room: readLimit - 512}
	if p.info.Size() <= maxContent {
		w.hash = sha256.New()
	}
	if err := w.scan(ctx, f, p); err != nil {
		return tool.Result{}, err
	}
	if w.ended && w.shown == 0 && w.cut == 0 && w.first > 1 {
		return tool.Result{}, tool.Failf(tool.BadArguments, CodeBeyondEnd, "%s has %d lines; offset %d is beyond them", show(p.name), w.lines(), w.first)
	}
	return p.result(c, w)
}

// other shows a file that isn't shown as lines; false: it is.
func (p *place) other(c tool.Call, in readArgs, f io.ReaderAt) (r tool.Result, shown bool, err error) {
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return r, false, nil // a file of the system, which is read from its beginning
	}
	if media := mediaOfStart(head[:n]); media != "" {
		r, err = p.picture(c, media)
		return r, true, err
	}
	if path.Ext(p.name) != ".ipynb" || p.info.Size() > maxContent {
		return r, false, nil
	}
	content, err := p.content()
	if err != nil {
		return r, true, err
	}
	if book, ok := parseNotebook(content); ok {
		r, err = p.notebook(c, in, content, book)
		return r, true, err
	}
	return r, false, nil
}

func (p *place) result(c tool.Call, w *window) (tool.Result, error) {
	r := tool.Result{Text: string(w.out)}
	if !w.whole() { // a secret may begin before it, or end after it
		around := slices.Concat(w.before, w.out, w.after)
		r.Text = string(c.Sink.Cut(around)(len(w.before), len(w.before)+len(w.out)))
	}
	if w.whole() {
		if _, err := keep(c, w.out); err != nil {
			return tool.Result{}, err
		}
		if len(w.out) == 0 {
			r.Text = "[empty file]"
		}
	} else {
		if !strings.HasSuffix(r.Text, "\n") {
			r.Text += "\n"
		}
		r.Text += w.note(p.info)
	}
	if w.hash != nil && w.ended {
		r.Files = p.seen("sha256:" + hex.EncodeToString(w.hash.Sum(nil)))
	}
	return r, nil
}

// seen is what the thread knows now of the file, under its name and, when a
// link led to it, under the one it really has.
func (p *place) seen(digest string) []event.FileSeen {
	files := []event.FileSeen{{Path: p.name, Digest: digest}}
	if p.real != p.name {
		files = append(files, event.FileSeen{Path: p.real, Digest: digest})
	}
	return files
}

// window takes some lines out of a file that flows by.
type window struct {
	first, limit int       // lines wanted; limit 0 is all
	room         int       // bytes that may be shown
	hash         hash.Hash // of all of it; nil when it is too large

	before, after []byte // what is around out, to know a secret that is cut

	out   []byte
	shown int   // last line that is in out to its end
	cut   int   // line of which only a part is in out
	full  bool  // room is used up
	line  int   // lines that have ended
	tail  bool  // the last line has no newline
	start int   // of the current line in out
	total int64 // bytes
	ended bool  // the file was read to its end
}

const (
	scanBytes   = 64 << 10 // are read at once, or what the file has
	binaryBytes = 8000     // are looked through before anything is shown
	edgeBytes   = 16 << 10 // are kept of what is around the lines that are shown
)

func (w *window) scan(ctx context.Context, f io.Reader, p *place) error {
	room := min(p.info.Size()+1, scanBytes)
	if room == 1 { // it is empty, or a file of the system without a known size
		room = binaryBytes
	}
	if w.hash != nil {
		f = io.TeeReader(f, w.hash)
	}
	in := bufio.NewReaderSize(f, int(room))
	if head, _ := in.Peek(int(min(room, binaryBytes))); bytes.IndexByte(head, 0) >= 0 { // an error comes again
		return p.binary(head)
	}
	for !w.ended && (w.hash != nil || len(w.after) < edgeBytes) {
		if err := ctx.Err(); err != nil {
			return err
		}
		seg, err := in.ReadSlice('\n') // a line, or a piece of a long one
		switch {
		case err == io.EOF:
			w.ended = true
		case err != nil && err != bufio.ErrBufferFull:
			return err
		}
		if len(seg) > 0 {
			w.take(seg, err == nil)
		}
	}
	if w.tail && !w.full && w.wants(w.line+1) {
		w.shown = w.line + 1
	}
	if !utf8.Valid(w.out) || bytes.IndexByte(w.out, 0) >= 0 {
		return p.binary(w.out)
	}
	return nil
}

func (w *window) wants(line int) bool {
	return line >= w.first && (w.limit == 0 || line < w.first+w.limit)
}

// take adds a piece of the next line if it is wanted, and counts lines.
func (w *window) take(seg []byte, newline bool) {
	w.total += int64(len(seg))
	switch {
	case !w.full && w.wants(w.line+1):
		w.add(seg, newline)
	case w.line+1 < w.first:
		w.before = append(w.before, seg...)
		if len(w.before) > 4*edgeBytes {
			w.before = append(w.before[:0], w.before[len(w.before)-edgeBytes:]...)
		}
	case len(w.after) < edgeBytes:
		w.after = append(w.after, seg...)
	}
	if w.tail = !newline; newline {
		w.line++
		w.start = len(w.out)
	}
}

func (w *window) add(seg []byte, newline bool) {
	room := w.room - len(w.out)
	if len(seg) <= room {
		w.out = append(w.out, seg...)
		if newline {
			w.shown = w.line + 1
		}
		return
	}
	w.full = true
	if w.start > 0 {
		w.after = slices.Concat(w.out[w.start:], seg)
		w.out = w.out[:w.start] // whole lines only
		return
	}
	w.cut = w.line + 1
	all := append(w.out, seg...)
	w.out = all[:len(w.out)+room]
	for i := 0; i < utf8.UTFMax && !utf8.Valid(w.out); i++ {
		w.out = w.out[:len(w.out)-1]
	}
	w.after = slices.Clone(all[len(w.out):])
}

// lines is the number of lines when the file was read to its end.
func (w *window) lines() int {
	if w.tail {
		return w.line + 1
	}
	return w.line
}

func (w *window) whole() bool { return w.ended && int64(len(w.out)) == w.total }

// note returns what is shown and how to go on.
func (w *window) note(info os.FileInfo) string {
	of := fmt.Sprintf("%d", w.lines())
	if !w.ended {
		of = "a file of " + size(info.Size())
	}
	if w.cut > 0 {
		return fmt.Sprintf("[the first %d bytes of line %d of %s; the rest of that line can't be shown by read]", len(w.out), w.cut, of)
	}
	note := fmt.Sprintf("[lines %d-%d of %s", w.first, w.shown, of)
	if !w.ended || w.shown < w.lines() {
		note += fmt.Sprintf("; go on with offset %d", w.shown+1)
	}
	return note + "]"
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}

// digestOf is the digest of content as files are compared by it.
func digestOf(b []byte) string { return string(belay.DigestOf(b)) }

// digestIf is the digest of what is there, or that nothing is.
func digestIf(there bool, content string) string {
	if !there {
		return Absent
	}
	return digestOf([]byte(content))
}
