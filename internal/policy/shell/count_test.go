package shell

import "testing"

// A word of which nobody knows how many words it becomes, or what it begins
// with, counts as every option and every operand that the program has.
// Guarantee: G73.
func TestAWordOfUnknownNumberIsEveryOptionAndOperand(t *testing.T) {
	for _, src := range []string{
		// an option letter takes the first of the words, and the rest are options
		"tar tf *", "tar tf $A", "tar -t -f *", "tar tvf [ab]* -C sub", "tar -tf a.tar *", "tar --list --file *", "tar tf \"$@\"", "sort -k * b", "sort -t \"$@\"", "find . -name *", "find . -name [-d]*", "find . -name ?delete", "find . -maxdepth $N -name x", "du -X * b; sort -k [ab] x",
		"git log -n $N", "git diff -U $N", "git -C $DIR status", "rg -e $X", "file -m * x", "less -t *", "man -s * ls", "gofmt -r $X",
		// the second operand is written
		"uniq [ab]", "uniq *", "uniq $x", "uniq \"$@\"", "uniq -c $x", "uniq -f *", "uniq -- *", "uniq a $x", "uniq a* ", "uniq $(cat list)", "ls a b | xargs uniq", "ls | xargs -n 2 uniq -c", "find . -exec uniq {} +", "xxd [ab]", "xxd -- $x", "xxd -r $x", "find . -name x -exec xxd {} +", "find a b -exec uniq {} +", "find . -execdir uniq {} +", "find $D -exec uniq {} +", "find \"$D\" -exec xxd {} +", "echo a b | xargs xxd", "uniq {a,b}", "sort {a,b}", "sort a{b,$x}", "sort -{n,oP}", "sort {-oP,a}", "sort *{a,b}", "sort ''{-oP,a}", "uniq a{b,c}", "xxd src/*", "uniq ${x[@]}", "uniq -c -- \"${a[@]}\"", "python3 -I -m json.tool $x", "python3 -I -m json.tool a*",
		// a response file
		"nm @x", "objdump -d @x", "size @opts", "nm a.o @x", "readelf -a @x", "gcc @x", "cc -c a.c @x", "ld @x", "as @x", "ar @x", "javac @x", "strip @x", "java @x", "nm @*", "clang @x", "rustc @x", "tsc @x", "javap @x", "dwarfdump -O file=x a",
		// files of names that hold options
		"tar -cf a.tar -T list", "tar -tf a.tar --files-from list", "tar tTf list a.tar",
		// words that other programs append
		"ls | xargs sort", "ls | xargs git log", "ls | xargs tar tf", "tar tf \"$f\"", "find \"$D\" -exec sort {} \\;", "ls | xargs rg x", "ls | xargs git blame", "ls | xargs tree", "ls | xargs file", "ls | xargs man", "ls | xargs date", "ls | xargs hostname", "ls | xargs -I{} sort {}", "ls | xargs find", "ls | xargs go env", "ls | xargs npm ls", "ls | xargs awk", "ls | xargs sed", "ls | xargs jaq .",
		// it starts what nobody can tell
		"parallel uniq ::: a b", "parallel uniq", "parallel echo {} ::: a", "parallel --results d echo ::: a", "parallel echo '{= system(q(touch x)) =}' ::: a", "rush 'cat {}'",
		// what else options do
		"tar --delete -f a.tar m", "tar -f a.tar --delete m", "tar -df a.tar --checkpoint-action=exec=x", "git blame --output=x a", "git blame *", "dmidecode --dump-bin x", "ls | xargs dmidecode", "pmap -n 1", "pmap -N x 1", "blkid -c x", "procs --gen-completion bash", "in2csv --write-sheets - a.xls", "htmlq -o x a", "cloc --extract-with='touch x' a", "cloc --out=x .", "cloc *", "scc --format-multi json:x .", "sloccount .", "zstdcat a -o b", "zstdcat *", "lz4cat a b", "apt-cache -o Dir::Cache=x show a", "apt-cache show $p", "podman ps --cpu-profile=x", "podman ps $x", "npm ls --logs-dir=x", "npm ls $x", "jaq -i . a", "jaq . *", "sdiff *", "wdiff -a a b; ls | xargs sdiff", "ls | xargs inotifywait",
		// builtins
		"printf $x", "getopts $x", "read -p $x y", "mapfile -d $x a", "wait -p $x", "wait $x", "trap $x", "exec -a $x ls", "kill -0 $x", "kill -l *",
		// code in a word
		"sed -n $x a", "sed p -n $x", "sed -f * a", "awk $x a", "awk -v $x '{print}' a", "awk -v * a", "perl $x", "python3 --version $x", "gzip -l $x", "unzip -l *", "zip -T $x", "ssh-keygen -l $x",
	} {
		if r := Classify(src, here); r.Unheld() == ReadOnly {
			t.Errorf("%s is %s (%s)", src, r.Class, r.Reason)
		}
	}
	for _, src := range []string{
		"ls *", "cat *", "cat $x", "wc -l *", "head -n 5 *", "tail -n $N f", "grep -n x *", "grep -rn $X src", "diff $a $b", "stat *", "du -sh *", "md5sum *", "nl $x", "cut -d: -f1 *", "echo $x *", "printf '%s\\n' *", "printf '--- %s ---\\n' $x", "printf \"$x\"", "read -rp 'name: ' x", "basename $x", "dirname \"$@\"", "ls | xargs cat", "ls | xargs grep -l x", "ls | xargs -n1 basename", "git ls-files | xargs wc -l", "find . -name '*.go' -exec grep -l x {} +", "find . -type f -exec wc -l {} +",
		"uniq a", "uniq \"$x\"", "uniq -c", "sort a | uniq -c | sort -rn", "ls | xargs -I{} uniq {}", "find . -exec uniq {} \\;", "xxd a", "xxd \"$f\" | head", "find . -name *.go", "find src -exec stat {} \\;",
		"tar tf a.tar", "tar -tzf \"dist/$f\" | head", "find . -type f -exec tar tf {} +", "tar tvf src/a.tar x y", "nm a.out", "nm ./a.out | grep x", "strings @x", "size a.o", "objdump -d a.o | head",
		"sort src/*", "sort src/{a,b}", "git diff docs/{a,b}.md", "sort ./*", "sort -- *", "git log -- *.go", "git diff -- $x", "rg x -- *", "git log -n \"$N\"", "git blame src/*.go", "awk '{print}' *", "sed -n p src/*", "file ./*", "git diff src/*",
		"wait", "wait $!", "cmd=1; printf '%s' $cmd", "kill -0 $$", "test -f \"$x\"", "read -r x", "zcat *.gz", "jq . *.json",
	} {
		if r := Classify(src, here); r.Class != ReadOnly {
			t.Errorf("%s is %s (%s)", src, r.Class, r.Reason)
		}
	}
}

