package sessions

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/view"
)

func TestTopSaysHowMuchOfALimitIsUsed(t *testing.T) {
	all := view.Programs{Ended: 2, CPU: belay.Duration(3 * time.Second), Written: 1e6, Time: belay.Duration(4 * time.Second),
		Limit: belay.ProgramUse{CPU: belay.Duration(10 * time.Second), Written: 5e6, Time: belay.Duration(time.Minute)}}
	agent := view.Programs{Ended: 1, CPU: belay.Duration(time.Second), Limit: belay.ProgramUse{CPU: belay.Duration(2 * time.Second)}}
	rows := []topRow{{Session: "sess_1", Took: all, Agents: []agentUse{{"thr_1", agent}, {"thr_2", view.Programs{Ended: 1}}}}, {Session: "sess_2"}}
	var out bytes.Buffer
	if err := paint(&out, rows, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nsess_1: 3s of 10s of processors, 1.0 MB of 5.0 MB written, 4s of 1m0s of time\n",
		"\nsess_1, thr_1: 1s of 2s of processors\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q isn't in\n%s", want, out.String())
		}
	}
	if got := out.String(); !strings.Contains(got, "unknown tokens") || strings.Contains(got, " 0 tokens") {
		t.Errorf("a usage that nobody reported isn't unknown:\n%s", got)
	}
	if got := out.String(); strings.Contains(got, "thr_2") || strings.Contains(got, "sess_2:") {
		t.Errorf("what has no limit is told of:\n%s", got)
	}
}
