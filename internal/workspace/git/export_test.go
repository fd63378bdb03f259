//go:build unix

package git

// Again is the watch of another process.
func (w *Watch) Again() *Watch { return w.git.NewWatch(w.root, w.aside) }

// Kill is what the end of the process does to it.
func (w *Watch) Kill() { w.pending.Close() }
