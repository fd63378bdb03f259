package layout

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
)

// Networks are file systems on which locks and shared memory between machines
// don't hold what SQLite needs.
var Networks = []string{
	"nfs", "nfs4", "smb", "smb2", "smb3", "cifs", "smbfs", "ncpfs", "afs", "coda", "ceph", "9p", "lustre", "gfs2", "ocfs2",
	"fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.ceph", "fuse.gcsfuse", "fuse.davfs", "davfs", "webdav", "afpfs",
}

// MakeDirectory is os.MkdirAll that also makes each new name durable: a synced
// file in a directory that a power failure forgets is no synced file.
func MakeDirectory(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := MakeDirectory(parent); err != nil {
		return err
	}
	if err := (files.System{}).Mkdir(dir); err != nil {
		return err
	}
	return (files.System{}).SyncDir(parent)
}

// Sweep removes what crashed processes left unfinished a day ago or earlier.
// It is a courtesy: what it can't remove stays.
func Sweep(patterns ...string) {
	var left []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // an error is a bad pattern: a directory's name that reads as one
		left = append(left, found...)
	}
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(path)
		}
	}
}

// RefuseNetwork refuses a directory on a network file system. name tells the kind of
// the file system that a directory is on; nil: as the system's mount table has it.
func RefuseNetwork(dir string, name func(dir string) string) error {
	if name == nil {
		name = FileSystem
	}
	kind := name(dir)
	if !slices.Contains(Networks, kind) {
		return nil
	}
	return belay.Errorf(belay.CodeStoreNetwork, "the store would be on a network file system (%s)", kind).At(dir).
		WithHint("choose a directory on a local disk with --store or BELAY_STORE")
}
