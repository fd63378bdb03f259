package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/secret"
)

// redact has secrets in known forms looked for as the machine's file and the
// user's say. A workspace's file can't say that something stays.
func (in Input) redact(files []file) error {
	var known secret.Known
	for _, f := range files {
		if f.inside {
			continue
		}
		if err := leaveOut(&known, f.Redact); err != nil {
			return err
		}
	}
	in.Secrets.Look(known)
	return nil
}

// leaveOut adds what a file leaves out.
func leaveOut(known *secret.Known, r manifest.Redact) error {
	for _, name := range r.Off {
		if !slices.Contains(secret.Forms(), name) {
			return belay.Errorf(belay.CodeBadConfig, "redact: there is no form %q", name).At(r.Where).WithHint("one of %s", strings.Join(secret.Forms(), ", "))
		}
	}
	known.Off = append(known.Off, r.Off...)
	for _, expr := range r.Keep {
		re, err := regexp.Compile(expr)
		switch {
		case err != nil:
			return belay.Errorf(belay.CodeBadConfig, "redact: keep: %v", err).At(r.Where).WithHint("an expression of RE2, such as ^test-key-")
		case re.MatchString(""):
			return belay.Errorf(belay.CodeBadConfig, "redact: keep: %q matches everything", expr).At(r.Where).WithHint("name the values that stay; off leaves out a whole form")
		}
		known.Keep = append(known.Keep, re)
	}
	return nil
}
