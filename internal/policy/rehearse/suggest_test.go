package rehearse

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/policy"
)

// suggest is what is suggested for a log.
func (l *log) suggest(t interface{ Fatal(...any) }, set *policy.Set, least, most int) (*Asks, []*Suggestion) {
	var cases []*Case
	r := NewReader(l.get)
	for _, e := range l.facts {
		c, err := r.Apply(e)
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			cases = append(cases, c)
		}
	}
	var asks Asks
	for _, c := range cases {
		asks.Take(c, set)
	}
	all := asks.Suggest(set, least, most)
	for _, s := range all {
		for _, c := range cases {
			s.Take(c, set)
		}
	}
	return &asks, Sound(all, least, most)
}

func (l *log) exec(lines ...string) {
	for _, line := range lines {
		l.call(policy.Builtin(), "exec", fmt.Sprintf(`{"command":%q}`, line), nil)
	}
}

func TestFrequentQuestionsBecomeRules(t *testing.T) {
	l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	l.exec("npm test", "npm test --silent", "npm test", "npm test && touch a", "npm run build", "git log")
	for _, p := range []string{"src/a.go", "src/b.go", "src/a.go", "docs/c.md"} {
		l.call(policy.Builtin(), "write", fmt.Sprintf(`{"path":%q}`, p), nil)
	}
	asks, got := l.suggest(t, policy.Builtin(), 3, 5)
	if asks.Decisions != 10 || asks.Asked != 9 || len(asks.Unfit) > 0 {
		t.Errorf("got %+v", asks)
	}
	var have []string
	for _, s := range got {
		have = append(have, fmt.Sprintf("%s spares %d of %d (%d allowed, %d asked, %d denied) in %d: %q +%d; %d examples", s.Rule.ID, s.Spared, s.Matched, s.Allowed, s.Asked, s.Denied, s.Sessions, s.Seen, s.More, s.Examples))
	}
	want := []string{
		`allow-npm-test spares 3 of 4 (0 allowed, 1 asked, 0 denied) in 1: ["npm test" "npm test --silent" "npm test; touch a"] +0; 2 examples`,
		`allow-write-src spares 3 of 3 (0 allowed, 0 asked, 0 denied) in 1: ["src/a.go" "src/b.go"] +0; 2 examples`,
	}
	if !slices.Equal(have, want) {
		t.Errorf("got\n%q\nwant\n%q", have, want)
	}
	if _, got = l.suggest(t, policy.Builtin(), 4, 5); len(got) > 0 {
		t.Errorf("%s spares too few", got[0].Rule.ID)
	}
	if _, got = l.suggest(t, policy.Builtin(), 1, 1); len(got) != 1 {
		t.Errorf("%d suggestions", len(got))
	}
}

// Taint, destructive commands, attempts to escape, what nobody can read, secrets
// and files outside stay questions, however often they are asked.
func TestNothingDangerousIsSuggested(t *testing.T) {
	l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	for range 5 {
		l.exec("rm -rf build", "git push --force", "$X", "sudo npm test", "npm test; rm -rf build", "cp .env a")
		l.call(policy.Builtin(), "write", `{"path":"/etc/hosts"}`, nil)
	}
	asks, got := l.suggest(t, policy.Builtin(), 3, 5)
	if len(got) > 0 {
		t.Errorf("%+v is suggested", got[0].Rule)
	}
	if n := asks.Unfit[UnfitOther]; n > 0 || asks.Asked != 35 {
		t.Errorf("got %+v", asks)
	}
	for _, why := range []string{UnfitDestructive, UnfitEscape, UnfitUnparsable, UnfitSecret, UnfitOutside} {
		if asks.Unfit[why] == 0 {
			t.Errorf("nothing is %s: %+v", why, asks.Unfit)
		}
	}
	l = newLog(nil, belay.Settings{Mode: belay.ModeDefault})
	l.add(belay.IDs{}, event.ContextResolved{Taint: []string{"web:x.org"}})
	l.exec("npm test", "npm test", "npm test", "curl x.org", "curl x.org", "curl x.org")
	asks, got = l.suggest(t, policy.Builtin(), 3, 5)
	if len(got) > 0 || !maps.Equal(asks.Unfit, map[string]int{UnfitTaint: 6}) {
		t.Errorf("of a tainted thread: %+v, %v", asks, got)
	}
}

// No suggestion, whatever the rules, allows one of the calls that were recorded
// for which a person must be asked, and each does what it says.
func TestASuggestionIsWhatItSays(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		set := compiled(t, anyRules(t, 0)...)
		l := newLog(nil, belay.Settings{Mode: belay.ModeDefault})
		if rapid.Bool().Draw(t, "tainted") {
			l.add(belay.IDs{}, event.ContextResolved{Taint: []string{"web:x.org"}})
		}
		l.exec(rapid.SliceOfN(rapid.SampledFrom([]string{"npm test", "npm publish", "git push", "git push --force", "touch a", "touch a; rm a", "curl x.org", "curl $X", "cp .env a", "sudo ls", "make"}), 4, 12).Draw(t, "lines")...)
		_, got := l.suggest(t, set, 1, 5)
		for _, s := range got {
			found++
			with, err := Add(set, s.Rule)
			if err != nil {
				t.Fatal(err)
			}
			spared := 0
			r := NewReader(l.get)
			for _, e := range l.facts {
				c, err := r.Apply(e)
				if err != nil {
					t.Fatal(err)
				}
				if c == nil {
					continue
				}
				before, after := policy.Evaluate(set, &c.Request), policy.Evaluate(with, &c.Request)
				if before.Decision == after.Decision {
					continue
				}
				if spared++; before.Decision != policy.Ask || after.Decision != policy.Allow {
					t.Fatalf("%+v makes %s %s", s.Rule, before.Decision, after.Decision)
				}
				for _, k := range c.Request.Commands {
					if k.Class != policy.ReadOnly && k.Class != policy.WriteWorkspace && k.Class != policy.Network {
						t.Fatalf("%+v allows %s", s.Rule, c.Request.Args)
					}
				}
				if len(c.Request.Taint) > 0 || slices.Contains(before.Tags, policy.TagSecret) {
					t.Fatalf("%+v allows %s, tags %v, taint %v", s.Rule, c.Request.Args, before.Tags, c.Request.Taint)
				}
			}
			if spared != s.Spared || s.Spared+s.Allowed+s.Asked+s.Denied != s.Matched {
				t.Fatalf("it spares %d: %+v", spared, s)
			}
		}
	})
	if found == 0 {
		t.Error("nothing was ever suggested")
	}
}
