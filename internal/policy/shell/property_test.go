package shell

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// wrapped puts a source into something that runs it as it stands.
var wrappings = []struct{ name, before, after string }{
	{"subshell", "( ", "\n)"}, {"group", "{ ", "\n}"}, {"substitution", "echo $( ", "\n)"}, {"condition", "if ", "\nthen true; fi"},
	{"branch", "if true; then ", "\nfi"}, {"loop", "for v in a; do ", "\ndone"}, {"function", "fn() { ", "\n}; fn"}, {"after another", "true; ", ""},
	{"before another", "", "\ntrue"}, {"and", "true && { ", "\n}"}, {"or", "false || { ", "\n}"}, {"background", "{ ", "\n} &"}, {"pipe", "true | { ", "\n}"}, {"negation", "! { ", "\n}"}, {"here-document", "cat <<EOT\n$( ", "\n)\nEOT\n"},
}

// quoters write a source as one word.
func singleQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func doubleQuotedWord(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(s) + `"`
}

// starters are programs that run a source that they get as a word.
var starters = []string{"sh -c ", "bash -ec ", "env sh -c ", "sudo bash -c ", "nice -n 5 timeout 3 sh -c ", "find . -maxdepth 0 -exec sh -c ", "echo a | xargs sh -c ", "busybox sh -c ", "exec bash -c ", "command bash -c ", "watch ", "ssh -q h "}

// TestHidingACommandNeverWeakensIt wraps, quotes and splits every command of
// both corpora: whatever is done to a command, it is judged as strictly as
// before, or more so.
// Guarantee: G21.
func TestHidingACommandNeverWeakensIt(t *testing.T) {
	for _, c := range []struct {
		name  string
		where Options
	}{{"own.jsonl", here}, {"blind.jsonl", there}} {
		hidden := 0
		for _, j := range corpus(t, c.name) {
			plain := Classify(j.Cmd, c.where)
			if plain.Class == Unparsable && oddText(j.Cmd) == "" {
				continue // what can't be read may be read elsewhere: half a quote, half a here-document
			}
			for how, src := range disguises(j.Cmd) {
				hidden++
				if r := Classify(src, c.where); r.Unheld().Rank() < plain.Unheld().Rank() {
					t.Errorf("%s: %q is %s, and %s\n%s\nis %s (%s)", c.name, j.Cmd, plain.Class, how, src, r.Class, r.Reason)
				}
			}
		}
		t.Logf("%s: %d disguises", c.name, hidden)
	}
}

