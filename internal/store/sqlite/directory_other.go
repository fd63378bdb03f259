//go:build !linux

package sqlite

// fileSystem finds out nothing here: the kinds of file systems have no common
// numbers outside Linux.
func fileSystem(string) string { return "" }
