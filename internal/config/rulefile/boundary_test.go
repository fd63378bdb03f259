package rulefile_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/policy"
)

func TestABoundaryIsReadWhole(t *testing.T) {
	l := &rulefile.Layers{}
	add(t, l, "/u/policy.yaml", everything, policy.TierUser, true)
	set, err := l.Set(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, ok := set.Bound("tests")
	got, _ := json.Marshal(b)
	want := `{"name":"tests","is":{"name":"read-only","write":["/srv/cache","/srv/out"],"read":["/srv/data"],"network":"hosts","hosts":["proxy.test:443",".pkg.test"],` +
		`"limits":{"memory":2147483648,"fileSize":67108864,"output":1048576,"disk":1073741824,"cpu":"10m0s","wall":"1h0m0s","cpuQuota":150,"processes":64,"openFiles":256},"least":"L3"}}`
	if !ok || string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAMistakeInABoundaryHasItsPlace(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"full: {write: [/a]}", "is built in"},
		{"Big: {}", "is no name"},
		{"a: {base: full}", `base "full"`},
		{"a: {write: [b/c]}", "isn't absolute"},
		{"a: {network: lan}", `network "lan"`},
		{"a: {network: hosts}", "0 hosts"},
		{"a: {least: L9}", `level "L9"`},
		{"a: {limits: {memory: much}}", "is no size"},
		{"a: {limits: {memory: 9000000000GiB}}", "is no size"},
		{"a: {limits: {memory: 1GiX}}", `"1GiX" is no size: a number of bytes above 0, or with KiB, MiB, GiB, TiB; or a share of the machine's memory such as 50%; or none`},
		{"a: {limits: {processes: some}}", "is no number above 0, and not none"},
		{"a: {limits: {session_cpu: 3}}", "no length of time"},
		{"a: {limits: {session_written: none}}", "is no size"},
		{"a: {limits: {cpu: 3}}", "no length of time"},
		{"a: {limits: {processes: 0}}", "no number above 0"},
		{"a: {limits: {memory: 0%}}", "no number above 0"},
		{"a: {limits: {memory: 101%}}", "101 percent"},
		{"a: {limits: {wall: none}}", "no length of time"},
		{"a: {limits: {gpu: 1}}", `no limit "gpu"`},
	} {
		l := &rulefile.Layers{}
		err := l.Add("p.yaml", []byte("version: 1\nboundaries:\n  "+c.text+"\n"), policy.TierUser, true)
		e, ok := err.(*belay.Error)
		if !ok || e.Code != belay.CodeBadBoundary || !strings.Contains(e.Message, c.says) || e.Hint == "" {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if !strings.HasPrefix(e.Where, "p.yaml:3:") {
			t.Errorf("%s is at %s", c.text, e.Where)
		}
	}
	l := &rulefile.Layers{}
	if err := l.Add("p.yaml", []byte("version: 1\nboundaries: {a: {wirte: [/a]}}\n"), policy.TierUser, true); belay.CodeOf(err) != belay.CodeBadPolicy {
		t.Errorf("a field that nobody knows: %v", err)
	}
}

// TestABoundaryHasTheLimitsThatItDoesNotLift: what it doesn't speak of is as in
// the boundaries that are built in.
// Guarantee: T70.
func TestABoundaryHasTheLimitsThatItDoesNotLift(t *testing.T) {
	l := &rulefile.Layers{}
	add(t, l, "/u/policy.yaml", `version: 1
boundaries:
  plain: {}
  slow: {limits: {wall: 1h}}
  share: {limits: {memory: 20%, processes: "9000"}}
  bytes: {limits: {memory: 2GiB}}
  free: {limits: {memory: none, processes: none}}
`, policy.TierUser, true)
	set, err := l.Set(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := belay.DefaultProcessLimits
	for name, want := range map[string]belay.ProcessLimits{
		"plain": d, "slow": {Wall: belay.Duration(time.Hour), Processes: d.Processes, MemoryShare: d.MemoryShare},
		"share": {MemoryShare: 20, Processes: 9000}, "bytes": {Memory: 2 << 30, Processes: d.Processes}, "free": {},
	} {
		if b, ok := set.Bound(name); !ok || b.Is.Limits != want {
			t.Errorf("%s has %+v", name, b.Is.Limits)
		}
	}
}

func TestARuleNamesABoundaryThatThereIs(t *testing.T) {
	l := &rulefile.Layers{}
	add(t, l, "/u/policy.yaml", "version: 1\nrules:\n  - {id: a, verdict: ask, boundary: nowhere}\n", policy.TierUser, true)
	_, err := l.Set(nil)
	if e, ok := err.(*belay.Error); !ok || e.Code != belay.CodeBadBoundary || e.Where != "/u/policy.yaml:3:6" || !strings.Contains(e.Hint, "workspace-write") {
		t.Errorf("%v", err)
	}
}

// TestAStrangersFileNarrowsABoundary: what it declares doesn't count, and what
// its rules name counts only where it narrows.
// Guarantee: G51.
func TestAStrangersFileNarrowsABoundary(t *testing.T) {
	const file = `version: 1
boundaries:
  all: {network: full, write: [/]}
rules:
  - {id: a, verdict: ask, boundary: all, when: {tool: exec}}
  - {id: b, priority: 5, verdict: ask, boundary: full, when: {tool: exec}}
`
	l := &rulefile.Layers{}
	add(t, l, "/ws/policy.yaml", file, policy.TierWorkspace, false)
	set, err := l.Set(nil)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, i := range l.Ignored() {
		said = append(said, i.What)
	}
	if got := strings.Join(said, ", "); got != "boundary all, boundary of rule a" {
		t.Errorf("ignored are %s", got)
	}
	if _, ok := set.Bound("all"); ok {
		t.Error("a stranger's boundary counts")
	}
	v := policy.Evaluate(set, &policy.Request{Tool: belay.ToolSpec{Name: "exec", Capabilities: []string{"process"}}, Mode: belay.ModeDefault, Level: "L3", Confine: true})
	if v.Boundary != belay.BoundaryWorkspace {
		t.Errorf("a stranger's rule makes it %s", v.Boundary)
	}
	l = &rulefile.Layers{}
	add(t, l, "/ws/policy.yaml", file, policy.TierWorkspace, true)
	if set, err = l.Set(nil); err != nil {
		t.Fatal(err)
	}
	if _, ok := set.Bound("all"); !ok {
		t.Error("a trusted file's boundary doesn't count")
	}
}

func TestLimitsOfAllProgramsAreRead(t *testing.T) {
	l := &rulefile.Layers{}
	if err := l.Add("p.yaml", []byte("version: 1\nboundaries:\n  a: {limits: {total_cpu: 1m, total_written: 1MiB, total_time: 1h, session_cpu: 2m, session_written: 2MiB, session_time: 2h}}\n"), policy.TierUser, true); err != nil {
		t.Fatal(err)
	}
	set, err := policy.Compile(l.Document(nil))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := set.Bound("a")
	want := "memory 75% (default), processes 2048 (default), total_cpu 1m0s, total_written 1MiB, total_time 1h0m0s, session_cpu 2m0s, session_written 2MiB, session_time 2h0m0s"
	if got := policy.LimitsText(b.Is.Limits); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := policy.LimitsText(belay.ProcessLimits{}); got != "none" {
		t.Errorf("no limits are %s", got)
	}
	if m := policy.Meet(b, policy.Bound{Is: belay.Boundary{Name: belay.BoundaryWorkspace, Limits: belay.ProcessLimits{SessionCPU: 1, SessionTime: belay.Duration(9e15)}}}).Is.Limits; m.SessionCPU != 1 || m.SessionTime != b.Is.Limits.SessionTime || m.SessionWritten != 2<<20 || m.TotalTime != b.Is.Limits.TotalTime {
		t.Errorf("both together: %+v", m)
	}
}
