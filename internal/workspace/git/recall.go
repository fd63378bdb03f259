//go:build unix

package git

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay"
)

// saved is an item as a file holds it while a program runs: what was there when
// it began. Whoever looks next knows it then, if the runtime is killed meanwhile.
type saved struct {
	Risks   []string `json:"risks,omitempty"`
	Content []byte   `json:"content,omitempty"`
	Mode    uint32   `json:"mode"`
	Unread  bool     `json:"unread,omitempty"`
}

// saves is the file of a workspace.
type saves struct {
	Items   map[string]saved `json:"items"`
	History []string         `json:"history,omitempty"` // commits that count
}

// lookEnd is the end of such a file's name; its beginning says which workspace it is of.
const lookEnd = ".look"

func (w *Watch) begin() string {
	return strings.TrimPrefix(string(belay.DigestOf([]byte(w.root))), "sha256:")[:16] + "-"
}

// save writes what is known, in a file that is locked as long as this process
// has it. Without it a program is looked after as long as the runtime lives.
func (w *Watch) save() {
	all := saves{Items: map[string]saved{}, History: w.counted()}
	for path, i := range w.items {
		all.Items[path] = saved{i.risks, i.content, i.stamp.mode, i.unread}
	}
	b, err := json.Marshal(all)
	if err != nil || os.MkdirAll(w.aside, 0o700) != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(w.aside, w.begin()+strings.ToLower(rand.Text()[:12])+lookEnd), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	if _, err := f.Write(b); err != nil || unix.Flock(int(f.Fd()), unix.LOCK_EX) != nil {
		os.Remove(f.Name()) //nolint:errcheck // half of it is as good as none
		f.Close()
		return
	}
	w.pending = f
}

// settle removes the file: what the programs left was looked at.
func (w *Watch) settle() {
	if w.pending != nil {
		os.Remove(w.pending.Name()) //nolint:errcheck // a look more is made
		w.pending.Close()
		w.pending = nil
	}
}

// recall takes over what runtimes knew that were killed while a program ran, and
// reports whether there was one.
func (w *Watch) recall() (found bool) {
	names, _ := filepath.Glob(filepath.Join(w.aside, w.begin()+"*"+lookEnd))
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		var all saves
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && json.NewDecoder(f).Decode(&all) == nil {
			for _, id := range all.History {
				w.history[id] = true
			}
			for path, s := range all.Items {
				w.items[path] = &item{stamp: stamp{mode: s.Mode}, risks: s.Risks, content: s.Content, unread: s.Unread}
			}
			found = true
			os.Remove(name) //nolint:errcheck // a look more is made
		}
		f.Close()
	}
	return found
}
