//go:build !linux

package layout

// FileSystem finds out nothing here: the kinds of file systems have no common
// numbers outside Linux.
func FileSystem(string) string { return "" }
