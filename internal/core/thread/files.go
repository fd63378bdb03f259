package thread

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/belay-run/belay/event"
)

// seen is the files that the thread read or wrote, as it saw them last. It
// forgets the oldest. Saved, it is a list, oldest first.
type seen struct {
	files map[string]sight
	count int64 // sights ever, for their order
}

type sight struct {
	digest string
	at     int64
}

// digest is what the thread last saw of a file; empty when it never did.
func (s *seen) digest(path string) string { return s.files[path].digest }

// saw remembers files.
func (s *seen) saw(files []event.FileSeen) {
	if s.files == nil && len(files) > 0 {
		s.files = map[string]sight{}
	}
	for _, f := range files {
		s.count++
		s.files[f.Path] = sight{f.Digest, s.count}
		if len(s.files) >= maxFiles+maxFiles/4 { // rarely, because it looks at them all
			s.forget(maxFiles / 4)
		}
	}
}

// forget drops the n files that were seen longest ago.
func (s *seen) forget(n int) {
	ages := make([]int64, 0, len(s.files))
	for _, f := range s.files {
		ages = append(ages, f.at)
	}
	slices.Sort(ages)
	maps.DeleteFunc(s.files, func(_ string, f sight) bool { return f.at < ages[n] })
}

// List is the files, the one seen last at the end.
func (s *seen) List() []event.FileSeen {
	out := make([]event.FileSeen, 0, len(s.files))
	for path, f := range s.files {
		out = append(out, event.FileSeen{Path: path, Digest: f.digest})
	}
	slices.SortFunc(out, func(a, b event.FileSeen) int { return int(s.files[a.Path].at - s.files[b.Path].at) })
	return out
}

// IsZero, MarshalJSON and UnmarshalJSON are the list.
func (s seen) IsZero() bool                 { return len(s.files) == 0 }
func (s seen) MarshalJSON() ([]byte, error) { return json.Marshal(s.List()) }
func (s *seen) UnmarshalJSON(b []byte) error {
	var files []event.FileSeen
	if err := json.Unmarshal(b, &files); err != nil {
		return err
	}
	*s = seen{}
	s.saw(files)
	return nil
}
