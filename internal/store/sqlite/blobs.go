package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

const (
	smallBlobMax = 32 << 10  // larger content is a file
	flushBytes   = 512 << 10 // small content that waits is written without an append from here on
	heldBytes    = 8 << 20   // and Put refuses more than this while nothing can be written
	touchAfter   = time.Hour // content put again counts as new, so that it isn't collected
)

// blobStore keeps content by its digest: small content in rows, large in files.
type blobStore struct {
	*access
	small pendingBlobs
}

type smallBlob struct {
	digest [32]byte
	data   []byte
}

// pendingBlobs is small content that Put took and the writer has not committed.
// It goes into the next transaction, before its appends, and stays here until
// one succeeds.
type pendingBlobs struct {
	mu    sync.Mutex
	queue []smallBlob
	index map[[32]byte][]byte
	size  int
	err   error // why the last transaction failed
}

// add takes content; flush says that enough waits to write it now.
func (p *pendingBlobs) add(b smallBlob) (flush bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.index[b.digest]; ok {
		return false, nil
	}
	if p.err != nil && p.size+len(b.data) > heldBytes {
		return false, p.err
	}
	if p.index == nil {
		p.index = map[[32]byte][]byte{}
	}
	p.queue = append(p.queue, b)
	p.index[b.digest] = b.data
	before := p.size
	p.size += len(b.data)
	return before < flushBytes && p.size >= flushBytes, nil
}

func (p *pendingBlobs) get(digest [32]byte) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.index[digest]
	return b, ok
}

// waiting is everything that must be in the next transaction.
func (p *pendingBlobs) waiting() []smallBlob {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue[:len(p.queue):len(p.queue)]
}

// committed drops what a transaction has written: the head of the queue.
func (p *pendingBlobs) committed(written []smallBlob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = nil
	if len(written) == 0 {
		return
	}
	for _, b := range written {
		delete(p.index, b.digest)
		p.size -= len(b.data)
	}
	p.queue = append([]smallBlob(nil), p.queue[len(written):]...)
}

func (p *pendingBlobs) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// flushOp makes the writer run a transaction for what waits.
type flushOp struct{}

func (flushOp) apply(*writer) error { return nil }

// Put keeps content. Small content waits for the next transaction and costs
// none of its own.
func (bs *blobStore) Put(ctx context.Context, content []byte, media string) (belay.Ref, error) {
	if len(content) > smallBlobMax {
		return bs.putLarge(ctx, content, media)
	}
	if err := bs.mayWrite(ctx); err != nil {
		return belay.Ref{}, err
	}
	b := smallBlob{digest: sha256.Sum256(content), data: bytes.Clone(content)}
	flush, err := bs.small.add(b)
	if err != nil {
		return belay.Ref{}, err
	}
	if flush {
		// The answer is ignored: a blob that fails stays and is tried again.
		if err := bs.writer.submit(&request{op: flushOp{}, done: make(chan error, 1)}); err != nil {
			return belay.Ref{}, err
		}
	}
	return belay.Ref{Digest: store.DigestFrom(b.digest[:]), Size: int64(len(content)), Media: media}, nil
}

func (a *access) mayWrite(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.closed.Load() {
		return errClosed()
	}
	if a.writer == nil {
		return belay.Errorf(belay.CodeStoreReadOnly, "the store is open for reading only").At(a.path)
	}
	return a.writer.closedForWriting()
}

func (w *writer) putBlob(b smallBlob) error {
	now := w.now()
	w.grown += len(b.data)
	return w.exec("INSERT INTO blobs (digest, at, data) VALUES (?,?,?) ON CONFLICT (digest) DO UPDATE SET at=excluded.at WHERE at<?",
		b.digest[:], store.Micros(now), notNil(b.data), store.Micros(now.Add(-touchAfter)))
}

// notNil keeps empty content from becoming NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Writer keeps content of unknown size: in memory while it is small, in a file
// from then on.
func (bs *blobStore) Writer(ctx context.Context, media string) (store.BlobWriter, error) {
	if err := bs.mayWrite(ctx); err != nil {
		return nil, err
	}
	return &blobWriter{db: bs, ctx: context.WithoutCancel(ctx), media: media, hash: sha256.New()}, nil
}

type blobWriter struct {
	db    *blobStore
	ctx   context.Context // of Put at the end; it carries values only
	media string
	hash  hash.Hash
	size  int64
	small []byte
	file  files.File // nil while the content is small
	temp  string
	err   error // of an earlier Write: the content isn't whole
	done  bool
}

func (w *blobWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.done {
		return 0, fs.ErrClosed
	}
	if w.file == nil {
		if len(w.small)+len(p) <= smallBlobMax {
			w.small = append(w.small, p...)
			return w.count(p)
		}
		if err := w.spill(); err != nil {
			w.err = layout.FileError(w.temp, err)
			return 0, w.err
		}
	}
	if n, err := w.file.Write(p); err != nil {
		w.err = layout.FileError(w.temp, err)
		return n, w.err
	}
	return w.count(p)
}

