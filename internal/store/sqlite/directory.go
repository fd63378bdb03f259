package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/belay-run/belay"
)

// networks are file systems on which locks and shared memory between machines
// don't hold what SQLite needs.
var networks = []string{
	"nfs", "nfs4", "smb", "smb2", "smb3", "cifs", "smbfs", "ncpfs", "afs", "coda", "ceph", "9p", "lustre", "gfs2", "ocfs2",
	"fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.ceph", "fuse.gcsfuse", "fuse.davfs", "davfs", "webdav", "afpfs",
}

// prepareDirectory makes the store's directories and refuses what SQLite can't
// safely live on.
func (db *DB) prepareDirectory(dir string) error {
	if db.o.ReadOnly {
		if _, err := os.Stat(db.path); err != nil {
			return belay.Errorf(belay.CodeNotFound, "there is no store").At(dir).Wrap(err)
		}
		return db.refuseNetwork(dir)
	}
	if err := makeDirectory(dir); err != nil {
		return directoryError(dir, err)
	}
	if err := db.refuseNetwork(dir); err != nil {
		return err
	}
	blobs := filepath.Join(db.tenant, "blobs")
	if err := makeDirectory(blobs); err != nil {
		return directoryError(dir, err)
	}
	tenants := filepath.Dir(db.tenant)
	if info, err := os.Stat(tenants); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(tenants, 0o700); err != nil {
			return directoryError(tenants, err)
		}
	}
	if err := writable(db.tenant); err != nil {
		return directoryError(db.tenant, err)
	}
	sweep(filepath.Join(blobs, unfinished+"*"), db.path+"-"+unfinished+"*")
	return nil
}

// makeDirectory is os.MkdirAll that also makes each new name durable: a synced
// file in a directory that a power failure forgets is no synced file.
func makeDirectory(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := makeDirectory(parent); err != nil {
		return err
	}
	if err := (Disk{}).Mkdir(dir); err != nil {
		return err
	}
	return Disk{}.SyncDir(parent)
}

// unfinished is how the names of files begin that have no digest yet.
const unfinished = "new-"

// sweep removes what crashed processes left unfinished a day ago or earlier.
// It is a courtesy: what it can't remove stays.
func sweep(patterns ...string) {
	var left []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // an error is a bad pattern: a directory's name that reads as one
		left = append(left, found...)
	}
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(path)
		}
	}
}

func (db *DB) refuseNetwork(dir string) error {
	name := db.o.FileSystem(dir)
	if !slices.Contains(networks, name) {
		return nil
	}
	return belay.Errorf(belay.CodeStoreNetwork, "the store would be on a network file system (%s)", name).At(dir).
		WithHint("choose a directory on a local disk with --store or BELAY_STORE")
}

func directoryError(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return belay.Errorf(belay.CodeStoreReadOnly, "the store's directory can't be written").At(dir).
			WithHint("make it writable, or choose another one with --store").Wrap(err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return full(dir, err)
	}
	return belay.Errorf(belay.CodeStoreFailed, "the store's directory can't be made").At(dir).
		WithHint("choose another directory with --store").Wrap(err)
}
