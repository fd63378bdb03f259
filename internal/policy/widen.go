package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/workspace/protected"
)

// Operations that a boundary stops.
const (
	OpRead    = "read"
	OpWrite   = "write"
	OpConnect = "connect"
	OpCall    = "call"   // a system call
	OpLimit   = "limit"  // of memory, processes, time, sizes
	OpObeyed  = "obeyed" // a file that another program obeys, outside of every boundary
)

// Widen is the least boundary that would have let an operation pass. why says
// why there is none that can be asked for: a protected name that a boundary holds
// is changed by a command that names it, an approval of a single call can't open
// secrets, and limits are changed only where they are set.
func Widen(b Bound, op, target, workspace string) (wider Bound, why string) {
	wider = b
	wider.Is.Write, wider.Is.Read = slices.Clone(b.Is.Write), slices.Clone(b.Is.Read)
	switch op {
	case OpConnect:
		wider.Is.Network, wider.Is.Hosts = belay.NetworkFull, nil
		wider.Name = b.Name + ", network"
	case OpCall:
		wider = Bound{Name: belay.BoundaryFull, Is: belay.Boundary{Name: belay.BoundaryFull, Network: belay.NetworkFull}}
	case OpRead, OpWrite:
		clean := path.Clean(target)
		switch folder := path.Dir(clean); {
		case !path.IsAbs(target) || len(target) > maxTarget || strings.ContainsRune(target, 0):
			return b, "which file it was is unknown"
		case obeyed(clean, workspace) || Secret(clean):
			return b, clean + " is protected: no boundary is widened for it"
		case op == OpWrite && below(clean, workspace) && b.Is.Name == belay.BoundaryReadOnly:
			wider.Is.Name, wider.Name = belay.BoundaryWorkspace, b.Name+", write "+workspace
		case op == OpWrite && folder == "/":
			return b, "that would open the root of all files"
		case op == OpWrite:
			wider.Is.Write = outermost(append(wider.Is.Write, folder))
			wider.Name = b.Name + ", write " + folder
		default:
			wider.Is.Read = outermost(append(wider.Is.Read, clean))
			wider.Name = b.Name + ", read " + clean
		}
	case OpObeyed:
		clean := path.Clean(target)
		e, _ := protected.Of(relative(clean, workspace))
		switch {
		case !path.IsAbs(target) || len(target) > maxTarget || strings.ContainsRune(target, 0):
			return b, "nobody can tell which file it was"
		case e.Name == ".belay":
			return b, clean + " is for the person alone: " + e.Why
		}
		wider.Is.Leave = outermost(append(slices.Clone(b.Is.Leave), clean))
		wider.Name = b.Name + ", may leave " + strings.TrimPrefix(relative(clean, workspace), "/")
	case OpLimit:
		return b, "it is a limit of the boundary"
	default:
		return b, "what it was is unknown"
	}
	if wider.Within(b) {
		return b, "the boundary allows that already, so something else is in the way"
	}
	return wider, ""
}

// obeyed reports whether a path is one that something else runs or obeys. The
// folders that a workspace lies in aren't part of what it is in there.
func obeyed(clean, workspace string) bool {
	_, ok := protected.Of(relative(clean, workspace))
	return ok
}

// relative is a path as it is called in a workspace, if it lies there.
func relative(clean, workspace string) string {
	if workspace != "" && below(clean, workspace) {
		return strings.TrimPrefix(clean, workspace)
	}
	return clean
}

// maxTarget is the longest path that a question may show.
const maxTarget = 512
