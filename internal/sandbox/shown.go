package sandbox

import (
	"os"

	"github.com/belay-run/belay"
)

// toolchains are what languages and version managers keep in a home. They are
// shown, because without them nothing builds; they can't be written.
var toolchains = []string{
	"go/bin", "go/pkg/mod", "sdk", ".gvm", ".cargo", ".rustup", ".pyenv", ".rbenv", ".nvm", ".fnm", ".volta", ".bun", ".deno", ".asdf", ".sdkman", ".ghcup", ".juliaup",
	".dotnet", ".opam", ".local/bin", ".local/lib", ".local/pipx", ".local/share/mise", ".local/share/uv", ".local/share/pnpm", ".npm-global", ".gitconfig", ".config/git/config", ".config/git/ignore",
}

// secrets are what tool chains keep among the rest.
var secrets = []string{".cargo/credentials", ".cargo/credentials.toml"}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// demanded reports whether a limit that only a group enforces differs from the default.
// Default limits are enforced where possible.
func demanded(l belay.ProcessLimits) bool {
	byDefault := belay.DefaultProcessLimits
	if l.Processes == byDefault.Processes {
		l.Processes = 0
	}
	if l.MemoryShare == byDefault.MemoryShare {
		l.MemoryShare = 0
	}
	return grouped(l)
}

// grouped reports whether there is a limit that a group holds.
func grouped(l belay.ProcessLimits) bool {
	return l.Memory > 0 || l.MemoryShare > 0 || l.Processes > 0 || l.CPUQuota > 0
}