func (w *blobWriter) count(p []byte) (int, error) {
	w.hash.Write(p)
	w.size += int64(len(p))
	return len(p), nil
}

func (w *blobWriter) spill() (err error) {
	dir := w.db.blobs
	w.temp = filepath.Join(dir, layout.Unfinished+rand.Text())
	if w.file, err = w.db.o.FS.Create(w.temp); err != nil {
		return err
	}
	_, err = w.file.Write(w.small)
	w.small = nil
	return err
}

// Commit makes the content durable and names it.
func (w *blobWriter) Commit() (belay.Ref, error) {
	if w.done {
		return belay.Ref{}, fs.ErrClosed
	}
	if w.err != nil {
		return belay.Ref{}, errors.Join(w.err, w.Close())
	}
	if w.file == nil {
		w.done = true
		return w.db.Put(w.ctx, w.small, w.media)
	}
	ref := belay.Ref{Digest: store.DigestFrom(w.hash.Sum(nil)), Size: w.size, Media: w.media}
	err := cmp.Or(w.file.Sync(), w.file.Close())
	w.file = nil
	if err == nil {
		err = w.place(ref)
	}
	w.done = true
	if err != nil {
		_ = w.db.o.FS.Remove(w.temp) // at worst an unnamed file stays
		return belay.Ref{}, layout.FileError(w.temp, err)
	}
	return ref, nil
}

// place gives a synced file its name and makes the name durable. A file that
// is there already is replaced by the same content: its age starts anew.
func (w *blobWriter) place(ref belay.Ref) error {
	path := layout.ContentFile(w.db.blobs, ref.Digest)
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		if err := w.db.o.FS.Mkdir(dir); err != nil {
			return err
		}
		if err := w.db.o.FS.SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	if err := w.db.o.FS.Rename(w.temp, path); err != nil {
		return err
	}
	return w.db.o.FS.SyncDir(dir)
}

// Close drops content that wasn't committed.
func (w *blobWriter) Close() error {
	if w.done {
		return nil
	}
	w.done, w.small = true, nil
	if w.temp == "" {
		return nil
	}
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
	if err := w.db.o.FS.Remove(w.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return layout.FileError(w.temp, err)
	}
	return nil
}

func (bs *blobStore) putLarge(ctx context.Context, content []byte, media string) (ref belay.Ref, err error) {
	w, err := bs.Writer(ctx, media)
	if err != nil {
		return ref, err
	}
	if _, err = w.Write(content); err == nil {
		ref, err = w.Commit()
	}
	return ref, errors.Join(err, w.Close())
}

// Get returns the whole content.
func (bs *blobStore) Get(ctx context.Context, d belay.Digest) ([]byte, error) {
	r, err := bs.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	if f, ok := r.(*blobReader); ok { // else it is small
		if info, err := f.file.Stat(); err == nil {
			b.Grow(int(info.Size()) + bytes.MinRead)
		}
	}
	_, err = b.ReadFrom(r)
	return b.Bytes(), err
}

// Open streams content. Damage of a file is found at its end: the last read
// returns the error instead of io.EOF. The reader of a file is an io.Seeker.
func (bs *blobStore) Open(ctx context.Context, d belay.Digest) (io.ReadCloser, error) {
	raw, ok := store.RawDigest(d)
	if !ok {
		return nil, store.ErrNotFound
	}
	if data, ok := bs.small.get(raw); ok {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	var data []byte
	found, err := bs.one(ctx, "SELECT data FROM blobs WHERE digest=?", []any{raw[:]}, &data)
	if err != nil {
		return nil, err
	}
	if found {
		if sha256.Sum256(data) != raw {
			return nil, store.Damaged(string(d), "the content isn't what its digest names")
		}
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	f, err := os.Open(layout.ContentFile(bs.blobs, d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, store.ErrNotFound
	}
	if err != nil {
		return nil, layout.FileError(layout.ContentFile(bs.blobs, d), err)
	}
	return &blobReader{file: f, hash: sha256.New(), want: hex.EncodeToString(raw[:])}, nil
}

// blobReader compares what passes with its digest.
type blobReader struct {
	file *os.File
	hash hash.Hash
	want string
	part bool // it is read from elsewhere than its beginning on
}

func (r *blobReader) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	r.hash.Write(p[:n])
	switch {
	case err == io.EOF && !r.part && hex.EncodeToString(r.hash.Sum(nil)) != r.want:
		return n, store.Damaged(r.file.Name(), "the content isn't what its digest names")
	case err != nil && err != io.EOF:
		return n, layout.FileError(r.file.Name(), err)
	}
	return n, err
}

// Seek moves to a place. Only what is read from the beginning on is compared.
func (r *blobReader) Seek(offset int64, whence int) (int64, error) {
	at, err := r.file.Seek(offset, whence)
	if err != nil {
		return at, layout.FileError(r.file.Name(), err)
	}
	r.hash.Reset()
	r.part = at != 0
	return at, nil
}

func (r *blobReader) Close() error { return r.file.Close() }
