package convert

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/policy"
)

// files is a pattern of the source as globs over paths: those inside a workspace
// are relative to it, others are absolute.
type files struct {
	globs  []string
	where  string // inside: a glob could fit what lies elsewhere, too
	top    bool   // only names beside nothing else: a glob without a slash means any folder
	inside string // a regular expression over absolute paths, for files of a workspace; empty: the globs find them
}

// gitignored turns a pattern as in .gitignore into globs. An allow gets no more
// than it says, others get more where a glob can't say it.
func (d claude) gitignored(p string, allow bool) (f files, why string) {
	switch {
	case strings.ContainsRune(p, 0) || strings.HasPrefix(p, "!"):
		return f, "its pattern is none that a rule can hold"
	case allow && strings.ContainsAny(p, `[]{}\`):
		return f, "its pattern has more than * and ?"
	}
	if !allow {
		p = plainGlob(p)
	}
	anchored := ""
	switch {
	case strings.HasPrefix(p, "//"):
		anchored = path.Join("/", strings.TrimLeft(p, "/"))
	case p == "~" || strings.HasPrefix(p, "~/"):
		if d.o.Home == "" {
			return f, "the meaning of ~ is unknown"
		}
		anchored = path.Join(d.o.Home, strings.TrimPrefix(p, "~"))
	case strings.HasPrefix(p, "/") && d.o.OfPerson:
		if d.o.Home == "" {
			return f, "the place of the settings is unknown"
		}
		anchored = path.Join(d.o.Home, ".claude", p)
	}
	if anchored != "" {
		if strings.HasSuffix(p, "/") {
			anchored += "/**"
		}
		return absolute(anchored, allow), ""
	}
	f.top = strings.HasPrefix(p, "/") || strings.HasPrefix(p, "./")
	p = strings.TrimLeft(strings.TrimPrefix(p, "./"), "/")
	bare := strings.TrimSuffix(p, "/")
	if bare == "" || bare == "." || strings.Contains("/"+bare+"/", "/../") {
		return f, "its pattern leads out of the workspace"
	}
	f.top = f.top && !strings.Contains(bare, "/")
	if f.globs = []string{p}; allow {
		f.where = "inside"
	}
	if !allow && !strings.HasSuffix(p, "**") {
		f.top, f.globs = false, []string{bare}
		if strings.Contains(bare, "/") {
			f.globs = append(f.globs, bare+"/**")
		} else {
			f.globs = append(f.globs, "**/"+bare+"/**")
		}
	}
	return f, ""
}

// plainGlob replaces what globs here don't have by what finds more.
func plainGlob(p string) string {
	p = regexp.MustCompile(`\\.`).ReplaceAllString(p, "?")
	p = regexp.MustCompile(`\[[^\]/]*\]`).ReplaceAllString(p, "?")
	return regexp.MustCompile(`\{[^}/]*\}`).ReplaceAllString(p, "*")
}

// absolute is files by an absolute pattern. A deny also finds those that lie in
// a workspace, and paths that climb out of it.
func absolute(p string, allow bool) files {
	if allow {
		return files{globs: []string{p}}
	}
	f := files{globs: []string{p}}
	if !strings.HasSuffix(p, "/**") {
		f.globs = append(f.globs, p+"/**")
	}
	f.globs = append(f.globs, "../**")
	// One slash may be written as several, or with points between.
	const slash = `(?:/\.?)*/`
	var b strings.Builder
	b.WriteString(`(?is)^`)
	parts := strings.Split(strings.Trim(p, "/"), "/")
	for _, part := range parts {
		if part == "**" {
			b.WriteString(`(?:/.*)?`)
			continue
		}
		name := regexp.QuoteMeta(part)
		name = strings.ReplaceAll(strings.ReplaceAll(name, `\*`, `[^/]*`), `\?`, `[^/]`)
		b.WriteString(slash + name)
	}
	b.WriteString(`(?:/.*)?$`)
	f.inside = b.String()
	return f
}

const topOnly = `paths.all(p, p.matches(r'^(\./)*[^/]+$'))`

// over carries a rule over files. commands reports whether it is about commands
// that name them, too.
func (d *draft) over(s *source, tools []string, access string, f files, commands bool) {
	if s.says != policy.Allow && commands {
		tools = append(slices.Clone(tools), "exec")
	}
	m := policy.Match{Tool: tools, Path: &policy.PathMatch{Match: f.globs, Where: f.where, Access: access}}
	if f.top {
		m.If = topOnly
	}
	if why := unfit(m); why != "" {
		d.drop(s, why)
		return
	}
	var match []policy.Example
	if p := samplePath(f.globs[0]); policy.Glob(f.globs[0], p) {
		match = []policy.Example{{Path: p}}
	}
	d.add(s, m, match, nil)
	if f.inside != "" {
		if !d.within(s, m, f.inside, false) {
			return
		}
		s.why = append(s.why, "a path that climbs out of the workspace with .. counts as one of them")
	}
	d.done(s)
}

// within carries a rule over files of a workspace that a regular expression over absolute
// paths finds, unless they only need to be found. false says that it was named as not
// carried over.
func (d *draft) within(s *source, m policy.Match, re string, found bool) bool {
	m.Path = &policy.PathMatch{Where: "inside", Access: m.Path.Access}
	m.If = `paths.exists(p, (workspace + '/' + p).matches(r'` + strings.ReplaceAll(re, "'", `\x27`) + `'))`
	if len(m.If) > 1900 {
		d.drop(s, "its pattern is too long")
		return false
	}
	if !found {
		d.add(s, m, nil, nil)
	}
	return true
}

// samplePath is a path that fits a glob.
func samplePath(glob string) string {
	p := strings.NewReplacer("**", "x", "*", "x", "?", "x").Replace(glob)
	if strings.HasSuffix(p, "/") {
		p += "x"
	}
	return p
}

// path carries a rule over files.
func (d claude) path(s *source, name string, c counterpart, spec string) {
	allow := s.says == policy.Allow
	tools, access := c.tools(s.says), "write"
	switch name {
	case "Read", "Glob", "Grep", "LS":
		access = "read"
		if !allow {
			tools = claudeTools["Read"].tools(policy.Deny)
		}
	case "Edit":
		if allow { // there it is about every tool that edits
			tools = []string{"edit", "write"}
		}
	}
	if len(tools) == 0 {
		d.drop(s, "there is no such tool here")
		return
	}
	f, why := d.gitignored(spec, allow)
	if why != "" {
		d.drop(s, why)
		return
	}
	if access == "read" && s.says == policy.Deny {
		s.why = append(s.why, "a command that names such a file is denied too; what a search of its folder finds isn't")
	}
	d.over(s, tools, access, f, true)
}
