package retention_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/retention"
)

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func session(name string, age time.Duration, bytes int64, rests bool) retention.Session {
	return retention.Session{ID: belay.SessionID(name), Changed: now.Add(-age), Bytes: bytes, Rests: rests}
}

func TestWhatAPolicyLetsGo(t *testing.T) {
	all := []retention.Session{
		session("new", day, 100, true), session("old", 40*day, 100, true), session("runs", 50*day, 100, false),
		session("oldest", 60*day, 100, true), session("middle", 20*day, 100, true),
	}
	for _, c := range []struct {
		p    retention.Policy
		want string
	}{
		{retention.Policy{}, ""},
		{retention.Policy{Age: belay.Duration(30 * day)}, "oldest old"},
		{retention.Policy{Age: belay.Duration(90 * day)}, ""},
		{retention.Policy{Count: 5}, ""},
		{retention.Policy{Count: 3}, "oldest old"},
		{retention.Policy{Count: 1}, "oldest old middle new"}, // the one that runs is the one that stays
		{retention.Policy{Bytes: 500}, ""},
		{retention.Policy{Bytes: 400}, "oldest old"}, // down to 320 bytes
		{retention.Policy{Age: belay.Duration(50 * day), Count: 3}, "oldest old"},
	} {
		var got []string
		for _, x := range c.p.Choose(now, all) {
			if got = append(got, string(x.ID)); x.Why == "" {
				t.Errorf("%s: %s goes for no reason", c.p, x.ID)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", c.p, got, c.want)
		}
	}
}

// Guarantee: S34.
func TestWhatIsGoingOnIsNeverLetGo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all []retention.Session
		for i := range rapid.IntRange(0, 20).Draw(rt, "sessions") {
			all = append(all, session(fmt.Sprint("s", i), time.Duration(rapid.IntRange(-5, 400).Draw(rt, "age"))*day,
				int64(rapid.IntRange(0, 1000).Draw(rt, "bytes")), rapid.Bool().Draw(rt, "rests")))
		}
		p := retention.Policy{Age: belay.Duration(rapid.IntRange(0, 300).Draw(rt, "limit")) * belay.Duration(day),
			Count: rapid.IntRange(0, 10).Draw(rt, "count"), Bytes: int64(rapid.IntRange(0, 5000).Draw(rt, "most"))}
		gone := map[belay.SessionID]bool{}
		for _, c := range p.Choose(now, all) {
			if !c.Rests || gone[c.ID] {
				rt.Fatalf("%s goes", c.ID)
			}
			gone[c.ID] = true
		}
		left, resting := 0, 0
		for _, s := range all {
			if !gone[s.ID] {
				left++
				if s.Rests {
					resting++
				}
			}
		}
		if p.None() && len(gone) > 0 || p.Count > 0 && left > p.Count && resting > 0 {
			rt.Fatalf("%s: %d go, %d are left, %d of them rest", p, len(gone), left, resting)
		}
	})
}

func TestAgesAndSizesAreRead(t *testing.T) {
	for s, want := range map[string]time.Duration{"30d": 30 * day, "2w": 14 * day, "12h": 12 * time.Hour, "90m": 90 * time.Minute,
		"": 0, "d": 0, "-3d": 0, "0d": 0, "3x": 0, "1.5d": 0, "999999d": 0} {
		got, err := retention.ParseAge(s)
		if got != want || (err == nil) != (want > 0) || err != nil && belay.CodeOf(err) != belay.CodeUsage {
			t.Errorf("%q: got %v, %v", s, got, err)
		}
	}
	for s, want := range map[string]int64{"10GB": 1e10, "1.5 kb": 1500, "7": 7, "3B": 3, "": 0, "-1MB": 0, "GB": 0, "NaN": 0, "1e300TB": 0, "0": 0} {
		got, err := retention.ParseSize(s)
		if got != want || (err == nil) != (want > 0) || err != nil && belay.CodeOf(err) != belay.CodeUsage {
			t.Errorf("%q: got %v, %v", s, got, err)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 KB", 1500: "1500 B", 25e9: "25 GB", 1e9: "1 GB", 1.2e9: "1200 MB"} {
		if got := retention.Size(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestWhichOutputsAPolicyLetsGo(t *testing.T) {
	all := make([]retention.Output, 4)
	for i, age := range []time.Duration{day, 40 * day, 60 * day, 20 * day} {
		all[i] = retention.Output{Digest: belay.Digest(fmt.Sprint(i)), Recorded: now.Add(-age), Bytes: 100, Named: []retention.Naming{{}}}
	}
	for _, c := range []struct {
		p    retention.Outputs
		want string
	}{
		{retention.Outputs{}, "    "},
		{retention.Outputs{Age: belay.Duration(30 * day)}, " aa "},
		{retention.Outputs{Age: belay.Duration(40 * day)}, "  a "},
		{retention.Outputs{Bytes: 400}, "    "},
		{retention.Outputs{Bytes: 399}, " bb "}, // down to 240 bytes
		{retention.Outputs{Bytes: 100}, "bbbb"}, // down to 80
		{retention.Outputs{Age: belay.Duration(50 * day), Bytes: 300}, " ba "},
	} {
		got := []byte("    ")
		last := time.Time{}
		for _, due := range c.p.Due(now, all) {
			at, _ := strconv.Atoi(string(due.Digest))
			switch {
			case strings.HasPrefix(due.Why, "older than "):
				got[at] = 'a'
			case strings.HasPrefix(due.Why, "outputs took more than "):
				got[at] = 'b'
			default:
				t.Errorf("%+v: %q", c.p, due.Why)
			}
			if due.Recorded.Before(last) {
				t.Errorf("%+v: a younger output goes before an older one", c.p)
			}
			last = due.Recorded
		}
		if string(got) != c.want {
			t.Errorf("%+v: got %q, want %q", c.p, got, c.want)
		}
	}
	if got := (retention.Policy{Outputs: retention.Outputs{Age: belay.Duration(30 * day), Bytes: 2e9}}).String(); got != "at most outputs of the last 30 days, 2 GB of outputs" {
		t.Errorf("said %q", got)
	}
}
