package shell

import (
	"slices"
	"strings"
	"testing"
)

// Where a command runs, and what its paths are made of, is on record where links
// could make something else of it.
// Guarantee: G58.
func TestWhereACommandRunsIsKept(t *testing.T) {
	at := Options{Workspace: "/ws", Dir: "/ws", Home: "/home/u", Dialect: Bash}
	for src, want := range map[string]string{ // of the last command: dirs; through; astray
		"ls": ";;", "cd sub && ls": "/ws/sub;;", "cd sub; ls": "/ws /ws/sub;;", "cd /etc && ls": "/etc;;", "cd && ls": "/home/u;;", "(cd sub); ls": ";;", "cd .. && ls": "/;;",
		"cd sub && cat ../x": "/ws/sub;/ws/sub/../x;", "cat l/../x": ";/ws/l/../x;", "cat /a/l/../x": ";/a/l/../x;", "ls l/..": ";/ws/l/..;", "cat ..x": ";;", "cat < l/../x": ";/ws/l/../x;",
		"echo > ../x": ";/ws/../x;", "git -C l/.. status": ";/ws/l/..;", "./l/../run": ";/ws/./l/../run;",
		"cd $X; ls": ";;astray", "cd -; ls": ";;astray", "cd a/../b && ls": ";;astray", "popd; ls": ";;astray", "for d in a b; do cd $d; ls; done": ";;astray", "f() { cd x; }; f; ls": ";;astray",
		"find . -execdir cat {} +": ";;", "ls | xargs cat": ";;", "x=1; ls": ";;", "(cd $X); ls": ";;", "cd sub; cd $X || exit; cd /ws/a && ls": "/ws/a;;",
	} {
		c := Classify(src, at).Commands
		last := c[len(c)-1]
		slices.Sort(last.Dirs)
		got := strings.Join(last.Dirs, " ") + ";" + strings.Join(last.Through, " ") + ";"
		if last.Astray {
			got += "astray"
		}
		if got != want {
			t.Errorf("%q: %q, want %q (%+v)", src, got, want, last)
		}
	}
}

// Of a path that isn't literal the folder is known that is written down.
func TestTheFolderOfAnOpenPathIsRead(t *testing.T) {
	at := Options{Workspace: "/ws", Dir: "/ws", Home: "/home/u", Dialect: Bash}
	for src, want := range map[string]string{
		"cat /etc/$X": "/etc", "cat ../$X": "/", "cat sub/$X": "/ws/sub", "cat $X": "", "ls /var/log/$X": "/var/log", "wc -l < /etc/$X/y": "/etc", "cat \"$X/y\"": "", "cat pre$X": "",
	} {
		c := Classify(src, at).Commands
		if got := strings.Join(c[len(c)-1].Reads, " "); got != want {
			t.Errorf("%q reads %q, want %q", src, got, want)
		}
	}
}
