package store

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
)

// Writer is a session that may change what is in a workspace.
type Writer struct {
	Session belay.SessionID
	Path    string // absolute, clean, without links
	Owner   Owner  // the session's owner
}

// WriterError is the error of ClaimWriter when another session writes there.
type WriterError struct{ Writer Writer }

// Error implements error.
func (e *WriterError) Error() string {
	return "session " + string(e.Writer.Session) + " may change " + e.Writer.Path
}

// Writers records which sessions may change which workspaces. A claim holds as
// long as the ownership it was made under: it ends by itself with a release, a
// takeover or the owner's death.
type Writers interface {
	// ClaimWriter makes a session a writer of a workspace in place of what it
	// claimed before. A *WriterError while another session is one there, unless
	// shared; ErrStale when epoch isn't the session's. Two workspaces of which
	// one contains the other are the same for this. Of several that claim at
	// the same moment exactly one is first.
	ClaimWriter(ctx context.Context, session belay.SessionID, epoch int64, path string, shared bool) error
	// Writers lists the sessions that may change a workspace, or something in or
	// around it; an empty path is every workspace.
	Writers(ctx context.Context, path string) ([]Writer, error)
}

// Overlap reports whether two workspaces are the same or one contains the other.
func Overlap(a, b string) bool { return a == "" || b == "" || inside(a, b) || inside(b, a) }

func inside(parent, dir string) bool {
	if parent == dir {
		return true
	}
	if !strings.HasSuffix(parent, string(filepath.Separator)) {
		parent += string(filepath.Separator)
	}
	return strings.HasPrefix(dir, parent)
}
