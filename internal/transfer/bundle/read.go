package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
)

// reader reads a bundle for the first time. Every byte of the file is held
// against the one that Write would have put there.
type reader struct {
	ctx     context.Context
	b       *Bundle
	secrets *secret.Scrubber
	size    int64 // of the file
	at      int64 // what was read so far
}

// member wants a member of a name and size, and returns its content.
func (r *reader) member(name string, size int64) (*io.SectionReader, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if size < 0 || size > r.size || r.at+blocks(size) > r.size {
		return nil, bad(name, "the file ends before it does")
	}
	var want bytes.Buffer
	if err := tar.NewWriter(&want).WriteHeader(header(name, size)); err != nil {
		return nil, bad(name, "no archive can hold it").Wrap(err)
	}
	got := make([]byte, 512)
	if _, err := r.b.file.ReadAt(got, r.at); err != nil {
		return nil, bad(name, "it can't be read").Wrap(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		return nil, bad(name, "something else is in its place")
	}
	content := io.NewSectionReader(r.b.file, r.at+512, size)
	padding := make([]byte, blocks(size)-512-size)
	if _, err := r.b.file.ReadAt(padding, r.at+512+size); err != nil && len(padding) > 0 {
		return nil, bad(name, "it can't be read").Wrap(err)
	}
	if bytes.Trim(padding, "\x00") != nil {
		return nil, bad(name, "something follows it")
	}
	r.at += blocks(size)
	return content, nil
}

// first is the size that the file gives its first member.
func (r *reader) first() (int64, error) {
	h, err := tar.NewReader(io.NewSectionReader(r.b.file, 0, min(r.size, 4<<10))).Next()
	switch {
	case err != nil:
		return 0, bad(manifestName, "the file doesn't begin with it").Wrap(err)
	case h.Name != manifestName:
		return 0, bad(manifestName, "the file doesn't begin with it")
	case h.Size > maxManifest:
		return 0, bad(manifestName, "it has %d bytes", h.Size)
	}
	return h.Size, nil
}

func (r *reader) manifest() error {
	size, err := r.first()
	if err != nil {
		return err
	}
	in, err := r.member(manifestName, size)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return bad(manifestName, "it can't be read").Wrap(err)
	}
	if err := r.sum(raw); err != nil {
		return err
	}
	m := &r.b.Manifest
	if err := strict(raw, m, manifestName, "it"); err != nil {
		return err
	}
	switch {
	case m.Format != format:
		return bad(manifestName, "it isn't a session of belay")
	case m.Version > Version:
		return belay.Errorf(belay.CodeRequires, "the bundle has version %d, this program knows up to %d", m.Version, Version).At(manifestName).
			WithHint("update belay; nothing was kept")
	case m.Version < 1:
		return bad(manifestName, "its version is %d", m.Version)
	case m.Session == belay.SystemSession:
		return bad(manifestName, "the session of the runtime itself can't be brought into another store")
	case len(m.Streams) > maxStreams:
		return bad(manifestName, "it has %d streams", len(m.Streams))
	}
	if err := belay.CheckID("session", string(m.Session)); err != nil {
		return bad(manifestName, "the session's id can't be one").Wrap(err)
	}
	if err := r.clean(manifestName, raw); err != nil {
		return err
	}
	if err := r.canonical(raw); err != nil {
		return err
	}
	r.b.heads, err = m.heads()
	return err
}

// sum compares the manifest with its digest.
func (r *reader) sum(manifest []byte) error {
	want := sumOf(manifest)
	in, err := r.member(sumName, int64(len(want)))
	if err != nil {
		return err
	}
	got, err := io.ReadAll(in)
	if err != nil || !bytes.Equal(got, want) {
		return bad(manifestName, "it isn't what its digest names")
	}
	return nil
}

