package sandbox

import (
	"fmt"
	"slices"
	"sync"

	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// guard fills in which of the protected names that exist are read-only. What a
// program makes besides is found by who looks after the workspace: a name that
// isn't there can't be covered without being shown.
func (b *Box) guard(p *boxinit.Profile) error {
	if b.o.Protected == nil {
		return nil
	}
	for _, w := range p.Writable {
		guarded, err := protectedIn(w, b.o.Protected, leftBy(b.b))
		if err != nil {
			return fmt.Errorf("look for protected names: %w", err)
		}
		p.Guarded = append(p.Guarded, guarded...)
	}
	p.Guarded = topmost(p.Guarded)
	p.Pinned = pins(slices.Concat(p.Guarded, p.Sealed), p.Writable)
	return nil
}

// leaving counts the groups that are being given back.
var leaving sync.WaitGroup

// Cleanup waits for what is being removed. Whoever ends the process calls it.
func Cleanup() { leaving.Wait() }
