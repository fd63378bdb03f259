//go:build unix && !linux

package symlinks

// withoutLinks: this system has no question for a whole path.
func withoutLinks(string) bool { return false }
