//go:build unix

package sqlite

import "golang.org/x/sys/unix"

// writable reports whether files can be made in a directory. It asks the system
// and doesn't try: opening and closing the database file here would drop the
// locks of another store of this process on the same file.
func writable(dir string) error { return unix.Access(dir, unix.W_OK) }
