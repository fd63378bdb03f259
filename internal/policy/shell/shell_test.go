package shell

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

var here = Options{Dir: "/srv/proj", Workspace: "/srv/proj", Home: "/home/ada", Dialect: Bash}

// names are the commands of a report as "wrapper>wrapper>name".
func commandNames(r Report) []string {
	var out []string
	for _, c := range r.Commands {
		out = append(out, strings.Join(append(slices.Clone(c.Wrapped), c.Name), ">"))
	}
	return out
}

// Guarantee: G21.
func TestEveryCommandIsFoundWhereverItStands(t *testing.T) {
	for src, want := range map[string]string{
		"a | b |& c":                               "a b c",
		"a && b || c; d & e":                       "a b c d e",
		"echo $(a; b) `c` \"$(d)\"":                "a b c d echo",
		"(a; { b; })":                              "a b",
		"if a; then b; elif c; then d; else e; fi": "a b c d e",
		"while a; do b; done; until c; do d; done": "a b c d",
		"for i in $(a); do b; done":                "a b",
		"case $(a) in $(b)) c;; esac":              "a b c",
		"f() { a; }":                               "a",
		"a <(b) >(c)":                              "b c a",
		"a <<E\n$(b)\nE":                           "b a",
		"a <<'E'\n$(b)\nE":                         "a",
		"x=$(a) y=`b` c":                           "a b c",
		"x=($(a) [1]=$(b))":                        "a b",
		"echo ${x:-$(a)} ${y/$(b)/$(c)}":           "a b c echo",
		"[[ $(a) == $(b) ]]":                       "a b",
		"! a; time b":                              "a time>b",
		"a > $(b)":                                 "b a",
		"env -i X=1 nice -n 5 a":                   "env>nice>a",
		"sudo -u x timeout 5 a":                    "sudo>timeout>a",
		"find . -exec a {} + -o -execdir b \\;":    "find>a find>b find",
		"find . -exec":                             "find",
		"sh -c 'a; bash -c \"b\"'":                 "sh>a sh>bash>b",
		"eval 'a | b'":                             "eval>a eval>b",
		"xargs -n1 -I{} a {}":                      "xargs>a",
		"trap 'a' EXIT":                            "trap>a trap",
		"command a; exec b":                        "command>a exec>b",
		"bash <<'E'\na\nE":                         "bash>a",
		"ssh h 'a; b'":                             "ssh ssh>a ssh>b",
		"docker exec -it c a":                      "docker exec>a",
		"flock f a":                                "flock>a",
		"busybox sh -c a":                          "busybox>sh>a",
		"echo $((1 + $(nproc)))":                   "nproc echo",
		"GIT_PAGER=a git log":                      "GIT_PAGER>a git",
		"awk 'BEGIN { system(\"a\") }'":            "awk",
		"sed '1e a'":                               "sed",
		"env -S 'a b'":                             "env>a",
		"parallel a ::: b":                         "parallel",
		"git bisect run a":                         "git bisect run>a",
	} {
		if got := strings.Join(commandNames(Classify(src, here)), " "); got != want {
			t.Errorf("%s\n got %s\nwant %s", src, got, want)
		}
	}
}

func TestArgvIsJudgedWithoutAShell(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want Class
	}{
		{[]string{"ls", "$(rm x)", "*"}, ReadOnly},
		{[]string{"rm", "-rf", "x"}, Destructive},
		{[]string{"cd", "x"}, Destructive}, // no such program
		{[]string{"sh", "-c", "rm x"}, Destructive},
		{[]string{"ls", "a\x00b"}, Unparsable},
		{[]string{""}, Unparsable},
		{nil, Unparsable},
	} {
		if r := ClassifyArgv(c.argv, here); r.Class != c.want {
			t.Errorf("%q is %s (%s), want %s", c.argv, r.Class, r.Reason, c.want)
		}
	}
}

