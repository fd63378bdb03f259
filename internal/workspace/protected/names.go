package protected

import "slices"

// entries are the names, by who runs or obeys them. Source: the documentation of
// the programs, and advisories about agents that were made to write such a file.
var entries = slices.Concat(core, of(
	"git or another version control runs or obeys it",
	".git/info", ".git/modules", ".git/worktrees", ".git/commondir", ".git/gitdir", ".gitmodules", ".gitattributes", ".gitconfig", ".config/git", ".hg/hgrc", ".husky", ".pre-commit-config.yaml", "lefthook.y*", ".lefthook.y*",
), of(
	"a shell or the login runs it",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login",
	".inputrc", ".config/fish", ".config/autostart", ".config/systemd", ".envrc", ".direnv", ".tool-versions", ".mise.toml", "mise.toml", ".config/mise",
), of(
	"an editor runs or obeys it",
	".vscode", "*.code-workspace", ".idea", ".zed", ".fleet", ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".vim", ".config/nvim", ".emacs", ".emacs.d", ".dir-locals.el", ".sublime-project",
	".devcontainer", ".devcontainer.json",
), of(
	"it gives agents instructions, or programs to run",
	".cursor", ".cursorrules", ".claude", ".claude.json", "claude.md", "claude.local.md", "agents.md", "agents.override.md", ".agents", "gemini.md", ".gemini", ".codex", ".openclaw", ".opencode", "opencode.json", "opencode.jsonc",
	".windsurf", ".windsurfrules", ".continue", ".continuerules", ".clinerules", ".cline", ".roo", ".roorules", ".roomodes", ".kilocode", ".kiro", ".junie", ".goosehints", ".goose", ".amazonq", ".augment",
	".trae", ".qwen", "qwen.md", ".crush.json", "crush.json", ".aider.conf.yml", ".github/copilot-instructions.md", ".github/instructions", ".github/chatmodes", ".github/prompts", ".github/agents",
), of(
	"agents and editors start servers from it",
	".mcp.json", "mcp.json", "mcp_config.json", ".mcp",
), of(
	"a package manager runs what it names, or fetches from where it says",
	".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/plugins", ".yarn/releases", ".pnpmfile.cjs", ".pnpmfile.mjs", "bunfig.toml", ".pypirc", "pip.conf", ".pip", ".config/pip", ".bundle/config", ".gemrc", ".condarc", ".composer/config.json",
), of(
	"a build tool runs or obeys it before anything else",
	".cargo/config", ".cargo/config.toml", ".mvn", ".bazelrc", "tools/bazel", ".bazeliskrc", ".bazelversion", ".gradle/init.gradle", ".gradle/init.d", ".gradle/gradle.properties", ".buckconfig", ".config/go",
), of(
	"a server that builds the project runs it, with its keys",
	".github/workflows", ".github/actions", ".gitlab-ci.yml", ".circleci", ".travis.yml", ".buildkite", "azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile",
), of(
	"a program runs or obeys it wherever it is started",
	".gdbinit", ".lldbinit", ".pdbrc", ".irbrc", ".pryrc", ".rprofile", ".ghci", ".psqlrc", ".sqliterc", ".curlrc", ".wgetrc", ".screenrc", ".tmux.conf", ".nanorc", "sitecustomize.py", "usercustomize.py",
), of(
	"keys and the names of trusted machines are kept there",
	".ssh", ".aws", ".gnupg", ".kube", ".docker", ".netrc", ".git-credentials",
))

// lured are names of project code that runs unasked. Agents write them all the
// time, so they count only where untrusted content may have asked for it.
var lured = of("it runs whenever tests or tools of the project are started", "conftest.py", "setup.cfg", "tox.ini", "noxfile.py")

// core are the names that file tools never write.
var core = []Entry{
	{Name: ".belay", Why: "the runtime obeys it"},
	{Name: ".git", Why: "a file of this name sends git elsewhere"},
	{Name: ".git/**/hooks", Why: "git runs it"},
	{Name: ".git/**/config*", Why: "git obeys it, and runs what it names"},
}

func of(why string, names ...string) []Entry {
	out := make([]Entry, len(names))
	for i, n := range names {
		out[i] = Entry{Name: n, Why: why}
	}
	return out
}
