package convert

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/policy"
)

var update = flag.Bool("update", false, "rewrite what is expected")

// A file of testdata is cases: "== name", the source, "--", what it becomes: the
// report and the rules.
type tableCase struct{ name, in, want string }

func readCases(t testing.TB, file string) (out []tableCase) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq("\n"+string(raw), "\n== ") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, rest, _ := strings.Cut(part, "\n")
		in, want, _ := strings.Cut(rest+"\n", "\n--\n")
		out = append(out, tableCase{name, in, strings.TrimRight(want, "\n")})
	}
	return out
}

// whole makes a case's source a file: in most only its lines of interest stand.
func whole(f Format, in string) string {
	if f == Claude && !strings.Contains(in, `"permissions"`) {
		return `{"permissions": {` + in + `}}`
	}
	if f == OpenClaw && !strings.Contains(in, `"tools"`) && !strings.Contains(in, "tools:") && !strings.Contains(in, `"agents"`) {
		return `{"tools": {` + in + `}}`
	}
	if f == Cowork && !strings.Contains(in, `"rules"`) {
		return `{"version": "1.0", "rules": [` + in + `]}`
	}
	return in
}

// Guarantee: G46.
func TestEachFormatByItsTable(t *testing.T) {
	least := map[Format]int{Gemini: 25, Claude: 25, OpenClaw: 12, Cowork: 12}
	for _, f := range formats {
		file := "testdata/" + string(f) + ".txt"
		cases := readCases(t, file)
		if len(cases) < least[f] {
			t.Errorf("%s has %d cases", f, len(cases))
		}
		var again strings.Builder
		for _, c := range cases {
			t.Run(string(f)+"/"+c.name, func(t *testing.T) {
				got := told(f, whole(f, c.in))
				fmt.Fprintf(&again, "== %s\n%s\n--\n%s\n", c.name, c.in, got)
				if got != c.want && !*update {
					t.Errorf("it becomes\n%s\nnot\n%s", got, c.want)
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, []byte(again.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// told is a result as the tables have it.
func told(f Format, in string) string {
	r, err := Read(f, []byte(in), Options{Name: "F", Home: "/home/u"})
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, i := range r.Items {
		fmt.Fprintf(&b, "%s: %s", i.Kept, i.Source)
		if i.Why != "" {
			fmt.Fprintf(&b, " (%s)", i.Why)
		}
		b.WriteByte('\n')
	}
	for _, line := range strings.Split(strings.TrimPrefix(rulefile.Write(r.Document.Rules), "version: 1\nrules:\n"), "\n") {
		// Reasons only repeat the source.
		if line != "" && !strings.HasPrefix(line, "    reason: \""+string(f)+": ") && !strings.HasPrefix(line, "    reason: "+string(f)) {
			b.WriteString(line + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// What is written as YAML and read again is the same.
func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	for _, f := range formats {
		for _, c := range readCases(t, "testdata/"+string(f)+".txt") {
			r, err := Read(f, []byte(whole(f, c.in)), Options{Name: "F", Home: "/home/u"})
			if err != nil || len(r.Document.Rules) == 0 {
				continue
			}
			var l rulefile.Layers
			if err := l.Add("F", []byte(rulefile.Write(r.Document.Rules)), policy.TierUser, true); err != nil {
				t.Errorf("%s/%s: %v", f, c.name, err)
				continue
			}
			set, err := l.Set(nil)
			if err != nil {
				t.Errorf("%s/%s: %v", f, c.name, err)
				continue
			}
			again := set.Document().Rules[len(policy.BuiltinRules()):]
			// Reading writes > in the arguments of examples as JSON may.
			if a, b := strings.ReplaceAll(rulefile.Write(again), `\u003e`, ">"), rulefile.Write(r.Document.Rules); a != b {
				t.Errorf("%s/%s: read again it is\n%s\nnot\n%s", f, c.name, a, b)
			}
		}
	}
}
