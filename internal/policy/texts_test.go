package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

func TestAnAnswerIsOneObjectWithADecision(t *testing.T) {
	for _, c := range []struct{ raw, fault string }{
		{`{"decision":"deny","reason":"not today","code":"CLOSED"}` + "\n", ""},
		{`{"decision":"allow"}`, ""},
		{`{"decision":"perhaps"}`, "none of allow, ask, deny"},
		{`{}`, "none of allow, ask, deny"},
		{`{"decision":"deny","reason":"` + strings.Repeat("x", 501) + `"}`, "longer than 500"},
		{`{"decision":"deny","verdict":"no"}`, "isn't the JSON of an answer"},
		{`deny`, "isn't the JSON of an answer"},
		{`{"decision":"allow"}{"decision":"deny"}`, "more follows"},
	} {
		a, err := policy.ReadAnswer([]byte(c.raw))
		switch {
		case c.fault == "":
			if err != nil || !strings.Contains(c.raw, `"`+string(a.Decision)+`"`) {
				t.Errorf("%s: %+v, %v", c.raw, a, err)
			}
		case err == nil || !strings.Contains(err.Error(), c.fault):
			t.Errorf("%s: %v, want %q", c.raw, err, c.fault)
		}
	}
}

func TestLimitsReadAsFilesWriteThem(t *testing.T) {
	for _, c := range []struct {
		limits belay.ProcessLimits
		want   string
	}{
		{belay.ProcessLimits{}, "none"},
		{belay.ProcessLimits{Memory: 512 << 20, CPU: belay.Duration(time.Minute), FileSize: 1000, Disk: 2 << 40}, "memory 512MiB, cpu 1m0s, file_size 1000, disk 2TiB"},
		{belay.ProcessLimits{MemoryShare: 75, Processes: 2049, CPUQuota: 50}, "memory 75% (default), processes 2049, cpu_quota 50%"},
	} {
		if got := policy.LimitsText(c.limits); got != c.want {
			t.Errorf("%+v\ngot  %s\nwant %s", c.limits, got, c.want)
		}
	}
}
