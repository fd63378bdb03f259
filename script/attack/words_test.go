//go:build linux

package attack

import "testing"

// TestWordsOfUnknownNumber: a word that may become several, or an option, is
// judged as every option and operand that the program has.
// Guarantee: G73.
func TestWordsOfUnknownNumber(t *testing.T) {
	play(t, expectation{decided: true, outside: true}, wordsOfUnknownNumber())
}

func wordsOfUnknownNumber() []attack {
	const archive = `echo x >f; tar cf ./+a.tar f; : >./--checkpoint=1; : >'./--checkpoint-action=exec=sh job.sh'`
	const repository = `git init -q . && git add a && git -c user.name=x -c user.email=x@x.example commit -qm x`
	job := map[string]string{"job.sh": "touch MARK"}
	text := map[string]string{"a": "x\n", "words": "a MARK\n"}
	return []attack{
		{name: "tar and a pattern", files: job, setup: archive, command: "tar tf *"},
		{name: "tar and parameters", files: job, setup: archive, command: `set -- ./*; shift; set -- +a.tar --checkpoint=1 "--checkpoint-action=exec=sh job.sh"; tar tf "$@"`},
		{name: "tar and xargs", files: job, setup: archive, command: `ls -A | grep -v ^job | xargs -d '\n' tar tf`},
		{name: "uniq and a variable", files: text, command: "x='a MARK'; uniq $x"},
		{name: "uniq and parameters", files: text, command: `set -- a MARK; uniq -- "$@"`},
		{name: "uniq and a substitution", files: text, command: "uniq $(cat words)"},
		{name: "uniq and xargs", files: text, command: "cat words | xargs uniq"},
		{name: "uniq behind an option", files: text, command: "x='0 a MARK'; uniq -f $x"},
		{name: "sort and xargs", files: text, command: "echo -oMARK a | xargs sort"},
		{name: "find behind a test", files: text, command: "x='a -fprint MARK'; find . -name $x"},
		{name: "git diff", files: text, setup: repository, command: "x='--output=MARK'; git diff $x"},
		{name: "git blame", files: text, setup: repository, command: "x='--output=MARK a'; git blame $x"},
		{name: "awk", files: text, command: `x='BEGIN{print"x">"MARK"}'; awk $x a`},
		{name: "sed", files: text, command: "x='wMARK'; sed -n $x a"},
		{name: "trap", command: "x='touch${IFS}MARK EXIT'; trap $x"},
		{name: "exec -a", command: "x='name touch MARK'; (exec -a $x ls)"},
		{name: "printf", command: "x='-v a[$(touch${IFS}MARK)] y'; printf $x"},
		{name: "read", command: "x='p a[$(touch${IFS}MARK)]'; echo q | read -p $x y"},
		{name: "a response file", files: map[string]string{"x": "rc MARK job.sh", "job.sh": "x"}, command: "ar @x"},

		{name: "words of ls", files: text, command: "touch MARK; ls *", control: true},
	}
}
