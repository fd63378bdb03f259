package screens

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/testkit/golden"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/testkit/tmux"
)

// ofReadme are a script and the commands of the section "Several agents".
func ofReadme(t *testing.T) (script string, commands []string) {
	t.Helper()
	doc, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Several agents\n")
	_, block, _ := strings.Cut(section, "```console\n$ cat ../team.yaml\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("README.md has no such section any more")
	}
	script, block, _ = strings.Cut(block, "\n\n$ ")
	for i, part := range strings.Split("\n\n$ "+block, "\n\n$ ") {
		if line, _, _ := strings.Cut(part, "\n"); i > 0 {
			commands = append(commands, line)
		}
	}
	if len(commands) != 3 {
		t.Fatalf("it has other commands: %q", commands)
	}
	return script, commands
}

// TestTheTeamOfTheReadmeOnScreen: what README.md says of several agents is done on a
// terminal: a plan, two that write in worktrees of their own, and a review. While the two
// work there is a line for each; behind their ends the tree is drawn.
func TestTheTeamOfTheReadmeOnScreen(t *testing.T) {
	needs.Program(t, "git")
	script, commands := ofReadme(t)
	for _, width := range []int{60, 100} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			server := tmux.New(t)
			write := func(name, text string) {
				t.Helper()
				path := filepath.Join(server.Dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			ws, home := filepath.Join(server.Dir, "ws"), filepath.Join(server.Dir, "home")
			write("home/bin/belay", "#!/bin/sh\nexec env SCREENS_PROGRAM=1 "+os.Args[0]+" \"$@\"\n")
			write("team.yaml", script)
			write("ws/greet.sh", "echo hello\n")
			write("ws/check.sh", "until [ -e go ]; do sleep 0.05; done\nrm go\nfor f in *.sh; do [ $f = check.sh ] || sh $f; done\n") // it ends when it may
			if err := os.Chmod(filepath.Join(home, "bin", "belay"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "first"}} {
				cmd := exec.CommandContext(t.Context(), "git", args...)
				cmd.Dir = ws
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %q: %v\n%s", args, err, out)
				}
			}
			w := server.Window("team", ws, width, 40, "env", "-i", "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"), "HOME="+home, "USER=tester", "LANG=C.UTF-8",
				"TERM=screen-256color", "TZ=UTC", "PS1=$ ", "sh", "-i")
			var screens strings.Builder
			keep := func(title, screen string) {
				var lines []string
				for _, l := range strings.Split(screen, "\n") {
					if !strings.HasPrefix(l, "step ") { // how far the main agent's thread is, which differs
						lines = append(lines, strings.TrimRight(steady(writers.Replace(l)), " "))
					}
				}
				fmt.Fprintf(&screens, "== %s\n%s\n", title, strings.TrimSpace(strings.Join(lines, "\n")))
			}
			w.Waits("$")
			w.Type("clear; " + commands[0])
			w.Press("Enter")
			working := w.Until("two agents that work", func(screen string) bool {
				return strings.Count(screen, "exec · 2 calls") == 2 || strings.Count(screen, "exec ·") == 2
			})
			keep("two agents work", working[strings.Index(working, "I have it"):])
			trees, err := filepath.Glob(filepath.Join(home, ".local/state/belay-worktrees/sub_*"))
			if err != nil || len(trees) != 2 {
				t.Fatalf("worktrees: %q, %v", trees, err)
			}
			for _, tree := range trees {
				if err := os.WriteFile(filepath.Join(tree, "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ended := w.Until("the end, and a prompt", func(screen string) bool {
				return strings.Contains(screen, "Two branches wait to be merged.") && strings.HasSuffix(strings.TrimSpace(screen), "$")
			})
			keep("they have ended", ended[strings.Index(ended, "I have it"):])
			w.Type("clear; " + commands[1] + " | grep -A3 agents")
			w.Press("Enter")
			tree := w.Until("a tree", func(screen string) bool {
				return strings.Contains(screen, "└─") && strings.HasSuffix(strings.TrimSpace(screen), "$")
			})
			keep("the tree", tree[strings.Index(tree, "agents "):])
			w.Type("clear; " + commands[2] + " | cut -c1-58")
			w.Press("Enter")
			list := w.Until("both worktrees", func(screen string) bool {
				return strings.Count(screen, "(german)")+strings.Count(screen, "(french)") == 2
			})
			if strings.Count(list, "sub_") != 2 {
				t.Errorf("the worktrees:\n%s", list)
			}
			golden.Compare(t, fmt.Sprintf("testdata/team-%d.screens", width), used.ReplaceAllString(screens.String(), "completed …\nTwo branches"))
		})
	}
}

// used is the line of what the team used, which a terminal breaks where its times end.
var used = regexp.MustCompile(`(?s)completed in [^:]*: 4 steps.*?\nTwo branches`)

// writers makes lines of the two that work at the same time alike, whichever comes first.
var writers = strings.NewReplacer("german", "writer", "french", "writer", "de.sh", "xx.sh", "fr.sh", "xx.sh")
