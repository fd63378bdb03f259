package sqlite

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// known is what the writer has read or written of the rows that every append
// is held against. It is true as long as no other connection commits, which
// SQLite tells at the beginning of a transaction, and nothing was rolled back.
type known struct {
	version int64                            // SQLite's count of other connections' commits
	owners  map[string]int64                 // epochs of those who own something now
	streams map[belay.StreamID]layout.Stream // without a number: there is no such stream
	claims  map[belay.SessionID]writerClaim  // on workspaces; nil: they weren't read
}

// maxKnown bounds the streams that are known. One takes some 200 bytes.
const maxKnown = 4096

// keeper is an operation that keeps known right by what it writes with. After
// any other one nothing is known.
type keeper interface{ keepsKnown() }

func (*appendOp) keepsKnown()      {}
func (enqueueOp) keepsKnown()      {}
func (*claimOp) keepsKnown()       {}
func (*releaseOp) keepsKnown()     {}
func (*renewOp) keepsKnown()       {} // leases aren't known
func (*claimWriterOp) keepsKnown() {}
func (*viewOp) keepsKnown()        {} // neither are views
func (flushOp) keepsKnown()        {} // content isn't known

func (k *known) forget() {
	clear(k.owners)
	clear(k.streams)
	k.claims = nil
}

func (k *known) setOwner(key string, epoch int64) {
	if k.owners == nil || len(k.owners) >= maxKnown {
		k.owners = map[string]int64{}
	}
	k.owners[key] = epoch
}

func (k *known) setStream(s layout.Stream) {
	if k.streams == nil || len(k.streams) >= maxKnown {
		k.streams = map[belay.StreamID]layout.Stream{}
	}
	k.streams[s.Name] = s
}

// refresh forgets what another connection may have changed. It runs inside a
// transaction, so that nothing changes after it.
func (w *writer) refresh() error {
	var version int64
	if _, err := w.row("PRAGMA data_version", nil, &version); err != nil {
		return err
	}
	if version != w.known.version {
		w.known.forget()
		w.known.version = version
	}
	return nil
}

// epoch is the epoch of who owns a key now.
func (w *writer) epoch(key string) (epoch int64, owned bool, err error) {
	if epoch, owned = w.known.owners[key]; owned {
		return epoch, true, nil
	}
	owned, err = w.row("SELECT epoch FROM owners WHERE key=? AND owner<>''", []any{key}, &epoch)
	if owned && err == nil {
		w.known.setOwner(key, epoch)
	}
	return epoch, owned, err
}
