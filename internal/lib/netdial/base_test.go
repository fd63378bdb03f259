package netdial

import (
	"testing"

	"github.com/belay-run/belay"
)

func TestParseBase(t *testing.T) {
	if u, err := ParseBase("https://h/v1/"); err != nil || u.String() != "https://h/v1" {
		t.Error(u, err)
	}
	for _, bad := range []string{"", "h/v1", "ftp://h", "https://", "https://u:p@h", "https://h?x=1", "https://h#x", "http://[::1"} {
		if _, err := ParseBase(bad); belay.CodeOf(err) != belay.CodeUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
