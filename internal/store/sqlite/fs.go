package sqlite

import "github.com/belay-run/belay/internal/disk"

// Files beside the database are written through the file seam. Tests give one
// whose N-th operation fails.
type (
	FS   = disk.FS
	File = disk.File
	Disk = disk.System
)
