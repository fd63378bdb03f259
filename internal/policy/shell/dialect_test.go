package shell

import (
	"strings"
	"testing"
)

// dialects are sources that shells read in different ways: what a classifier that
// reads one of them as another shell does would let pass.
var dialects = []struct {
	src      string
	bash, sh Class
}{
	// a test of bash is a command of sh, and what stands in it starts pipes and lists
	{"[[ a =~ b|touch${IFS}P ]]", ReadOnly, Unparsable},
	{"! [[ a =~ b|touch${IFS}P ]]", ReadOnly, Unparsable},
	{"true && [[ a =~ b|touch${IFS}P ]]", ReadOnly, Unparsable},
	{"true\n[[ a =~ b|touch${IFS}P ]]", ReadOnly, Unparsable},
	{"[[ a || touch P ]]", Unparsable, Unparsable},
	{"[[ a > P ]]", ReadOnly, Unparsable},
	{"if [[ a =~ (b|touch) ]]; then ls; fi", ReadOnly, Unparsable},
	{"ls [[ && cat", ReadOnly, Unparsable}, // of busybox the words [[ && cat are operands

	// what counts in bash are subshells of sh
	{"((1>2))", ReadOnly, Unparsable},
	{"((1 > 2 || 3 > 4))", ReadOnly, Unparsable},
	{"for ((i=0;i<2;i++)); do ls; done", Unparsable, Unparsable},

	// quotes
	{"echo $'a\\'; touch P; echo \\'b'", ReadOnly, Unparsable},
	{"echo $'\\x41'", ReadOnly, Unparsable},
	{`echo $"a"`, ReadOnly, Unparsable},
	{"ls \\", Unparsable, Unparsable},
	{`echo "${x:-'}'}"`, Unparsable, Unparsable},
	{`echo "${x:-"a"}"`, ReadOnly, Unparsable},

	// here-documents
	{"cat <<$'E'\na\nE\ntouch P\n$E", Unparsable, Unparsable},
	{"cat <<$\"E\"\na\nE", Unparsable, Unparsable},
	{"cat <<'E'F\na\nEF", Unparsable, Unparsable},
	{"cat <<\"E F\"\na\nE F", Unparsable, Unparsable},
	{"cat <<$E\na\n$E", Unparsable, Unparsable},
	{"cat <<E\\\nF\na\nEF", Unparsable, Unparsable},
	{"cat <<E\na\\\nE\nls\nE", Unparsable, Unparsable},
	{"cat <<E\nE\\\n\nls\nE", Unparsable, Unparsable},
	{"echo $(cat <<E\na\nE)\ntouch P\nE\n)", Unparsable, Unparsable},
	{"cat <<E $(\ntouch P\n)\nE\n", Unparsable, Unparsable},
	{"cat <<'E'\n$(touch P)\nE", ReadOnly, ReadOnly},
	{"cat <<\\E\n$(touch P)\nE", ReadOnly, ReadOnly},
	{"cat <<-E | wc -l; cat <<F\n\ta\n\tE\nb\nF\n", ReadOnly, ReadOnly},
	{"cat <<E\n$(touch P)\nE", WriteWorkspace, WriteWorkspace},
	{"cat <<<\"$(touch P)\"", WriteWorkspace, Unparsable},

	// operators and redirections
	{"ls |& cat", ReadOnly, Unparsable},
	{"ls &> P", WriteWorkspace, Unparsable},
	{"ls &>> P", WriteWorkspace, Unparsable},
	{"ls >&P", WriteWorkspace, Unparsable},
	{"ls >&'$(touch P)'", Unparsable, Unparsable},
	{"ls >&\"$x\"", Unparsable, Unparsable},
	{"ls | time -p A=1 touch P", Unparsable, Unparsable},
	{"exec -a-a touch P ls", Unparsable, Unparsable},
	{"cat <<E\n$(ls 'a\\\nb')\nE", Unparsable, Unparsable},
	{`rm ~""/x`, EscapeAttempt, EscapeAttempt},
	{"ls 10>P", WriteWorkspace, Unparsable},
	{"ls {fd}>P", WriteWorkspace, Unparsable},
	{"case a in a) ls ;& b) touch P ;; esac", WriteWorkspace, Unparsable},
	{"diff <(ls) <(ls -a)", ReadOnly, Unparsable},

	// words
	{"cp {x'y',/etc/passwd}", Unparsable, Unparsable},
	{"rm {a,b}", EscapeAttempt, Unparsable},
	{"ls @(a|b)", Unparsable, Unparsable},
	{"echo ${x@P}", Unparsable, Unparsable},
	{"echo ${x:1:2} ${x/a/b} ${x^^}", ReadOnly, Unparsable},
	{"echo $[1+1]", ReadOnly, Unparsable},
	{"a=(x y); ls", ReadOnly, Unparsable},
	{"a+=x; ls", ReadOnly, Unparsable},
	{"export A=$x", WriteWorkspace, Unparsable},

	// reserved words and builtins that only some shells have
	{"function f { ls; }; f", ReadOnly, Unparsable},
	{"select x in a; do ls; done", ReadOnly, Unparsable},
	{"coproc ls", Unparsable, Unparsable},
	{"time ls", ReadOnly, Unparsable},
	{"let 1", ReadOnly, Unparsable},
	{"declare a=1", ReadOnly, Unparsable},
	{"local a=1", ReadOnly, Unparsable},
	{"builtin echo a", ReadOnly, Unparsable},
	{"mapfile a", ReadOnly, Unparsable},
	{"exec -a x ls", ReadOnly, Unparsable},

	// which shell reads a source within a source
	{"bash -c '[[ a ]]'", ReadOnly, ReadOnly},
	{"sh -c '[[ a ]]'", Unparsable, Unparsable},
	{"dash -c '[[ a ]]'", Unparsable, Unparsable},
	{"busybox sh -c '((1>2))'", Unparsable, Unparsable},
	{"bash --posix -c '[[ a ]]'", Unparsable, Unparsable},
	{"bash -o posix -c ls", Unparsable, Unparsable},
	{"zsh -c ls", Unparsable, Unparsable},
	{"eval '[[ a ]]'", ReadOnly, Unparsable},
	{"trap '((1>2))' EXIT", ReadOnly, Unparsable},
	{"bash <<'E'\n((1>2))\nE", ReadOnly, ReadOnly},
	{"sh <<'E'\n((1>2))\nE", Unparsable, Unparsable},
	{"awk 'BEGIN { system(\"[[ a ]]\") }'", Unparsable, Unparsable},

	// what everybody reads alike stays what it is
	{"ls -la | grep -c x && echo \"$HOME\" 2>&1", ReadOnly, ReadOnly},
	{"for f in a b; do wc -l \"$f\"; done", ReadOnly, ReadOnly},
	{"if [ -f a ]; then cat a; else ls; fi", ReadOnly, ReadOnly},
	{"x=${y:-a}; echo \"${x%.go}\" $((1 + 2))", ReadOnly, ReadOnly},
	{"export LC_ALL=C; ls", ReadOnly, ReadOnly},
	{"git log --format='%h {%s}' stash@{0}", ReadOnly, ReadOnly},
	{"find . -name '*.{a,b}' -print", ReadOnly, ReadOnly},
}

// Guarantee: G86.
func TestASourceIsReadAsItsShellReadsIt(t *testing.T) {
	for _, c := range dialects {
		for d, want := range map[Dialect]Class{Bash: c.bash, Sh: c.sh, "": c.sh} {
			o := here
			o.Dialect = d
			if r := Classify(c.src, o); r.Unheld() != want {
				t.Errorf("%q in %q is %s (%s), want %s", c.src, d, r.Unheld(), r.Reason, want)
			}
		}
	}
}

// FuzzDialects: sh is never judged milder than bash, of which it may be one.
func FuzzDialects(f *testing.F) {
	for _, c := range dialects {
		f.Add(c.src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		inBash, inSh := here, here
		inSh.Dialect = Sh
		if b, s := Classify(src, inBash), Classify(src, inSh); s.Class.Rank() < b.Class.Rank() && !strings.Contains(src, "sh") {
			t.Errorf("%q is %s in sh and %s in bash", src, s.Class, b.Class)
		}
	})
}
