package boxinit

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Profile is what the runtime asks of a helper. It travels in a sealed file without
// a name, because arguments are visible to every process.
type Profile struct {
	Path string   `json:"path"`
	Argv []string `json:"argv"`
	Dir  string   `json:"dir"`
	Env  []string `json:"env"`

	Try        map[string]bool   `json:"try"` // layers to apply
	Workspace  string            `json:"workspace"`
	Writable   []string          `json:"writable"`   // paths, the workspace too if it is
	Readable   []string          `json:"readable"`   // shown though what is above them is hidden
	Private    []string          `json:"private"`    // folders that are empty and the program's own
	Home       string            `json:"home"`       // below one of them
	Cache      string            `json:"cache"`      // folder that is the home's .cache; empty is none
	Reads      bool              `json:"reads"`      // nothing that lasts is written, and no local socket and no signal reaches others
	Hidden     []string          `json:"hidden"`     // files and folders that are shown empty
	Sealed     []string          `json:"sealed"`     // files and folders that can't be opened
	Attributes string            `json:"attributes"` // of those, for git
	Pinned     []string          `json:"pinned"`     // folders that can't be moved away
	Guarded    []string          `json:"guarded"`    // that can't be changed
	Network    string            `json:"network"`
	Limits     Limits            `json:"limits"`
	Groups     string            // how the limits of all together are made
	Cgroups    []string          `json:"cgroups"` // files by which groups are joined
	Others     int               `json:"others"`  // processes and threads that the system counts with the program's
	Outside    map[string]uint64 `json:"outside"` // numbers of the runtime's namespaces
	Seen       map[string]Place  `json:"seen"`    // private folders as the runtime sees them
	Linger     time.Duration     `json:"linger"`
	Grace      time.Duration     `json:"grace"`
}

// Place is a file's identity.
type Place struct {
	Dev, Ino uint64
}

// PlaceOf returns the place of a path, by device and inode.
func PlaceOf(path string) (Place, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return Place{uint64(st.Dev), st.Ino}, err
}

// Message is what a helper says: first what it applied, at the end how the
// program ended.
type Message struct {
	Layers []Layer `json:"layers,omitempty"`
	End    *Ending `json:"end,omitempty"`
	Broken string  `json:"broken,omitempty"` // the helper can't go on, and why
}

// The bytes that the runtime says to a helper, the second one with a time.
const (
	Release = 'r'
	extend  = 'e'
)

// Extend is what tells a helper how much longer its program may run.
func Extend(d time.Duration) []byte {
	return append([]byte{extend}, strconv.FormatInt(max(0, d.Milliseconds()), 10)...)
}

// extended is the time that a word gives; false is another word.
func extended(b []byte) (time.Duration, bool) {
	if len(b) < 2 || b[0] != extend {
		return 0, false
	}
	ms, err := strconv.ParseInt(string(b[1:]), 10, 64)
	return time.Duration(ms) * time.Millisecond, err == nil
}

// Sealed is a file in memory that holds the profile and can't change any more.
func Sealed(p *Profile) (*os.File, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("belay-profile", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory for the profile: %w", err)
	}
	f := os.NewFile(uintptr(fd), "profile")
	_, err = f.Write(b)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("seal the profile: %w", err)
	}
	return f, nil
}

// unsealed reads a profile, if it can't have been changed.
func unsealed(fd int) (*Profile, error) {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_WRITE == 0 {
		return nil, fmt.Errorf("the profile isn't sealed")
	}
	f := os.NewFile(uintptr(fd), "profile")
	defer f.Close()
	p := &Profile{}
	return p, json.NewDecoder(f).Decode(p)
}