// Code of sed and awk that can do more than print isn't read any further; what only
// looks like it is let pass.
func TestCodeThatOnlyPrintsIsRead(t *testing.T) {
	for _, src := range []string{
		"sed 'w f'", "sed 's/a/b/w f'", "sed 'r f'", "sed '1R f'", "sed '$!{W f\n}'", "sed '1,/x/e'", "sed 's,a,b,2ge'", "sed 's/[/]/w/;p'", "sed 's/x/\ne touch P #/'", "sed 's/a", "sed '/a'", "sed ':a e touch P'", "sed 'a x\\\\\ne touch P'",
		`awk '{print > "f"}'`, `awk '{print a || b > "f"}'`, "awk '{print a ||\nb > \"f\"}'", "awk 'BEGIN{print 1,\n2 > \"f\"}'", `awk '{printf "x" | "sh"}'`, `awk '{ "x" |& getline }'`, `awk '{ f = "system"; @f("x") }'`, `awk 'BEGIN { ARGV[1] = ".env"; ARGC = 2 } 1'`,
		`awk '{print /"/ > "f" } # "'`, `awk '{print ";" > "f"}'`, `awk '{print > "/dev/null" "x"}'`, "awk -e '{print 1,' -e '2 > \"f\"}'", "awk '{pri\\\nnt > \"f\"}'",
	} {
		if r := Classify(src, here); r.Unheld().Rank() < Destructive.Rank() {
			t.Errorf("%s is %s (%s)", src, r.Class, r.Reason)
		}
	}
	for _, src := range []string{
		"sed -n '/a/,/b/{p;q}' f", `sed '\,x,d;s|a|b|g' f`, "sed 's/[^/]*$//' f", "sed '1!G;h;$!d' f", "sed 'y/abc/xyz/;p' f", "sed -e '/x/a\\\nwritten' f",
		`awk '{print "->", $1}' f`, `awk '/a|b/ {print $1/$2 "%"}' f`, `awk '{print > "/dev/stderr"}' f`, `awk '{print "a|b"; if ($1 > 2) n++} END {print n || 0}' f`,
	} {
		if r := Classify(src, here); r.Class != ReadOnly {
			t.Errorf("%s is %s (%s)", src, r.Class, r.Reason)
		}
	}
}
