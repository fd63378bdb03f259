package command

import (
	goruntime "runtime"
	"runtime/debug"
)

// versions identifies this build.
type versions struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
}

// BuildVersions returns the versions of the program and of what it is built with.
func BuildVersions() versions {
	v := versions{Version: "development", Go: goruntime.Version(), OS: goruntime.GOOS + "/" + goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
