package thread

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/event"
)

// knownFiles is the files that the thread read or wrote, as it saw them last, and
// where in the log that was. It forgets those seen longest ago. Saved, it is a
// list, oldest first.
type knownFiles struct{ files map[string]fileVersion }

type fileVersion struct {
	digest string
	at     int64 // the fact that says so
}

// saved is an entry of the list.
type saved struct {
	event.FileSeen
	At int64 `json:"at"`
}

// digest is what the thread last saw of a file; empty when it never did.
func (s *knownFiles) digest(path string) string { return s.files[path].digest }

// saw remembers what a fact says of files.
func (s *knownFiles) saw(at int64, files []event.FileSeen) {
	if s.files == nil && len(files) > 0 {
		s.files = map[string]fileVersion{}
	}
	for _, f := range files {
		s.files[f.Path] = fileVersion{f.Digest, at}
		if len(s.files) >= maxFiles+maxFiles/4 { // rarely, because it looks at them all
			s.forget(maxFiles / 4)
		}
	}
}

// forget drops the n files that were seen longest ago.
func (s *knownFiles) forget(n int) {
	for _, f := range s.list()[:n] {
		delete(s.files, f.Path)
	}
}

// back forgets what was seen after a fact: those files must be read again.
func (s *knownFiles) back(target int64) {
	maps.DeleteFunc(s.files, func(_ string, f fileVersion) bool { return f.at > target })
}

func (s *knownFiles) list() []saved {
	out := make([]saved, 0, len(s.files))
	for path, f := range s.files {
		out = append(out, saved{event.FileSeen{Path: path, Digest: f.digest}, f.at})
	}
	slices.SortFunc(out, func(a, b saved) int {
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Path, b.Path))
	})
	return out
}

// List is the files, the one seen last at the end.
func (s *knownFiles) List() []event.FileSeen {
	var out []event.FileSeen
	for _, f := range s.list() {
		out = append(out, f.FileSeen)
	}
	return out
}

// IsZero, MarshalJSON and UnmarshalJSON are the list.
func (s knownFiles) IsZero() bool                 { return len(s.files) == 0 }
func (s knownFiles) MarshalJSON() ([]byte, error) { return json.Marshal(s.list()) }
func (s *knownFiles) UnmarshalJSON(b []byte) error {
	var files []saved
	if err := json.Unmarshal(b, &files); err != nil {
		return err
	}
	*s = knownFiles{}
	for _, f := range files {
		s.saw(f.At, []event.FileSeen{f.FileSeen})
	}
	return nil
}
