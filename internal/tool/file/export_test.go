//go:build unix

package file

import "github.com/belay-run/belay"

// TempName is a name that a call's temporary file may have.
func TempName(id belay.CallID) string { return tempPrefix(id) + "ABCDEF.tmp" }
