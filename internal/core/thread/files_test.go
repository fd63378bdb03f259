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
	var s knownFiles
	const n = 10 * maxFiles
	for i := range n {
		s.saw(int64(i+1), []event.FileSeen{{Path: "often", Digest: fmt.Sprint("v", i)}, {Path: fmt.Sprint("file-", i), Digest: "d"}})
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
	var again knownFiles
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	for i := range maxFiles { // both forget the same from here on
		f := []event.FileSeen{{Path: fmt.Sprint("more-", i), Digest: "d"}}
		s.saw(int64(n+i+1), f)
		again.saw(int64(n+i+1), f)
	}
	want, _ := json.Marshal(s)
	if got, _ := json.Marshal(again); string(got) != string(want) {
		t.Error("a saved state goes on differently")
	}
}

// What was seen after a fact is forgotten when the thread goes back to it, and
// nothing else.
func TestFilesSeenAfterTheTargetAreForgotten(t *testing.T) {
	var s knownFiles
	s.saw(3, []event.FileSeen{{Path: "a", Digest: "old"}, {Path: "b", Digest: "old"}})
	s.saw(7, []event.FileSeen{{Path: "b", Digest: "new"}, {Path: "c", Digest: "new"}})
	s.back(6)
	if s.digest("a") != "old" || s.digest("b") != "" || s.digest("c") != "" {
		t.Errorf("known are %v", s.List())
	}
}
