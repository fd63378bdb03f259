//go:build unix

package exec

import (
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

// TestLinesOfProgressAreNoOutput, wherever the output is cut; what isn't of the form is output.
func TestLinesOfProgressAreNoOutput(t *testing.T) {
	long := "belay:progress 1 2 " + strings.Repeat("x", maxTold)
	said := "one\nbelay:progress 1 4 first\r\n belay:progress 2 4 not at the beginning\nbelay:progress\nbelay:progress x 4\nbelay:progress 1 -4\nbelay:progressive\n" +
		long + "\nbelay:progress 3 0\n\nend belay:progress 9 9\nbelay:progress 4 4 last"
	want := "one\n belay:progress 2 4 not at the beginning\nbelay:progress\nbelay:progress x 4\nbelay:progress 1 -4\nbelay:progressive\n" + long + "\n\nend belay:progress 9 9\n"
	told := []tool.Progress{{Done: 1, Total: 4, Text: "first"}, {Done: 3}, {Done: 4, Total: 4, Text: "last"}}
	for cut := range len(said) {
		var sink tooltest.Sink
		var out strings.Builder
		lines := &toldLines{to: &out, sink: &sink, prefix: "belay:progress"}
		for _, piece := range []string{said[:cut], said[cut:]} {
			if n, err := lines.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		lines.flush()
		if out.String() != want {
			t.Fatalf("cut at %d the output is %.300q", cut, out.String())
		}
		if got := sink.Told(); !slices.Equal(got, told) {
			t.Fatalf("cut at %d: %+v", cut, got)
		}
	}
	var sink tooltest.Sink
	var out strings.Builder
	lines := &toldLines{to: &out, sink: &sink, prefix: "belay:progress"}
	for range 100 { // an endless line isn't held
		lines.Write([]byte("belay:progress 1 " + strings.Repeat("9", 100))) //nolint:errcheck // into memory
	}
	if len(lines.held) > maxTold || out.Len() < 9000 {
		t.Errorf("%d bytes are held, %d went on", len(lines.held), out.Len())
	}
}