// canonical holds a manifest against the one way to write it.
func (r *reader) canonical(raw []byte) error {
	var again bytes.Buffer
	m := r.b.Manifest
	if m.Streams == nil {
		m.Streams = []Head{}
	}
	if m.Content == nil {
		m.Content = []Content{}
	}
	if err := encode(&again, m); err != nil || !bytes.Equal(again.Bytes(), raw) {
		return bad(manifestName, "it isn't written the way belay writes it")
	}
	return nil
}

// strict reads an object and nothing besides.
func strict(raw []byte, v any, where, what string) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, end := dec.Token(); end != io.EOF {
			err = errors.New("something follows the object")
		}
	}
	if err != nil {
		return bad(where, "%s can't be read", what).Wrap(err)
	}
	return nil
}

// clean refuses what holds a registered secret: it could not be taken out
// without breaking the chain.
func (r *reader) clean(where string, raw []byte) error {
	if bytes.Equal(r.secrets.Bytes(raw), raw) {
		return nil
	}
	return holdsSecret(where)
}

func holdsSecret(where string) error {
	return belay.Errorf(belay.CodeBadBundle, "it holds a value that is a secret here").At(where).
		WithHint("nothing of it was kept; a session's facts can't be changed, so take the secret out of the environment or leave the session where it is")
}

func (r *reader) facts() error {
	m := &r.b.Manifest
	if _, err := r.member(factsName, m.Facts.Size); err != nil {
		return err
	}
	r.b.facts = r.at - blocks(m.Facts.Size) + 512
	chains := store.NewChains(m.Session)
	for f, err := range r.b.Facts(r.ctx) {
		if err != nil {
			return err
		}
		if err := r.fact(chains, &f); err != nil {
			return err
		}
	}
	if err := chains.End(r.b.heads); err != nil {
		return bad(factsName, "they don't end where the manifest says").Wrap(err)
	}
	order := chains.Heads()
	for i, h := range m.Streams { // the order and the times are the manifest's only other word on them
		if order[i].Stream != h.Stream || !order[i].Time.Equal(h.Time) {
			return bad(manifestName, "the streams are not in the order in which they began")
		}
	}
	return nil
}

// fact looks at one fact: it must follow, be readable, and be of this session.
func (r *reader) fact(chains *store.Chains, f *store.Stored) error {
	m, where := &r.b.Manifest, store.RowName(f.Stream, f.Row.Seq)
	if err := kindOf(f.Stream); err != nil {
		return err
	}
	if _, err := chains.Add(f); err != nil {
		return bad(where, "it doesn't follow").Wrap(err)
	}
	if n := len(f.Row.Data) + len(f.Row.IDs) + len(f.Row.Refs); n > store.MaxEvent {
		return bad(where, "it has %d bytes, the limit is %d", n, store.MaxEvent)
	}
	e, err := f.Row.Unpack(m.Runtime, m.Session, f.Stream)
	if err != nil {
		return bad(where, "it can't be read").Wrap(err)
	}
	if e.IDs.Session != m.Session || f.Stream.Kind() == belay.KindSession && f.Stream != m.Session.Stream() {
		return bad(where, "it is a fact of another session")
	}
	if err := r.b.names.fact(where, &e, f.Row.Data); err != nil {
		return bad(where, "it can't be read").Wrap(err)
	}
	for _, raw := range [][]byte{[]byte(f.Row.Type), f.Row.IDs, f.Row.Refs, f.Row.Data} {
		if err := r.clean(where, raw); err != nil {
			return err
		}
	}
	return nil
}

// kindOf refuses streams that no session has.
func kindOf(s belay.StreamID) error {
	switch s.Kind() {
	case belay.KindSession, belay.KindThread, belay.KindTask:
		if err := belay.CheckID("stream", s.ID()); err != nil {
			return bad(factsName, "a stream's id can't be one").Wrap(err)
		}
		return nil
	}
	return bad(factsName, "no session has a stream like %q", string(s))
}

