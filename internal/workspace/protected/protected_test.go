package protected

import (
	"strings"
	"testing"
)

// Guarantee: G50.
func TestProtectedNamesAreFoundHoweverTheyAreSpelled(t *testing.T) {
	for _, p := range []string{
		".envrc", "sub/.envrc", "./.envrc", "/.envrc", "/home/u/w/.ENVRC", ".claude/settings.json", ".claude", ".Claude//settings.json", ".vscode/tasks.json", ".vscode./tasks.json",
		".cargo/config.toml", "crates/a/.cargo/config", ".yarnrc.yml", ".mvn/jvm.config", ".mvn/extensions.xml", "tools/bazel", "a/tools//bazel", ".pnpmfile.cjs", ".npmrc",
		".git", "sub/.git", ".git/", ".git/hooks", ".git/hooks/pre-commit", ".git/config", ".git/config.worktree", ".git/modules/m/hooks/x", ".git/worktrees/w/config", ".git/info/attributes",
		"AGENTS.md", "docs/claude.md", "GEMINI.MD", ".mcp.json", ".cursor/mcp.json", ".belay", ".belay/policy.yaml", "a/.Belay/x", ".g\u200cit/config", ".g\u0131t/config", "x.code-workspace",
		".github/workflows/ci.yml", "sub/.GitHub/Workflows/x.yaml", ".gitlab-ci.yml", "a/.gitattributes", ".gitmodules", "x/sitecustomize.py", ".bashrc", "a/b/.tool-versions", ".bazelrc", ".idea/x.iml", "pkg/AGENTS.md", "a/.codex/config.toml", ".gemini/settings.json",
		".github/copilot-instructions.md", ".pre-commit-config.yaml", "lefthook.yaml",
		".jj/repo/config.toml", "lefthook-local.yml", ".helix/languages.toml", ".Renviron", ".pnp.cjs", "rust-toolchain.toml", "gradle/wrapper/gradle-wrapper.properties", "mise.local.toml", "a/.mise.ci.toml", ".forgejo/workflows/x.yml",
		"Jenkinsfile.release", "cloudbuild.yaml", ".gitlab-ci/build.yml", ".idx/dev.nix", ".github/CODEOWNERS", "docs/CODEOWNERS", "WARP.md", ".clinerules-code", ".openhands/microagents/x.md", "pkg/Directory.Build.targets", "x-gdb.py", "jupyter_server_config.py",
	} {
		e, ok := Of(p)
		if !ok || e.Why == "" || e.Name == "" {
			t.Errorf("%q isn't protected: %+v", p, e)
		}
	}
	for _, p := range []string{
		"", ".", "/", "README.md", ".gitignore", ".github/dependabot.yml", "conftest.py", ".git/description", ".git/index", "git/config", "hooks/x", "envrc", "tools/bazel.md", "cargo/config.toml",
		".cargo/registry", "claude.mdx", "my-agents.md", ".belayrc", "a.vscode", ".yarn/cache/x", "src/config", "toolsbazel", "tools", "code-workspace",
		"lefthook_test.go", "mise.md", "rules", "conventions.txt", "drone.yml.md", "gradle/libs.versions.toml", "buildspec", "my.bazel", "jupyter_notes.md", ".github/ISSUE_TEMPLATE/x.md", "Dockerfile", "Makefile", "package.json", "go.mod",
	} {
		if e, ok := Of(p); ok {
			t.Errorf("%q is protected by %q", p, e.Name)
		}
	}
}

func TestCoreNamesAreFoundBehindOthers(t *testing.T) {
	for p, want := range map[string]bool{
		".git/hooks/x": true, ".git/config": true, "a/.git": true, ".belay/x": true, ".vscode/.git/config": true, ".claude/.belay/x": true, ".git/a/b/c/hooks/x": true,
		".vscode/tasks.json": false, ".git/info/exclude": false, ".envrc": false, ".gitmodules": false,
	} {
		if Core(p) != want {
			t.Errorf("%s: core is %v", p, !want)
		}
	}
}

// A name that can't be found by itself protects nothing, and one without a kind and a
// source belongs to nobody.
// Guarantee: G50.
func TestEachEntryProtectsItself(t *testing.T) {
	seen, kind := map[string]bool{}, ""
	for i, line := range strings.Split(namesText, "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case strings.HasPrefix(line, "["):
			kind = line
		case kind == "" || len(fields) < 2 || !strings.HasPrefix(fields[0], "https://") && !strings.HasPrefix(fields[0], "http://"):
			t.Errorf("line %d is no source with names, below a kind: %s", i+1, line)
		}
	}
	for _, e := range append(read(namesText), core...) {
		switch p := strings.ReplaceAll(strings.ReplaceAll(e.Name, "**/", ""), "*", "x"); {
		case seen[e.Name], e.Why == "", e.Name != strings.ToLower(e.Name), strings.HasPrefix(e.Name, "/"):
			t.Errorf("%+v: twice, without a reason, not in lower case or absolute", e)
		default:
			seen[e.Name] = true
			if _, ok := Of("some/folder/" + strings.ToUpper(p)); !ok {
				t.Errorf("%s isn't found by its own name", e.Name)
			}
		}
	}
	if len(seen) < 600 {
		t.Errorf("the list has %d names", len(seen))
	}
}

func FuzzOf(f *testing.F) {
	for _, e := range read(namesText) {
		f.Add(e.Name)
	}
	f.Add(strings.Repeat(".git/", 1000) + "x")
	f.Add(".g\xffit/\x00")
	f.Fuzz(func(t *testing.T, p string) {
		_, ok := Of(p)
		if _, below := Of(p + "/x"); ok && !below && fold(p[strings.LastIndexByte(strings.TrimRight(p, "/"), '/')+1:]) != ".git" && fold(strings.TrimRight(p, "/")) != ".git" {
			t.Errorf("%q is protected, and what is below isn't", p)
		}
	})
}
