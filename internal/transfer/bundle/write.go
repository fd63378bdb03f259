package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Plan is a session at one moment, ready to be written.
type Plan struct {
	Manifest Manifest
	src      store.Store
	upTo     store.Position
	inbox    []byte
}

// Take looks through a session as it is now. Everything that can be wrong with
// it shows here, before a byte is written.
func Take(ctx context.Context, src store.Store, session belay.SessionID) (*Plan, error) {
	p := &Plan{src: src, Manifest: Manifest{Format: format, Version: 1, Runtime: src.Runtime(), Session: session, Streams: []Head{}, Content: []Content{}}}
	orders, err := p.moment(ctx)
	if err != nil {
		return nil, err
	}
	named := newNames()
	if err := p.takeFacts(ctx, &named); err != nil {
		return nil, err
	}
	if err := p.takeInbox(orders, &named); err != nil {
		return nil, err
	}
	if p.Manifest.Facts.Count == 0 && p.Manifest.Inbox.Count == 0 {
		return nil, belay.Errorf(belay.CodeNotFound, "no such session in this store").At(string(session)).WithHint("belay sessions list --all")
	}
	return p, p.takeContent(ctx, &named)
}

// moments is how often a moment is looked for in which nothing is written.
const moments = 50

// moment finds the waiting commands and the end of the log as they are
// together: a command and the facts that answer it are never both missing.
func (p *Plan) moment(ctx context.Context) ([]belay.Order, error) {
	for range moments {
		before, err := p.src.End(ctx)
		if err != nil {
			return nil, err
		}
		orders, err := p.waiting(ctx)
		if err != nil {
			return nil, err
		}
		after, err := p.src.End(ctx)
		if err != nil {
			return nil, err
		}
		if before == after {
			p.upTo = after
			return orders, nil
		}
	}
	return nil, belay.Errorf(belay.CodeStoreBusy, "the store is written to without a pause").At(string(p.Manifest.Session)).
		WithHint("repeat the command when less is running")
}

func (p *Plan) waiting(ctx context.Context) (all []belay.Order, err error) {
	rows, err := p.src.Lanes(ctx, p.Manifest.Session)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b store.LaneRow) int { return cmp.Compare(a.Stream, b.Stream) })
	for _, row := range rows {
		if row.Inbox == 0 {
			continue
		}
		orders, err := p.src.Inbox(ctx, row.Stream)
		if err != nil {
			return nil, err
		}
		all = append(all, orders...)
	}
	return all, nil
}

func (p *Plan) takeFacts(ctx context.Context, named *names) error {
	chains := store.NewChains(p.Manifest.Session)
	facts, err := p.facts(ctx, io.Discard, func(f *store.Stored) error {
		if _, err := chains.Add(f); err != nil {
			return err
		}
		e, err := f.Row.Unpack(p.Manifest.Runtime, p.Manifest.Session, f.Stream)
		if err != nil {
			return err
		}
		return named.fact(store.RowName(f.Stream, f.Row.Seq), &e, f.Row.Data)
	})
	if err != nil {
		return err
	}
	for _, h := range chains.Heads() {
		p.Manifest.Streams = append(p.Manifest.Streams, Head{h.Stream, h.Seq, hex.EncodeToString(h.Hash[:]), h.Time})
	}
	p.Manifest.Facts = facts
	return nil
}

// facts writes the lines of the facts, after a look at each.
func (p *Plan) facts(ctx context.Context, w io.Writer, look func(*store.Stored) error) (Lines, error) {
	lines := newLines(w)
	for f, err := range p.src.Stored(ctx, p.Manifest.Session, p.upTo) {
		if err == nil {
			err = look(&f)
		}
		if err == nil {
			err = lines.add(lineOf(&f))
		}
		if err != nil {
			return Lines{}, err
		}
	}
	return lines.done(), nil
}

func (p *Plan) takeInbox(orders []belay.Order, named *names) error {
	var out bytes.Buffer
	lines := newLines(&out)
	for i := range orders {
		l, err := inboxOf(&orders[i])
		if err != nil {
			return err
		}
		named.need("inbox/"+string(l.ID), store.RefsIn([]byte(l.Body)))
		if err := lines.add(l); err != nil {
			return err
		}
	}
	p.Manifest.Inbox, p.inbox = lines.done(), out.Bytes()
	return nil
}