// disguises are a source in other clothes.
func disguises(src string) map[string]string {
	out := map[string]string{}
	for _, w := range wrappings {
		out[w.name] = w.before + src + w.after
	}
	for _, s := range starters {
		if strings.Contains(src, "<<") && !strings.HasPrefix(s, "sh") {
			continue
		}
		out[s+"single"] = s + singleQuoted(src)
		out[s+"double"] = s + doubleQuotedWord(src)
	}
	out["eval"] = "eval " + singleQuoted(src)
	out["eval in a trap"] = "trap " + singleQuoted("eval "+singleQuoted(src)) + " EXIT"
	if name, rest, ok := strings.Cut(src, " "); ok && plainName(name) {
		out["backslash"] = `\` + src
		out["quotes"] = `"` + name + `" ` + rest
		out["empty quotes"] = name[:1] + `''` + name[1:] + " " + rest
		out["escapes"] = "$'" + name + "' " + rest
		out["line end"] = name[:1] + "\\\n" + name[1:] + " \\\n" + rest
		out["tab"] = name + "\t" + rest
		out["path"] = "/usr/bin/" + src
		out["redirection first"] = "2>/dev/null " + src
		out["env"] = "env " + src
		out["nested env"] = "env -u A nice nohup setsid " + src
		out["variable"] = "LC_ALL=C " + src
	}
	return out
}

// plainName reports whether a word is a program's name that may be written in
// other ways: not a word of the grammar, not a builtin, which only the shell has.
func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < 'a' || c > 'z' {
			return false
		}
	}
	keyword := []string{"if", "for", "while", "until", "case", "select", "function", "time", "coproc", "then", "do", "in"}
	return name != "" && !isBuiltin(name) && !slices.Contains(keyword, name)
}

// FuzzClassify holds any text against what always holds: no panic, the same
// answer twice, known classes, and two sources after each other are as strict as
// each of them.
func FuzzClassify(f *testing.F) {
	for _, name := range []string{"own.jsonl", "blind.jsonl"} {
		list := corpus(f, name)
		for i, j := range list {
			f.Add(j.Cmd, list[(i*7+3)%len(list)].Cmd)
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ra, rb := Classify(a, here), Classify(b, here)
		if again := Classify(a, here); !reflect.DeepEqual(ra, again) {
			t.Fatalf("%q is %v, then %v", a, ra, again)
		}
		consistent(t, a, ra)
		both := Classify(a+"\n"+b, here)
		if changesWhatFollows(a) || ra.Class == Unparsable || rb.Class == Unparsable {
			return
		}
		if both.Class.Rank() < max(ra.Class.Rank(), rb.Class.Rank()) {
			t.Fatalf("%q is %s and %q is %s, both are %s", a, ra.Class, b, rb.Class, both.Class)
		}
	})
}

// changesWhatFollows reports whether the first of two sources may rightly make
// the second milder: by going elsewhere, by giving variables numbers, by
// defining functions, or by not ending where the text does.
func changesWhatFollows(a string) bool {
	for _, s := range []string{"cd", "pushd", "popd", "eval", "()", "function", "<<", "=", "for", "HOME", "\\"} {
		if strings.Contains(a, s) {
			return true
		}
	}
	return false
}

// consistent holds a report against itself.
func consistent(t *testing.T, src string, r Report) {
	t.Helper()
	if !slices.Contains(classes[:], r.Class) || r.Reason == "" || r.Commands == nil {
		t.Fatalf("%q: %+v", src, r)
	}
	for _, c := range r.Commands {
		if c.Class.Rank() > r.Class.Rank() || !slices.Contains(classes[:], c.Class) {
			t.Fatalf("%q is %s, its command %s is %s", src, r.Class, c.Name, c.Class)
		}
		if c.Class != ReadOnly && c.Reason == "" {
			t.Fatalf("%q: %s is %s for no reason", src, c.Name, c.Class)
		}
		for _, p := range slices.Concat(c.Reads, c.Writes) {
			if !strings.HasPrefix(p, "/") {
				t.Fatalf("%q: path %q isn't absolute", src, p)
			}
		}
	}
}

func TestGeneratedSourcesKeepTheProperties(t *testing.T) {
	g := newGenerator(11)
	for range 5000 {
		src := g.source()
		consistent(t, src, Classify(src, here))
	}
}

func TestEveryRowIsSound(t *testing.T) {
	seen := map[string]string{}
	take := func(list string) {
		for name := range strings.SplitSeq(list, ",") {
			if other, ok := seen[name]; ok {
				t.Errorf("%q is in the rows of %q and of %q", name, other, list)
			}
			seen[name] = list
			parent, _, ok := strings.Cut(name, " ")
			if !ok || parent == "builtin" { // the shell itself looks those up
				continue
			}
			if seen[parent] == "" {
				t.Errorf("%q has no row for %q before it", name, parent)
			}
			if p := lookup(parent); p == nil || !p.sub {
				t.Errorf("%q is never looked for: the row of %q doesn't say that there are any", name, parent)
			}
		}
	}
	{
		for i := range rows {
			p := &rows[i]
			take(p.name)
			if p.class != "" && p.class != ReadOnly && p.why == "" && !p.sub {
				t.Errorf("the row of %q gives no reason", p.name)
			}
			soundOptions(t, p.name, p.table())
			if !slices.Contains([]string{"", "r", "l", "w", "d", "pr", "pw", "pd", "cp", "mv", "rw", "ln", "h", "+", "none", "new", "w1"}, p.args) {
				t.Errorf("%q has operands %q, which mean nothing", p.name, p.args)
			}
		}
	}
	if n := len(*index.Get(makeIndex)); n != len(seen) {
		t.Errorf("the index has %d names, the rows have %d", n, len(seen))
	}
	for name, row := range seen {
		if p := lookup(name); p == nil || p.name != row {
			t.Errorf("%q isn't found in its row", name)
		}
		for _, part := range []string{name[1:], name[:len(name)-1], name + "x"} {
			if lookup(part) != nil && seen[part] == "" {
				t.Errorf("%q is found in a row that doesn't name it", part)
			}
		}
	}
}

func TestTablesAreReadOnce(t *testing.T) {
	for _, name := range []string{"git diff", "ls", "curl"} {
		p := lookup(name)
		if first, again := p.table(), p.table(); first != again {
			t.Errorf("the options of %s are read again for each command", name)
		}
	}
}

func soundOptions(t *testing.T, name string, read *table) {
	t.Helper()
	for opt, o := range read.options {
		if o.effect != 0 && !strings.ContainsRune("rwTdWDNhEUxCipsvmISoOefP@FgGMVqkcX", rune(o.effect)) {
			t.Errorf("%q: option %s has effect %q, which means nothing", name, opt, o.effect)
		}
	}
}

// BenchmarkClassify judges the commands of both corpora; p99 is of single ones.
func BenchmarkClassify(b *testing.B) {
	list := append(corpus(b, "own.jsonl"), corpus(b, "blind.jsonl")...)
	times := make([]time.Duration, 0, len(list))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		Classify(list[i%len(list)].Cmd, there)
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkClassifyLong judges a command of 64 KiB.
func BenchmarkClassifyLong(b *testing.B) {
	list := corpus(b, "blind.jsonl")
	var long strings.Builder
	for i := 0; long.Len() < 64<<10; i++ {
		if cmd := list[i%len(list)].Cmd; Classify(cmd, there).Class != Unparsable && !strings.Contains(cmd, "<<") {
			long.WriteString(cmd + "\n")
		}
	}
	src := long.String()[:64<<10]
	src = src[:strings.LastIndexByte(src, '\n')]
	if r := Classify(src, there); len(r.Commands) < 500 {
		b.Fatalf("only %d commands: %s", len(r.Commands), r.Reason)
	}
	b.ReportAllocs()
	for b.Loop() {
		Classify(src, there)
	}
}