func TestPathsAreReadFromWhereTheCommandRuns(t *testing.T) {
	for src, want := range map[string]string{
		"touch x":                         "/srv/proj/x",
		"cd sub && touch x":               "/srv/proj/sub/x",
		"cd sub; touch x":                 "/srv/proj/sub/x /srv/proj/x",
		"cd sub || touch x":               "/srv/proj/x",
		"(cd sub && true); touch x":       "/srv/proj/x",
		"cd sub | touch x":                "/srv/proj/x",
		"cd; touch x":                     "/home/ada/x /srv/proj/x",
		"touch ~/x $HOME/y \"$PWD/z\"":    "/home/ada/x /home/ada/y /srv/proj/z",
		"git -C sub diff --output=x":      "/srv/proj/sub/x",
		"tar -C sub -xf x":                "/srv/proj/sub",
		"cp a b/c":                        "/srv/proj/b/c",
		"cp -t d a b":                     "/srv/proj/d",
		"touch 'a b' \"c\"d\\ e $'A'":     "/srv/proj/A /srv/proj/a b /srv/proj/cd e",
		"dd if=a of=b":                    "/srv/proj/b",
		"sed -i.bak s/a/b/ f":             "/srv/proj/f",
		"eval 'cd sub' && touch x":        "/srv/proj/sub/x /srv/proj/x",
		"echo x >a 2>b &>c >>d 2>&1 3>&-": "/srv/proj/a /srv/proj/b /srv/proj/c /srv/proj/d",
	} {
		var got []string
		for _, c := range Classify(src, here).Commands {
			got = append(got, c.Writes...)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s\n got %v\nwant %s", src, got, want)
		}
	}
}

func TestAnOpenWordIsNeverTakenForALiteralOne(t *testing.T) {
	r := Classify(`cat "$X" '$X' *.go`, here)
	if len(r.Commands) != 1 {
		t.Fatal(r)
	}
	c := r.Commands[0]
	if c.Literal(0) || !c.Literal(1) || c.Literal(2) || c.Args[0] != `"$X"` || c.Args[1] != "$X" {
		t.Errorf("got %q, open %v", c.Args, c.Open)
	}
}

// Guarantee: G23.
func TestBadInputIsUnparsableAndQuick(t *testing.T) {
	for name, src := range map[string]string{
		"too long":        "echo " + strings.Repeat("a", 1<<20),
		"NUL":             "ls\x00",
		"CR":              "ls\r\nrm x",
		"next line":       "ls \u0085 x",
		"line separator":  "ls \u2028 x",
		"bidi":            "ls \u202e x",
		"zero width":      "l\u200bs",
		"blank":           "ls\u00a0x",
		"not UTF-8":       "ls \xff",
		"confusable":      "\u0441at x",
		"open quote":      "echo 'x",
		"open bracket":    "echo $(ls",
		"deep":            strings.Repeat("(", 5000) + "ls" + strings.Repeat(")", 5000),
		"deeper":          strings.Repeat("$(", 60000),
		"deep words":      "echo " + strings.Repeat("${a:-", 3000) + strings.Repeat("}", 3000),
		"deep sums":       "echo $((" + strings.Repeat("-", 100000) + "1))",
		"deep tests":      "[[ " + strings.Repeat("! ", 30000) + "x ]]",
		"deep conditions": strings.Repeat("if ", 20000),
		"deep eval":       strings.Repeat("eval ", 3000) + "ls",
		"deep env":        strings.Repeat("env ", 3000) + "ls",
	} {
		if r := Classify(src, here); r.Class != Unparsable {
			t.Errorf("%s is %s (%s)", name, r.Class, r.Reason)
		}
	}
}

// TestALongSourceIsReadOnce reads sources of the longest kind that are made to be
// slow. Reading everything again for every part of them takes hundreds of
// megabytes, which, unlike the time, doesn't depend on what else the machine does.
func TestALongSourceIsReadOnce(t *testing.T) {
	for name, src := range map[string]string{
		"quotes":        strings.Repeat("a''", 40000),
		"abbreviations": "git diff " + strings.Repeat("--o=x ", 20000),
		"directories":   strings.Repeat("cd a&&", 20000) + "touch x",
		"variables":     strings.Repeat("a=$a$b;b=$a/$b;cat ~/$a/$b;", 3000),
		"lists":         "for f in " + strings.Repeat("a$f ", 5000) + "; do " + strings.Repeat("cat $f;", 5000) + "done",
		"braces":        "cat " + strings.Repeat("~/{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}$x ", 1000),
		"redirections":  "awk '{print " + strings.Repeat("> ", 60000) + "}'",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if r := Classify(src, here); r.Unheld() == ReadOnly && !slices.Contains([]string{"lists", "braces", "variables"}, name) {
			t.Errorf("%s: %s", name, r.Reason)
		}
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
			t.Errorf("%s took %d MiB", name, took)
		} else {
			t.Logf("%s took %d MiB", name, took)
		}
	}
}

// Guarantee: G23.
func TestLongListsAreReadWhole(t *testing.T) {
	for _, op := range []string{" | ", " && ", "; ", " || ", "\n"} {
		src := strings.Repeat("cat"+op, 10000) + "rm x"
		r := Classify(src, here)
		if r.Class != Destructive || len(r.Commands) != 10001 {
			t.Errorf("%q: %s of %d commands", op, r.Class, len(r.Commands))
		}
	}
}

