// Package bundle is a session as one file: every fact as its store keeps it,
// the content the facts name, and the commands that wait. It promises that the
// same session makes the same bytes, that a file that isn't exactly what was
// written is refused before anything of it is kept, and that a session is
// brought back whole or not at all. It knows the format of facts, not their
// meaning.
//
// The file is a plain tar archive without compression, so that it can't be
// larger inside than outside:
//
//	bundle.json          what is in it: the heads of the streams, sizes, digests
//	bundle.sha256        the digest of bundle.json, as sha256sum writes it
//	facts.jsonl          the facts in the order of the log, a line each
//	inbox.jsonl          accepted commands that no fact answers yet, a line each
//	content/HEX          content by its SHA-256, in the order of the digests
package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Media is the media type of a bundle, and Extension what its name ends in.
const (
	Media     = "application/vnd.belay.session+tar"
	Extension = ".belay"
)

// format and Version are what a manifest begins with.
const (
	format  = "belay-session"
	Version = 2
)

// The members of the archive.
const (
	manifestName = "bundle.json"
	sumName      = "bundle.sha256"
	factsName    = "facts.jsonl"
	inboxName    = "inbox.jsonl"
	contentDir   = "content/"
)

// Limits of what is read. A fact has at most store.MaxEvent bytes, of which
// each may take six in a line.
const (
	maxManifest = 64 << 20
	maxStreams  = 100_000
	maxLine     = 6*store.MaxEvent + 4<<10
	maxCommand  = 4 << 20
)

// Manifest lists the content of a bundle.
type Manifest struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	Runtime belay.RuntimeID `json:"runtime"` // the store it comes from
	Session belay.SessionID `json:"session"`
	Streams []Head          `json:"streams"` // in the order in which they began
	Facts   Lines           `json:"facts"`
	Inbox   Lines           `json:"inbox"`
	Content []Content       `json:"content"`           // in the order of the digests
	Missing []Content       `json:"missing,omitempty"` // named by a fact, and kept no more
	Expired []Content       `json:"expired,omitempty"` // outputs that expired by facts; a bundle without any has version 1
}

// Head is where a stream ends: the last fact's sequence and time, and the hash
// of the chain after it.
type Head struct {
	Stream belay.StreamID `json:"stream"`
	Seq    int64          `json:"seq"`
	Hash   string         `json:"hash"`
	Time   time.Time      `json:"time"`
}

// Lines describes a member that has a JSON object in each line.
type Lines struct {
	Count  int64        `json:"count"`
	Size   int64        `json:"size"` // bytes
	Digest belay.Digest `json:"digest"`
}

// Content is a piece of content.
type Content struct {
	Digest belay.Digest `json:"digest"`
	Size   int64        `json:"size"`
}

func (c Content) member() string { return contentDir + strings.TrimPrefix(string(c.Digest), "sha256:") }

// heads is the manifest's streams as a store names them.
func (m *Manifest) heads() ([]store.Head, error) {
	heads := make([]store.Head, len(m.Streams))
	for i, h := range m.Streams {
		raw, err := hex.DecodeString(h.Hash)
		if err != nil || len(raw) != 32 || h.Seq < 1 || hex.EncodeToString(raw) != h.Hash {
			return nil, bad(manifestName, "the head of %s can't be read", h.Stream)
		}
		heads[i] = store.Head{Stream: h.Stream, Session: m.Session, Seq: h.Seq, Time: h.Time}
		copy(heads[i].Hash[:], raw)
	}
	return heads, nil
}

// text is bytes that mostly are text: as such when they are, else in base64.
type text struct {
	Text  *string `json:"text,omitempty"`
	Bytes []byte  `json:"bytes,omitempty"`
}

func textOf(b []byte) text {
	if utf8.Valid(b) {
		s := string(b)
		return text{Text: &s}
	}
	return text{Bytes: b}
}

func (t text) bytes() []byte {
	if t.Text != nil {
		return []byte(*t.Text)
	}
	return t.Bytes
}

// factLine is a fact as its store keeps it. Data is the payload's JSON as text,
// byte for byte; ids and refs are in the store's own form.
type factLine struct {
	Stream   belay.StreamID `json:"stream"`
	Seq      int64          `json:"seq"`
	Time     int64          `json:"time"` // microseconds since 1970
	Type     string         `json:"type"`
	Version  int64          `json:"version,omitempty"`
	Requires int64          `json:"requires,omitempty"`
	IDs      []byte         `json:"ids"`
	Refs     []byte         `json:"refs,omitempty"`
	Data     text           `json:"data"`
}

func lineOf(f *store.Stored) factLine {
	r := &f.Row
	return factLine{f.Stream, r.Seq, r.Time, r.Type, r.Version, r.Requires, r.IDs, r.Refs, textOf(r.Data)}
}

func (l *factLine) stored() store.Stored {
	return store.Stored{Stream: l.Stream, Row: store.Row{Seq: l.Seq, Time: l.Time, Type: l.Type, Version: l.Version, Requires: l.Requires,
		IDs: l.IDs, Refs: l.Refs, Data: l.Data.bytes()}}
}

// inboxLine is a waiting command.
type inboxLine struct {
	ID        belay.CommandID `json:"id"`
	Principal string          `json:"principal"`
	Time      int64           `json:"time"` // microseconds since 1970
	Stream    belay.StreamID  `json:"stream"`
	Name      string          `json:"name"`
	Body      string          `json:"body"` // its JSON
}

func inboxOf(o *belay.Order) (inboxLine, error) {
	name, body, err := belay.EncodeCommand(o.Command)
	return inboxLine{o.ID, o.Principal, store.Micros(o.Time), o.Stream, name, string(body)}, err
}

func (l *inboxLine) order(session belay.SessionID) (belay.Order, error) {
	c, err := belay.DecodeCommand(l.Name, []byte(l.Body))
	return belay.Order{ID: l.ID, Principal: l.Principal, Time: store.FromMicros(l.Time), Session: session, Stream: l.Stream, Command: c}, err
}

// sumOf is the archive's checksum of the manifest.
func sumOf(manifest []byte) []byte {
	sum := sha256.Sum256(manifest)
	return []byte(hex.EncodeToString(sum[:]) + "  " + manifestName + "\n")
}

// encode is v as a line, without the escapes that only HTML needs.
func encode(dst *bytes.Buffer, v any) error {
	enc := json.NewEncoder(dst)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// header is a member's: the same for the same name and size, on every machine.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
}

// ending is how many bytes end an archive.
const ending = 1024

// blocks is what a member of a size takes in the archive.
func blocks(size int64) int64 { return 512 + (size+511)/512*512 }

// bad is the error of a file that isn't a bundle as Write makes it.
func bad(where, what string, args ...any) *belay.Error {
	return belay.Errorf(belay.CodeBadBundle, what, args...).At(where).
		WithHint("nothing of it was kept; export the session again, or get the file again")
}
