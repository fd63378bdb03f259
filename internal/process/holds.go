//go:build unix

package process

import (
	"context"
	"os/exec"
	"time"
)

// Box is a boundary that a program runs in.
type Box interface {
	// Prepare changes a command that isn't started yet so that it starts a
	// helper, which sets up the boundary and waits. It adds to what is set: the
	// process group or session, standard streams and environment must reach
	// the program. An error means that nothing may be started.
	Prepare(cmd *exec.Cmd) (Hold, error)
}

// Hold is the helper of one program, from its start to the program's.
type Hold interface {
	// Await waits until the helper has reported what it applied. An error means
	// that this isn't what was intended, or that ctx or the helper ended.
	Await(ctx context.Context) error
	// Release lets the helper execute the program.
	Release() error
	// Close gives back what the hold has. Without Release the helper ends and
	// the program never ran. It is called once, also when nothing was started.
	Close() error
}

// LeasedHold is a Hold whose helper ends the program, and all it started, unless its
// lease is renewed in time. Extend says how long the lease is from now; the last
// call counts. It may be called from Release to Close and doesn't wait.
type LeasedHold interface{ Extend(d time.Duration) error }

// EvidenceHold is a Hold that saw how its program ended. It is asked once all of it
// has ended, before Close.
type EvidenceHold interface{ Evidence() Evidence }

// Evidence is what a boundary saw of a program and of all it started.
type Evidence struct {
	Limit     string        // that they met, by its name in policies; empty: none that is counted
	Layer     string        // of the boundary, that counted it
	Reason    string        // how that is known
	Refused   []string      // hosts, with ports, that were asked for and aren't in the boundary
	Peak      int64         // bytes of memory of the largest of them, without the helper; 0 is unknown
	Memory    int64         // bytes that all had together at most, with what the system kept of files for them; 0 is unknown
	Processes int           // processes and threads at a time, at most; 0 is unknown
	Counted   bool          // processes that were refused are in Limit: it isn't for what they say
	Private   []string      // folders of which they had empty ones, or none
	Covered   []string      // files and folders that they couldn't open: they usually hold a secret
	Throttled time.Duration // that they waited because their share of the processors was used up
}

// held is the hold, as long as there is one.
func (p *Process) held() Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hold
}

// Await waits until the boundary stands; without a Box that is at once. After
// an error the process must not be released: Wait ends it.
func (p *Process) Await(ctx context.Context) error {
	if hold := p.held(); hold != nil {
		return hold.Await(ctx)
	}
	return nil
}

// Release lets a held program begin. Whatever must be recorded before it runs
// is recorded by then. Without a Box it does nothing.
func (p *Process) Release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold == nil || p.released {
		return nil
	}
	p.released = true
	return p.hold.Release()
}

// unhold closes the hold, once.
func (p *Process) unhold() {
	p.mu.Lock()
	hold := p.hold
	p.hold = nil
	p.mu.Unlock()
	if hold != nil {
		hold.Close() //nolint:errcheck // it ends either way
	}
}

// evidence is what the boundary saw, before the hold is closed.
func (p *Process) evidence() Evidence {
	if w, ok := p.held().(EvidenceHold); ok {
		return w.Evidence()
	}
	return Evidence{}
}
