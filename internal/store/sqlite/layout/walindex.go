package layout

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// The shared-memory file begins with two equal headers, in the machine's order of
// bytes. A commit writes them when its frames are on the disk, so they say how far
// the log must reach, also after the process was killed. After a power failure they
// may be older, or nothing.
const (
	indexHeaderBytes = 48
	indexVersion     = 3007000
)

// Index is what the shared-memory file says of the log.
type Index struct {
	Frames int64 // up to the last commit
	Salts  [8]byte
}

// ReadIndex reads a shared-memory file. One that isn't there, or isn't whole, says
// nothing.
func ReadIndex(path string) (x Index, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return x, false
	}
	defer f.Close()
	b := make([]byte, 2*indexHeaderBytes)
	if _, err := io.ReadFull(f, b); err != nil || string(b[:indexHeaderBytes]) != string(b[indexHeaderBytes:]) {
		return x, false
	}
	order := binary.NativeEndian
	sum := walSum(order, [2]uint32{}, b[:40])
	if order.Uint32(b) != indexVersion || sum != [2]uint32{order.Uint32(b[40:]), order.Uint32(b[44:])} {
		return x, false
	}
	x.Frames = int64(order.Uint32(b[16:]))
	copy(x.Salts[:], b[32:40])
	return x, true
}

// against notes that the log lacks frames which were committed.
func (r *Log) against(x Index, name string) {
	if x.Salts == r.Salts && x.Frames > r.Frames {
		r.Problems = append(r.Problems, Problem{fmt.Sprintf("%s: frame %d", name, r.Frames+1), fmt.Sprintf("%d frames were committed and can't be read from here on", x.Frames-r.Frames)})
	}
}