func (r *reader) inbox() error {
	m := &r.b.Manifest
	in, err := r.member(inboxName, m.Inbox.Size)
	if err != nil {
		return err
	}
	seen := map[belay.CommandID]bool{}
	for raw, err := range eachLine(r.ctx, in, inboxName, m.Inbox, maxCommand) {
		var l inboxLine
		if err == nil {
			err = strict(raw, &l, inboxName, "a waiting command")
		}
		if err == nil {
			err = kindOf(l.Stream)
		}
		if err != nil {
			return err
		}
		o, err := l.order(m.Session)
		switch {
		case err != nil:
			return bad(inboxName, "a waiting command can't be read").Wrap(err)
		case belay.CheckID("command", string(l.ID)) != nil || seen[l.ID]:
			return bad(inboxName, "the id of a waiting command can't be one")
		case l.Stream.Kind() == belay.KindSession && l.Stream != m.Session.Stream():
			return bad(inboxName, "a waiting command is for another session")
		}
		seen[l.ID] = true
		r.b.names.need("inbox/"+string(l.ID), store.RefsIn([]byte(l.Body)))
		r.b.orders = append(r.b.orders, o)
		if err := r.clean("inbox/"+string(l.ID), raw); err != nil {
			return err
		}
	}
	return nil
}

// contents reads every piece of content and compares what is there with what
// the manifest says and with what the facts name.
func (r *reader) contents() error {
	m := &r.b.Manifest
	if gone := r.b.names.allGone(); !slices.Equal(gone, m.Expired) || (len(gone) > 0) != (m.Version > 1) {
		return bad(manifestName, "what expired isn't what the facts say")
	}
	for i, c := range m.Content {
		if i > 0 && c.Digest <= m.Content[i-1].Digest {
			return bad(manifestName, "the content is not in the order of its digests")
		}
		if _, ok := store.RawDigest(c.Digest); !ok || r.b.names.where[c.Digest] == "" || r.b.names.gone(c.Digest) {
			return bad(manifestName, "no fact names the content %s", c.Digest)
		}
		if err := r.piece(c); err != nil {
			return err
		}
	}
	missing := map[belay.Digest]bool{}
	for _, c := range m.Missing {
		if _, here := r.b.content[c.Digest]; here || r.b.names.where[c.Digest] == "" || missing[c.Digest] {
			return bad(manifestName, "%s isn't missing", c.Digest)
		}
		missing[c.Digest] = true
	}
	for d, where := range r.b.names.where {
		if _, here := r.b.content[d]; !here && !missing[d] && !r.b.names.gone(d) {
			return bad(where, "the content that it names isn't there")
		}
	}
	return nil
}

func (r *reader) piece(c Content) error {
	in, err := r.member(c.member(), c.Size)
	if err != nil {
		return err
	}
	sum, clean := sha256.New(), sha256.New()
	scrub := r.secrets.Writer(clean)
	if _, err := io.Copy(io.MultiWriter(sum, scrub), files.WithContext(r.ctx, in)); err != nil {
		return unread(c.member(), err)
	}
	if err := scrub.Close(); err != nil {
		return err
	}
	digest := sum.Sum(nil)
	if store.DigestFrom(digest) != c.Digest {
		return bad(c.member(), "it isn't what its digest names")
	}
	if !bytes.Equal(clean.Sum(nil), digest) {
		return holdsSecret(c.member())
	}
	r.b.content[c.Digest] = place{r.at - blocks(c.Size) + 512, c.Size}
	return nil
}

// end wants nothing after the last member but the archive's own end.
func (r *reader) end() error {
	rest := make([]byte, min(max(r.size-r.at, 0), ending+1))
	if _, err := r.b.file.ReadAt(rest, r.at); err != nil && err != io.EOF {
		return bad("the end", "it can't be read").Wrap(err)
	}
	if len(rest) != ending || bytes.Trim(rest, "\x00") != nil {
		return bad("the end", "the file doesn't end where it should")
	}
	return nil
}
