package thread

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/belay-run/belay/event"
)

// The files seen last are known, however many there were, and a file that is
// seen again is new again.
func TestTheFilesSeenLastAreKnown(t *testing.T) {
	var s seen
	const n = 10 * maxFiles
	for i := range n {
		s.saw([]event.FileSeen{{Path: "often", Digest: fmt.Sprint("v", i)}, {Path: fmt.Sprint("file-", i), Digest: "d"}})
	}
	if got := s.digest("often"); got != fmt.Sprint("v", n-1) {
		t.Errorf("a file seen again and again is known as %q", got)
	}
	for i := n - maxFiles/2; i < n; i++ {
		if s.digest(fmt.Sprint("file-", i)) != "d" {
			t.Fatalf("file-%d of %d is forgotten", i, n)
		}
	}
	if s.digest("file-0") != "" || len(s.files) > maxFiles+maxFiles/4 {
		t.Errorf("%d files are kept", len(s.files))
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again seen
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	for i := range maxFiles { // both forget the same from here on
		f := []event.FileSeen{{Path: fmt.Sprint("more-", i), Digest: "d"}}
		s.saw(f)
		again.saw(f)
	}
	want, _ := json.Marshal(s)
	if got, _ := json.Marshal(again); string(got) != string(want) {
		t.Error("a saved state goes on differently")
	}
}
