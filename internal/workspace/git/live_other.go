//go:build unix && !linux

package git

// pathOnly opens a folder to go on from there.
const pathOnly = 0

// live looks at what programs make while they run. Here nothing does: what they
// left is found when they have ended.
type live struct{}

func (w *Watch) follow() *live { return nil }

func (v *live) end()                    {}
func (v *live) ripe(string, stamp) bool { return true }
func (v *live) repository(string)       {}
func (v *live) part(string, string)     {}
