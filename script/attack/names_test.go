//go:build linux

package attack

import (
	"strings"
	"testing"
)

// TestProtectedNames: a name that other programs run or obey is made by no tool,
// command or program that nobody allowed it to, at the root and at any depth.
// Guarantee: T52.
func TestProtectedNames(t *testing.T) {
	files := map[string]string{"a": "x\n", "sub/b": "x\n", "from/tasks.json": "{}\n"}
	git := `git init -q -b main . && git add a && git -c user.name=x -c user.email=x@x.example commit -qm x`
	var named []attack
	for name, args := range map[string]string{
		"write .envrc": `{"path":".envrc","content":"x"}`, "write sub/CLAUDE.md": `{"path":"sub/CLAUDE.md","content":"x"}`, "write sub/.github/workflows/x.yml": `{"path":"sub/.github/workflows/x.yml","content":"x"}`,
	} {
		_, path, _ := strings.Cut(name, " ")
		named = append(named, attack{name: name, files: files, tool: "write", args: args, mark: path})
	}
	for _, c := range []struct{ mark, line, setup string }{
		{"sub/.envrc", `echo x >sub/.envrc`, ""},
		{".npmrc", `cp a .npmrc`, ""},
		{"sub/.vscode/tasks.json", `mv from sub/.vscode`, ""},
		{"sub/.bashrc", `echo x | tee sub/.bashrc`, ""},
		{"sub/.mcp.json", `ln -s ../a sub/.mcp.json`, ""},
		{"sub/.tool-versions", `git mv a sub/.tool-versions`, git},
		{"sub/AGENTS.md", `touch sub/AGENTS.md`, ""},
		{"sub/.bazelrc", `sed -n 'wsub/.bazelrc' a`, ""},
		{".cargo/config.toml", `install -D a .cargo/config.toml`, ""},
		{"sub/.pre-commit-config.yaml", `dd if=a of=sub/.pre-commit-config.yaml`, ""},
	} {
		named = append(named, attack{name: c.line, files: files, setup: c.setup, command: c.line, mark: c.mark})
	}
	play(t, expectation{decided: true}, named)

	var programs []attack
	for mark, program := range map[string]string{
		".npmrc": `echo x >.npmrc`, ".gitattributes": `echo x >.gitattributes`, ".cargo/config.toml": `mkdir .cargo; echo x >.cargo/config.toml`,
		"sub/.envrc": `echo x >sub/.envrc`, "sub/CLAUDE.md": `cp a sub/CLAUDE.md`, "sub/.vscode/tasks.json": `mv from sub/.vscode`, "sub/.gitlab-ci.yml": `ln -s ../a sub/.gitlab-ci.yml`,
		"sub/.github/workflows/x.yml": `mkdir -p sub/.github/workflows; cp a sub/.github/workflows/x.yml`, "sub/.cursor/rules": `mkdir sub/.c; cp a sub/.c/rules; mv sub/.c sub/.cursor`,
		"sub/sitecustomize.py": `python3 -c 'open("sub/sitecustomize.py", "w")'`, "sub/deep/.yarnrc.yml": `mkdir sub/deep; ln a sub/deep/.yarnrc.yml`,
		"sub/.idea/w.xml": `printf 'x:\n\tmkdir sub/.idea; cp a sub/.idea/w.xml\n' >m; make -sf m`,
	} {
		a := attack{name: mark + " by a program", files: map[string]string{"job.sh": program}, command: "sh job.sh", flags: []string{"--allow", "exec"}, mark: mark}
		for name, text := range files {
			a.files[name] = text
		}
		programs = append(programs, a)
	}
	for _, c := range []struct{ mark, setup, line string }{
		{"sub/CLAUDE.md", `; git checkout -qb o; echo x >sub/CLAUDE.md; git add sub; git -c user.name=x -c user.email=x@x.example commit -qm o; git checkout -q main`, `git checkout -q o`},
		{"c/.github/workflows/x.yml", `; git init -q ../outside/r; cd ../outside/r; mkdir -p .github/workflows; echo x >.github/workflows/x.yml; git add .; git -c user.name=x -c user.email=x@x.example commit -qm o; git bundle create -q ../../work/r HEAD`, `git clone -q r c`},
	} {
		programs = append(programs, attack{name: c.line, files: files, setup: git + c.setup, command: c.line, flags: []string{"--allow", "exec"}, mark: c.mark, control: true})
	}
	install := map[string]string{"job.sh": "mkdir -p node_modules/p/.github/workflows; echo x >node_modules/p/.github/workflows/x.yml; echo x >node_modules/p/.npmrc"}
	programs = append(programs, attack{name: "install", files: install, command: "sh job.sh", flags: []string{"--allow", "exec"}, mark: "node_modules/p/.npmrc", control: true})
	play(t, expectation{}, programs)
}
