package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// place is a home with a folder of settings, and a workspace, of some files.
func place(t *testing.T, all map[string]string) Input {
	t.Helper()
	dir := t.TempDir()
	for name, text := range all {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			if err := os.Symlink(to, file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ws := filepath.Join(dir, "ws")
	return Input{Env: Env{Vars: []string{"HOME=" + filepath.Join(dir, "home"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "home/.config")}, Dir: ws}, Workspace: ws}
}

// Files of instructions bring those that they import, and nothing from elsewhere.
func TestInstructions(t *testing.T) {
	chain := map[string]string{"ws/AGENTS.md": "@1.md"}
	for i, n := range "123456" {
		chain["ws/"+string(n)+".md"] = "text " + string(n) + "\n@" + string("123456789"[i+1]) + ".md"
	}
	long := strings.Repeat("x", maxNameLength+1) + ".md"
	for name, c := range map[string]struct {
		files map[string]string
		want  string // names that are taken, and those left out with the reason
	}{
		"none":               {nil, ""},
		"all names":          {map[string]string{"ws/AGENTS.md": "a", "ws/CLAUDE.md": "c", "ws/CLAUDE.local.md": "l"}, "AGENTS.md CLAUDE.md CLAUDE.local.md"},
		"the same text":      {map[string]string{"ws/AGENTS.md": "a", "ws/CLAUDE.md": "a"}, "AGENTS.md"},
		"an import":          {map[string]string{"ws/AGENTS.md": "Read @docs/a.md, and (@b.md).", "ws/docs/a.md": "a @c.md", "ws/docs/c.md": "c", "ws/b.md": "b"}, "AGENTS.md docs/a.md docs/c.md b.md"},
		"in code":            {map[string]string{"ws/AGENTS.md": "`@b.md` ``x ` @b.md``\n```\n@b.md\n```\n~~~ sh\n@b.md\n```\n@b.md\n~~~\n\n    @b.md\n    @b.md\n", "ws/b.md": "b"}, "AGENTS.md"},
		"after code":         {map[string]string{"ws/AGENTS.md": "`x` @b.md\n", "ws/b.md": "b"}, "AGENTS.md b.md"},
		"no import":          {map[string]string{"ws/AGENTS.md": "ask ann@b.md or @ann, @types/node, @", "ws/b.md": "b"}, "AGENTS.md"},
		"missing":            {map[string]string{"ws/AGENTS.md": "@b.md @b.md"}, "AGENTS.md b.md:missing"},
		"a circle":           {map[string]string{"ws/AGENTS.md": "@b.md", "ws/b.md": "@AGENTS.md @b.md @./b.md"}, "AGENTS.md b.md"},
		"too deep":           {chain, "AGENTS.md 1.md 2.md 3.md 4.md 5.md 6.md:depth"},
		"absolute":           {map[string]string{"ws/AGENTS.md": "@/etc/passwd"}, "AGENTS.md /etc/passwd:denied"},
		"above":              {map[string]string{"ws/AGENTS.md": "@../b.md", "b.md": "b"}, "AGENTS.md ../b.md:denied"},
		"above and back":     {map[string]string{"ws/AGENTS.md": "@../ws/b.md", "ws/b.md": "b"}, "AGENTS.md ../ws/b.md:denied"},
		"a link out":         {map[string]string{"ws/AGENTS.md": "@b.md", "ws/b.md": "-> ../b.md", "b.md": "b"}, "AGENTS.md b.md:denied"},
		"a home":             {map[string]string{"ws/AGENTS.md": "@~/b.md", "home/b.md": "b"}, "AGENTS.md ~/b.md:denied"},
		"one's own home":     {map[string]string{"home/.config/belay/AGENTS.md": "@~/notes/b.md @~/../ws/x.md", "home/notes/b.md": "b @c.md", "home/notes/c.md": "c", "ws/x.md": "x"}, "AGENTS.md notes/b.md notes/c.md ~/../ws/x.md:denied"},
		"one's own folder":   {map[string]string{"home/.config/belay/AGENTS.md": "@b.md", "home/.config/belay/b.md": "b", "ws/AGENTS.md": "ws"}, "AGENTS.md b.md AGENTS.md"},
		"a secret":           {map[string]string{"ws/AGENTS.md": "@.env @keys/id_rsa", "ws/.env": "A=b", "ws/keys/id_rsa": "k"}, "AGENTS.md .env:denied keys/id_rsa:denied"},
		"ten megabytes":      {map[string]string{"ws/AGENTS.md": strings.Repeat("x", 10<<20), "ws/CLAUDE.md": "c"}, "CLAUDE.md AGENTS.md:budget"},
		"all too much":       {map[string]string{"ws/AGENTS.md": "@a.md @b.md\n" + strings.Repeat("x", 30<<10), "ws/a.md": strings.Repeat("a", 30<<10), "ws/b.md": strings.Repeat("b", 30<<10)}, "AGENTS.md a.md b.md:budget"},
		"no text":            {map[string]string{"ws/AGENTS.md": "a\x00b", "ws/CLAUDE.md": "\xff\xfe"}, "AGENTS.md:denied CLAUDE.md:denied"},
		"a folder":           {map[string]string{"ws/AGENTS.md/x": "x"}, "AGENTS.md:denied"},
		"a long name":        {map[string]string{"ws/AGENTS.md": "@" + long, "ws/" + long: "x"}, "AGENTS.md " + long[:maxNameLength] + "…:denied"},
		"a thousand imports": {map[string]string{"ws/AGENTS.md": strings.Repeat("@/a.md @/b.md ", 500) + strings.Join(numbered("@n%.md", 50), " ")}, "AGENTS.md /a.md:denied /b.md:denied " + strings.Join(numbered("n%.md:missing", 10), " ")},
	} {
		all, omitted := place(t, c.files).readInstructions()
		var got []string
		for _, i := range all {
			got = append(got, i.Name)
		}
		for _, o := range omitted {
			got = append(got, o.Name+":"+o.Reason)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s", name, s)
		}
	}
}

// numbered are n names with their number in the place of %.
func numbered(name string, n int) (all []string) {
	for i := range n {
		all = append(all, strings.ReplaceAll(name, "%", string(rune('A'+i/26))+string(rune('a'+i%26))))
	}
	return all
}

// Files lead to the instructions of the folders they lie in.
func TestInstructionsAbove(t *testing.T) {
	ws := place(t, map[string]string{"ws/AGENTS.md": "r", "ws/a/CLAUDE.md": "a", "ws/a/b/AGENTS.md": "b", "ws/a/b/c/x.go": "x", "ws/d/AGENTS.md/x": "a folder", "AGENTS.md": "outside"}).Workspace
	for files, want := range map[string]string{
		"x.go": "AGENTS.md", "a/b/c/x.go": "AGENTS.md a/CLAUDE.md a/b/AGENTS.md", "a/x.go a/y.go": "AGENTS.md a/CLAUDE.md", "d/x.go": "AGENTS.md", "../x.go": "", "no/such/folder/x.go": "AGENTS.md",
		filepath.Join(ws, "a/x.go"): "AGENTS.md a/CLAUDE.md", "/etc/passwd": "",
	} {
		if got := InstructionsAbove(ws, strings.Split(files, " ")); strings.Join(got, " ") != want {
			t.Errorf("%q: %q", files, got)
		}
	}
	all, omitted := ReadInstructions(ws, []string{"a/CLAUDE.md", "gone.md", "../AGENTS.md"})
	if len(all) != 1 || all[0].Text != "a" || !slices.Equal(omitted, []Omission{{"../AGENTS.md", "denied"}}) {
		t.Errorf("%v, %v", all, omitted)
	}
}