// Guarantee: G23.
func TestWhatMovesTheCommandOfAWrapperIsUnparsable(t *testing.T) {
	for _, src := range []string{"timeout $T ls", "timeout \"$T\" ls", "nice $N ls", "env $E ls", "xargs $N ls", "nice -n $N ls", "sudo $X ls", "nohup * ls", "ssh $H ls"} {
		if r := Classify(src, here); r.Class != Unparsable {
			t.Errorf("%s is %s (%s)", src, r.Class, r.Reason)
		}
	}
	if r := Classify("nice -n \"$N\" ls", here); r.Class != ReadOnly {
		t.Errorf("an argument that stays one word is %s (%s)", r.Class, r.Reason)
	}
}

func TestANeighbourOfTheWorkspaceIsOutside(t *testing.T) {
	for src, want := range map[string]Class{
		"touch /srv/proj/x":        WriteWorkspace,
		"touch /srv/projx":         EscapeAttempt,
		"touch /srv/proj-2/x":      EscapeAttempt,
		"touch /srv/proj/../x":     EscapeAttempt,
		"touch sub/../x":           EscapeAttempt, // sub may be a link
		"touch ./x":                WriteWorkspace,
		"touch .git/HEAD.lock":     WriteWorkspace,
		"touch .git":               EscapeAttempt,
		"touch .github/x.yml":      WriteWorkspace,
		"rm .g*":                   EscapeAttempt,
		"touch x/.envrc":           EscapeAttempt,
		"touch x.envrc":            WriteWorkspace,
		"touch sub/.Claude/x.json": EscapeAttempt,
	} {
		if r := Classify(src, here); r.Class != want {
			t.Errorf("%s is %s (%s), want %s", src, r.Class, r.Reason, want)
		}
	}
	if r := Classify("touch x", Options{Dir: "relative"}); r.Class != EscapeAttempt {
		t.Errorf("without a workspace it is %s", r.Class)
	}
}

func TestAFunctionHidesNothingThatGoesByItsName(t *testing.T) {
	for src, want := range map[string]Class{
		"f() { ls; }; f":                     ReadOnly,
		"f; f() { ls; }":                     Destructive, // a program, when it runs
		"true && f() { ls; }; f":             Destructive,
		"(f() { ls; }); f":                   Destructive,
		"rm() { :; }; unset -f rm; rm -rf x": Destructive,
		"f() { ls; }; env f":                 Destructive,
		"f() { ls; }; sh -c f":               Destructive,
		"cd() { :; }; cd sub; touch x":       EscapeAttempt,
		"f() { f; }; f":                      Destructive,
		"f() { cd /; }; f; touch x":          EscapeAttempt,
	} {
		if r := Classify(src, here); r.Class != want {
			t.Errorf("%s is %s (%s), want %s", src, r.Class, r.Reason, want)
		}
	}
}

// TestAWayToKeysIsSeen reads keys by a path that the source spells out. Where it only shows
// when it runs, what covers the keys is the boundary.
// Guarantee: G56.
func TestAWayToKeysIsSeen(t *testing.T) {
	for _, key := range []struct{ dir, name, file string }{
		{"", ".ssh", "config"}, {"", ".aws", "credentials"}, {"", ".gnupg", "pubring.kbx"}, {".config/", "gh", "hosts.yml"}, {".config/", "gcloud", "x.db"},
	} {
		for _, form := range []string{
			"cat ~/DNAME/FILE", "cat $HOME/DNAME/FILE", "cd ~/DNAME && cat FILE", "cd ~/DNAME; cat $X", "for f in ~/DNAME/*; do cat \"$f\"; done", "x=~/DNAME; y=$x/FILE; cat < \"$y\"",
			"cat $(echo ~/DNAME/FILE)", "cat `echo ~/DNAME/FILE`", "echo ~/DNAME/FILE | xargs cat", "printf '%s\\n' ~/DNAME/FILE | while read f; do cat \"$f\"; done", "f() { cat \"$1\"; }; f ~/DNAME/FILE",
			"set -- ~/DNAME; cat $1/FILE", "sh -c 'cat \"$0\"' ~/DNAME/FILE", "cat <<E | xargs cat\n/home/ada/DNAME/FILE\nE\n", "find ~/DNAME -exec cat {} +",
		} {
			src := strings.NewReplacer("DNAME", key.dir+key.name, "D", key.dir, "NAME", key.name, "FILE", key.file).Replace(form)
			if r := Classify(src, here); r.Class.Rank() < EscapeAttempt.Rank() {
				t.Errorf("%s is %s (%s)", src, r.Class, r.Reason)
			}
		}
	}
}
