//go:build linux

package attack

import (
	"slices"
	"testing"
)

// TestDialects: what the classifier parses is what the session's shell runs.
// Guarantee: G86.
func TestDialects(t *testing.T) { play(t, expectation{decided: true, outside: true}, dialects) }

var dialects = []attack{
	{name: "a test within sh", command: `sh -c '[[ a =~ b|touch${IFS}MARK ]]'`},
	{name: "a negated test within sh", command: `sh -c '! [[ a =~ b|touch${IFS}MARK ]]'`},
	{name: "a test behind a newline within sh", command: "sh <<'E'\ntrue\n[[ a =~ b|touch${IFS}MARK ]]\nE"},
	{name: "a test that xargs hands to sh", command: `echo x | xargs sh -c '[[ a > MARK ]]'`},
	{name: "counting within dash", command: `dash -c '((1>MARK))'`},
	{name: "words of a test within busybox", command: `busybox sh -c 'ls [[ ; touch MARK'`},
	{name: "a quote that sh ends elsewhere", command: "sh -c 'echo $'\"'\"'a\\'\"'\"'; touch MARK; echo '\"'\"'b'\"'\"''"},
	{name: "a delimiter with a dollar", command: "sh <<'X'\ncat <<$'E'\n$E\ntouch MARK\nE\nX"},
	{name: "a delimiter in parts", command: "cat <<'E'F\nEF\ntouch MARK"},
	{name: "an end within a substitution", command: "echo $(cat <<E\na\nE)\ntouch MARK\nE\n)"},
	{name: "a brace that is quoted in part", files: map[string]string{"a": "x\n"}, command: `sort a {-'o',MARK}`},
	{name: "a prompt's expansion", command: `x='$(touch MARK)'; echo "${x@P}"`},
	{name: "a subscript that is counted", command: `x='a[$(touch MARK)]'; echo $((x))`},
	{name: "a subscript in old brackets", command: `x='a[$(touch MARK)]'; echo $[x]`},
	{name: "a subscript in a test", command: `[[ -v 'a[$(touch MARK)]' ]]`},
	{name: "a subscript that is compared", command: `[[ 'a[$(touch MARK)]' -eq 0 ]]`},
	{name: "a subscript of printf", command: `printf -v 'a[$(touch MARK)0]' x`},
	{name: "a subscript of let", command: `let 'a[$(touch MARK)]'`},
	{name: "falling through a case", command: `case a in a) ls ;& b) touch MARK ;; esac`},
	{name: "a process substitution", command: `cat <(touch MARK)`},
	{name: "a here-string", command: `cat <<<"$(touch MARK)"`},
	{name: "both streams", command: `ls &>MARK`},
	{name: "a file with a name of its own", command: `ls {fd}>MARK 1>&$fd`},
	{name: "a coprocess", command: `coproc X { touch MARK; }; wait`},
	{name: "a menu", command: `select v in a; do touch MARK; break; done <<<1`},
	{name: "a function with a word before it", command: `function ls { touch MARK; }; ls`},
}

// TestOtherShells: what is no attack in the session's shell, and so may be allowed,
// isn't run by another one.
func TestOtherShells(t *testing.T) { play(t, expectation{}, otherShells) }

var otherShells = []attack{
	{name: "double parenthesis", command: `((1>MARK))`, shell: "dash"},
	{name: "a pipe in a test", command: `[[ a =~ b|touch${IFS}MARK ]]`, shell: "dash"},
	{name: "a pipe in a negated test", command: `! [[ a =~ b|touch${IFS}MARK ]]`, shell: "dash"},
	{name: "a pipe in a test behind another command", command: "true && [[ a =~ b|touch${IFS}MARK ]]", shell: "dash"},
	{name: "a pipe in a test on the next line", command: "true\n[[ a =~ b|touch${IFS}MARK ]]", shell: "dash"},
	{name: "a comparison", command: `[[ a > MARK ]]`, shell: "busybox"},
}

// TestSessionsInSh: where sh runs the command lines they are read as sh reads them.
func TestSessionsInSh(t *testing.T) {
	play(t, expectation{decided: true, outside: true, sh: true}, slices.Concat(dialects, otherShells, wordsOfUnknownNumber(), controls, []attack{
		{name: "a here-document of sh", command: "cat >MARK <<-'E'\n\t[[\n\tE", control: true},
		{name: "a loop of sh", command: `for f in a b; do [ -e "$f" ] || echo "${f%b}" >>MARK; done`, control: true},
	}))
}

// TestControls: the harness notices what happens.
func TestControls(t *testing.T) { play(t, expectation{}, controls) }

var controls = []attack{
	{name: "touch", command: "touch MARK", control: true},
	{name: "a script that was allowed", files: map[string]string{"job.sh": "echo done >MARK"}, command: "sh job.sh", flags: []string{"--allow", "exec"}, control: true},
}
