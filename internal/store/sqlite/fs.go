package sqlite

import "github.com/belay-run/belay/internal/lib/atomicfile"

// Files beside the database are written through the file seam. Tests give one
// whose N-th operation fails.
type (
	FS   = atomicfile.FS
	File = atomicfile.File
	Disk = atomicfile.System
)
