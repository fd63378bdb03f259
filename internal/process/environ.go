package process

import (
	"os"
	"path/filepath"
	"strings"
)

// SystemPath is the PATH of what the system has installed: no folder that a workspace
// could put a program in.
const SystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Getenv is the value of a variable in an environment, a list of NAME=value. The last one counts, as in a process.
func Getenv(env []string, name string) string {
	value := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// LookPath finds a program on the PATH; empty: there is none of that name. Relative
// entries of the PATH are passed over.
func LookPath(env []string, name string) string {
	for _, dir := range filepath.SplitList(Getenv(env, "PATH")) {
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full
		}
	}
	return ""
}
