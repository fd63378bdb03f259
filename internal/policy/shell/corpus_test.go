package shell

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// judged is a line of a corpus: a command and the class that a person gives it.
// Ruled says why the classifier's own class is right where it is weaker.
type judged struct {
	Cmd    string `json:"cmd"`
	Class  Class  `json:"class"` // weaker is a miss
	Most   Class  `json:"most"`  // stricter asks too much; Class where it isn't given
	Why    string `json:"why"`
	Ruled  string `json:"ruled"`
	Source string `json:"source"` // package and version, or session, it is taken from
}

// corpus reads testdata/NAME.
func corpus(t testing.TB, name string) []judged {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []judged
	in := bufio.NewScanner(f)
	for in.Scan() {
		var j judged
		if err := json.Unmarshal(in.Bytes(), &j); err != nil {
			t.Fatalf("%s: line %d: %v", name, len(out)+1, err)
		}
		j.Most = cmp.Or(j.Most, j.Class)
		out = append(out, j)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// there is where the commands of the blind corpus would run.
var there = Options{Dir: "/home/dev/project", Workspace: "/home/dev/project", Home: "/home/dev", Dialect: Bash}

// TestTheCorpusIsJudgedAsPeopleDo holds the classifier against commands that
// were judged by hand, of which those of blind.jsonl by somebody who hadn't seen
// it: nothing is weaker, and of what only reads at most 5 % is stricter.
// Guarantee: G21, G56.
func TestTheCorpusIsJudgedAsPeopleDo(t *testing.T) {
	for _, c := range []struct {
		name  string
		where Options
		least int
	}{{"own.jsonl", here, 200}, {"blind.jsonl", there, 200}} {
		list := corpus(t, c.name)
		if len(list) < c.least {
			t.Errorf("%s has %d commands, fewer than %d", c.name, len(list), c.least)
		}
		weaker, stricter, controls, asked := 0, 0, 0, 0
		for _, j := range list {
			r := Classify(j.Cmd, c.where)
			if j.Class == ReadOnly {
				controls++
			}
			if r.Unheld().Rank() < j.Class.Rank() && j.Ruled == "" {
				weaker++
				t.Errorf("%s: %q is %s, weaker than %s (%s)", c.name, j.Cmd, r.Unheld(), j.Class, j.Why)
			}
			if r.Class.Rank() > j.Most.Rank() {
				stricter++
				if j.Class == ReadOnly {
					asked++
				}
				t.Logf("%s: %q is %s, stricter than %s: %s", c.name, j.Cmd, r.Class, j.Most, r.Reason)
			}
		}
		t.Logf("%s: %d commands, %d weaker, %d stricter, of %d that only read %d stricter", c.name, len(list), weaker, stricter, controls, asked)
		if asked*20 > controls {
			t.Errorf("%s: %d of %d commands that only read are judged stricter", c.name, asked, controls)
		}
	}
}

// TestHarmlessCommandsAskNothing judges commands that only read, as agents ran
// them and as packages of Go and npm have them in their scripts and documents: all
// of each that were found, before any was judged. In sh those count that are POSIX,
// and each has the class that it has in bash.
// Guarantee: G73.
func TestHarmlessCommandsAskNothing(t *testing.T) {
	for _, d := range []Dialect{Bash, Sh} {
		o, all, asked := here, 0, 0
		o.Dialect = d
		for _, j := range corpus(t, "harmless.jsonl") {
			if j.Source == "" {
				t.Errorf("%q has no source", j.Cmd)
			}
			r := Classify(j.Cmd, o)
			if _, why := parse(j.Cmd, d); why != "" {
				if d == Bash || r.Class != Unparsable {
					t.Errorf("%q can't be read in %s (%s) and is %s", j.Cmd, d, why, r.Class)
				}
				continue
			}
			if want := Classify(j.Cmd, here).Class; r.Class != want {
				t.Errorf("%q is %s in %s and %s in bash", j.Cmd, r.Class, d, want)
			}
			if all++; r.Class != ReadOnly {
				asked++
				t.Logf("%q (%s) is %s: %s", j.Cmd, j.Source, r.Class, r.Reason)
			}
		}
		t.Logf("%s: %d of %d harmless commands are judged read-only: %.1f %%", d, all-asked, all, 100*float64(all-asked)/float64(all))
		if all < 200 || asked*100 > 3*all {
			t.Errorf("%s: of %d harmless commands %d aren't judged read-only; 200 at least, and 3 %% at most", d, all, asked)
		}
	}
}
