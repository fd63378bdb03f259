package git

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
)

// setting is one value of git's configuration. The key's section and name are
// in lower case, as git lists them; the part between them is as it is written.
type setting struct{ key, value string }

// parts are the section, what is between, and the name of a key.
func (s setting) parts() (section, sub, name string) {
	section, rest, _ := strings.Cut(s.key, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		return strings.ToLower(section), rest[:i], strings.ToLower(rest[i+1:])
	}
	return strings.ToLower(section), "", strings.ToLower(rest)
}

// plain are the keys without a part between that make git neither run nor load
// anything. What isn't listed here or in harmless does.
var plain = map[string][]string{
	"user":       {"name", "email", "useconfigonly"},
	"author":     {"name", "email"},
	"committer":  {"name", "email"},
	"core":       {"bare", "repositoryformatversion", "filemode", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks", "autocrlf", "eol", "safecrlf", "whitespace", "quotepath", "abbrev", "compression", "loosecompression", "bigfilethreshold", "untrackedcache", "preloadindex", "trustctime", "checkstat", "sharedrepository", "commentchar", "sparsecheckout", "sparsecheckoutcone", "multipackindex", "commitgraph", "packedgitlimit", "packedgitwindowsize", "deltabasecachelimit", "splitindex", "hidedotfiles", "longpaths", "fscache"},
	"extensions": {"noop", "objectformat", "compatobjectformat", "partialclone", "preciousobjects", "refstorage", "relativeworktrees", "worktreeconfig"},
	"init":       {"defaultbranch"},
	"branch":     {"autosetupmerge", "autosetuprebase", "sort"},
	"checkout":   {"defaultremote", "guess", "workers"},
	"clone":      {"defaultremotename"},
	"commit":     {"cleanup", "status", "verbose"},
	"diff":       {"algorithm", "autorefreshindex", "colormoved", "context", "indentheuristic", "interhunkcontext", "mnemonicprefix", "noprefix", "renamelimit", "renames", "submodule", "suppressblankempty", "ignoresubmodules", "dstprefix", "srcprefix"},
	"fetch":      {"parallel", "prune", "prunetags", "recursesubmodules", "writecommitgraph", "output"},
	"gc":         {"auto", "autodetach", "autopacklimit", "pruneexpire", "reflogexpire", "reflogexpireunreachable", "worktreepruneexpire", "writecommitgraph"},
	"lfs":        {"repositoryformatversion"},
	"log":        {"abbrevcommit", "date", "decorate", "follow"},
	"merge":      {"conflictstyle", "ff", "log", "renamelimit", "renames", "stat", "verbosity", "autostash"},
	"pull":       {"ff", "rebase", "octopus", "twohead"},
	"push":       {"autosetupremote", "default", "followtags", "recursesubmodules"},
	"rebase":     {"autosquash", "autostash", "stat", "updaterefs"},
	"receive":    {"denycurrentbranch", "denydeletes", "denynonfastforwards", "fsckobjects"},
	"remote":     {"pushdefault"},
	"rerere":     {"autoupdate", "enabled"},
	"submodule":  {"active", "fetchjobs", "recurse"},
	"tag":        {"sort"},
	"transfer":   {"fsckobjects"},
}

// whole are sections that have nothing else.
var whole = []string{"advice", "color", "column", "index", "status"}

// between are the keys with a part between.
var between = map[string][]string{
	"branch":    {"merge", "rebase", "description"},
	"remote":    {"fetch", "push", "tagopt", "prune", "prunetags", "mirror", "skipdefaultupdate", "skipfetchall", "promisor", "partialclonefilter"},
	"submodule": {"active", "path", "branch", "ignore", "fetchrecursesubmodules", "shallow"},
	"lfs":       {"access", "locksverify"},
	"color":     {"*"},
}

// harmless reports whether a setting makes git neither run nor load anything.
// inside reports whether a path, relative to the git folder that the setting is
// for, leads into the workspace.
func harmless(s setting, inside func(string) bool) bool {
	section, sub, name := s.parts()
	if sub == "" {
		switch {
		case section == "core" && name == "worktree":
			return inside(s.value)
		case section == "core" && name == "fsmonitor": // a boolean is git's own monitor, anything else a program
			return slices.Contains([]string{"", "0", "1", "true", "false", "yes", "no", "on", "off"}, strings.ToLower(s.value))
		case section == "commit" && name == "gpgsign", section == "tag" && name == "gpgsign":
			return strings.EqualFold(s.value, "false")
		}
		return slices.Contains(whole, section) || slices.Contains(plain[section], name)
	}
	switch {
	case section == "remote" && (name == "url" || name == "pushurl"), section == "submodule" && name == "url",
		section == "branch" && (name == "remote" || name == "pushremote"):
		return address(s.value)
	case section == "submodule" && name == "update":
		return slices.Contains([]string{"checkout", "rebase", "merge", "none"}, s.value)
	}
	return slices.Contains(between[section], name) || slices.Contains(between[section], "*")
}

var (
	helper = match.Lazy(`^[A-Za-z0-9+.-]*::`)
	scheme = match.Lazy(`^([A-Za-z0-9+.-]+)://(.*)$`)
)

// address reports whether a remote's address is reached by git's own means: no
// helper program is named by it, and nothing in it is taken for an option.
func address(url string) bool {
	if strings.HasPrefix(url, "-") || helper.Match(url) {
		return false
	}
	m := scheme.Get().FindStringSubmatch(url)
	if m == nil {
		return true // a path, or host:path
	}
	return slices.Contains([]string{"https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"}, strings.ToLower(m[1])) && !strings.HasPrefix(m[2], "-") && !strings.Contains(m[2], "@-")
}

// neutral is what a setting is set to so that a call of the runtime doesn't
// obey it; false: it needn't be, or can't be and means nothing to those calls.
func neutral(s setting) (setting, bool) {
	if harmless(s, func(string) bool { return false }) {
		return s, false
	}
	section, sub, name := s.parts()
	switch {
	case section == "include", section == "includeif", section == "url", section == "alias", section == "safe",
		section == "core" && name == "worktree", section == "remote" && (name == "url" || name == "pushurl"),
		slices.ContainsFunc(always, func(a setting) bool { return strings.EqualFold(a.key, s.key) }):
		return s, false // includes are read as well; the others name nothing that such a call starts
	case section == "filter" && name == "required", section == "hook" && name == "enabled":
		return setting{s.key, "false"}, true
	case section == "protocol" && sub != "":
		return setting{s.key, "never"}, true
	case section == "submodule" && name == "update":
		return setting{s.key, "none"}, true
	}
	return setting{s.key, ""}, true
}

// included is the file that a setting includes, if it includes one. Whether its
// condition is met doesn't matter.
func included(s setting, from, home string) (string, bool) {
	section, _, name := s.parts()
	if name != "path" || section != "include" && section != "includeif" {
		return "", false
	}
	switch {
	case strings.HasPrefix(s.value, "~/"):
		return filepath.Join(home, s.value[2:]), true
	case filepath.IsAbs(s.value):
		return filepath.Clean(s.value), true
	}
	return filepath.Join(filepath.Dir(from), s.value), true
}