// takeContent reads all content once: it must be whole, and its size goes
// before it into the archive. What expired stays behind, also where the store has
// it still.
func (p *Plan) takeContent(ctx context.Context, named *names) error {
	if p.Manifest.Expired = named.allGone(); len(p.Manifest.Expired) > 0 {
		p.Manifest.Version = Version
	}
	for _, d := range slices.Sorted(maps.Keys(named.where)) {
		c := Content{Digest: d}
		if named.gone(d) {
			continue
		}
		r, err := p.src.Open(ctx, d)
		if errors.Is(err, store.ErrNotFound) {
			p.Manifest.Missing = append(p.Manifest.Missing, c)
			continue
		}
		if err == nil {
			c.Size, err = io.Copy(io.Discard, r)
			err = errors.Join(err, r.Close())
		}
		if err != nil {
			return err
		}
		p.Manifest.Content = append(p.Manifest.Content, c)
	}
	return nil
}

// Write writes the bundle.
func (p *Plan) Write(ctx context.Context, w io.Writer) error {
	var manifest bytes.Buffer
	if err := encode(&manifest, p.Manifest); err != nil {
		return err
	}
	if manifest.Len() > maxManifest {
		return belay.Errorf(belay.CodeTooLarge, "it names too much content for one bundle").At(string(p.Manifest.Session))
	}
	a := tar.NewWriter(w)
	if err := member(a, manifestName, manifest.Bytes()); err != nil {
		return err
	}
	if err := member(a, sumName, sumOf(manifest.Bytes())); err != nil {
		return err
	}
	if err := p.writeFacts(ctx, a); err != nil {
		return err
	}
	if err := member(a, inboxName, p.inbox); err != nil {
		return err
	}
	for _, c := range p.Manifest.Content {
		if err := p.writeContent(ctx, a, c); err != nil {
			return err
		}
	}
	return a.Close()
}

func member(a *tar.Writer, name string, content []byte) error {
	if err := a.WriteHeader(header(name, int64(len(content)))); err != nil {
		return err
	}
	_, err := a.Write(content)
	return err
}

func (p *Plan) writeFacts(ctx context.Context, a *tar.Writer) error {
	if err := a.WriteHeader(header(factsName, p.Manifest.Facts.Size)); err != nil {
		return tooLarge(factsName, err)
	}
	facts, err := p.facts(ctx, a, func(*store.Stored) error { return nil })
	if err == nil && facts != p.Manifest.Facts {
		err = store.Damaged(string(p.Manifest.Session), "its facts changed while they were read")
	}
	return err
}

func (p *Plan) writeContent(ctx context.Context, a *tar.Writer, c Content) error {
	if err := a.WriteHeader(header(c.member(), c.Size)); err != nil {
		return tooLarge(string(c.Digest), err)
	}
	r, err := p.src.Open(ctx, c.Digest)
	if err != nil {
		return err
	}
	_, err = io.Copy(a, r)
	return errors.Join(err, r.Close())
}

func tooLarge(where string, err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) {
		return belay.Errorf(belay.CodeTooLarge, "it is larger than 8 GiB").At(where)
	}
	return err
}

// lines writes JSON lines and counts them.
type lines struct {
	w    io.Writer
	buf  bytes.Buffer
	hash hash.Hash
	Lines
}

func newLines(w io.Writer) *lines { return &lines{w: w, hash: sha256.New()} }

func (l *lines) add(v any) error {
	l.buf.Reset()
	if err := encode(&l.buf, v); err != nil {
		return err
	}
	l.hash.Write(l.buf.Bytes())
	l.Count++
	l.Size += int64(l.buf.Len())
	_, err := l.w.Write(l.buf.Bytes())
	return err
}

func (l *lines) done() Lines {
	l.Digest = store.DigestFrom(l.hash.Sum(nil))
	return l.Lines
}
