package sqlite

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// heads are the rows that every append is held against, and what was read or written
// of them last. That is true as long as no other connection commits, which SQLite
// tells at the beginning of a transaction, and nothing was rolled back.
type heads struct {
	*conn
	version int64                            // SQLite's count of other connections' commits
	owned   map[string]int64                 // epochs of those who own something now
	streams map[belay.StreamID]layout.Stream // without a number: there is no such stream
}

// maxHeads bounds the streams that are remembered. One takes some 200 bytes.
const maxHeads = 4096

// keeper is an operation that keeps heads right by what it writes with. After
// any other one nothing is known.
type keeper interface{ keepsHeads() }

func (*appendOp) keepsHeads()      {}
func (enqueueOp) keepsHeads()      {}
func (*claimOp) keepsHeads()       {}
func (*releaseOp) keepsHeads()     {}
func (*renewOp) keepsHeads()       {} // leases aren't known
func (*claimWriterOp) keepsHeads() {}
func (*viewOp) keepsHeads()        {} // neither are views
func (flushOp) keepsHeads()        {} // content isn't known

func (h *heads) forget() {
	clear(h.owned)
	clear(h.streams)
}

func (h *heads) setOwner(key string, epoch int64) {
	if h.owned == nil || len(h.owned) >= maxHeads {
		h.owned = map[string]int64{}
	}
	h.owned[key] = epoch
}

func (h *heads) setStream(s layout.Stream) {
	if h.streams == nil || len(h.streams) >= maxHeads {
		h.streams = map[belay.StreamID]layout.Stream{}
	}
	h.streams[s.Name] = s
}

// refresh forgets what another connection may have changed. It runs inside a
// transaction, so that nothing changes after it.
func (h *heads) refresh() error {
	var version int64
	if _, err := h.row("PRAGMA data_version", nil, &version); err != nil {
		return err
	}
	if version != h.version {
		h.forget()
		h.version = version
	}
	return nil
}

// epoch is the epoch of who owns a key now.
func (h *heads) epoch(key string) (epoch int64, owned bool, err error) {
	if epoch, owned = h.owned[key]; owned {
		return epoch, true, nil
	}
	owned, err = h.row("SELECT epoch FROM owners WHERE key=? AND owner<>''", []any{key}, &epoch)
	if owned && err == nil {
		h.setOwner(key, epoch)
	}
	return epoch, owned, err
}
