package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
)

// Seen is what a program had of the files outside of its boundary.
type Seen struct {
	Exists  func(path string) bool // it is there outside
	Private []string               // folders of which it had empty ones, or none
}

// ParseViolation is what a program that failed says a boundary stopped: an operation and
// its target. A program can say anything, so what it says is a reason to ask
// about, never one to allow; and what the boundary allows it didn't stop. It
// wished to write where it was told of a file system that is read-only, or says that
// it can't create or write a file. It wished to read what is there outside, and
// lies in a folder that was kept from it. A file that nobody may read says
// nothing of the boundary.
func ParseViolation(said, workspace, dir string, b belay.Boundary, seen Seen) (op, target string, ok bool) {
	if b.Name == belay.BoundaryFull {
		return "", "", false
	}
	if len(said) > maxSaid {
		said = said[len(said)-maxSaid:]
	}
	if limit, is := toldLimit(said, b.Limits); is {
		return OpLimit, limit, true
	}
	for line := range strings.Lines(said) {
		low := strings.ToLower(line)
		if len(line) > maxLine {
			continue
		}
		f := fileLine{line: strings.TrimSpace(line), low: low, workspace: workspace, dir: dir, b: b, seen: seen}
		if op, target, ok = f.told(); ok {
			return op, target, true
		}
		if target, ok = toldHost(low); ok && b.Network != belay.NetworkFull {
			return OpConnect, target, true
		}
	}
	return "", "", false
}

// toldLimit is the limit that a program says it met, of those that the boundary
// has. The last line that says so counts: it is nearest to the end.
func toldLimit(said string, l belay.ProcessLimits) (limit string, ok bool) {
	has := map[string]bool{
		belay.LimitOpenFiles: l.OpenFiles > 0, belay.LimitFileSize: l.FileSize > 0, belay.LimitDisk: l.Disk > 0,
		belay.LimitMemory: l.Memory > 0, belay.LimitProcesses: l.Processes > 0,
	}
	for line := range strings.Lines(said) {
		if len(line) > maxLine {
			continue
		}
		low := strings.ToLower(line)
		for _, t := range limitTexts {
			if has[t.limit] && strings.Contains(low, t.text) && (t.text != again || saysAny(low, startWords)) {
				limit, ok = t.limit, true
			}
		}
	}
	return limit, ok
}

// limitTexts are the texts of EMFILE, EFBIG, ENOSPC, ENOMEM and, of a process
// that can't be made, EAGAIN, with what interpreters and shells make of them.
var limitTexts = []struct{ text, limit string }{
	{"too many open files", belay.LimitOpenFiles},
	{"file too large", belay.LimitFileSize}, {"file size limit exceeded", belay.LimitFileSize},
	{"no space left on device", belay.LimitDisk},
	{"cannot allocate memory", belay.LimitMemory}, {"memoryerror", belay.LimitMemory}, {"out of memory", belay.LimitMemory},
	{"cannot fork", belay.LimitProcesses}, {"fork: resource temporarily unavailable", belay.LimitProcesses}, {"fork: retry", belay.LimitProcesses},
	{again, belay.LimitProcesses}, {"can't start new thread", belay.LimitProcesses},
}

// again is the text of EAGAIN, which is also what locks, pipes and sockets say: it
// is about processes where the line says that one was to be started.
const again = "resource temporarily unavailable"

var startWords = []string{"fork", "clone", "spawn", "thread", "process", "exec", "blockingioerror"}

func saysAny(line string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(line, w) })
}

const (
	maxSaid = 64 << 10 // bytes of an output that are read for it
	maxLine = 4 << 10  // longer lines are data
)

// Texts of EROFS, of EBUSY, which is what a protected name says that is to be
// replaced, of EACCES and EPERM, and of ENOENT.
var (
	readOnlyTexts = []string{"read-only file system", "erofs"}
	heldTexts     = []string{"device or resource busy", "ebusy"}
	deniedTexts   = []string{"permission denied", "operation not permitted", "eacces", "eperm"}
	missingTexts  = []string{"no such file", "directory nonexistent", "enoent"}
)

// fileLine is a line that may be about a file.
type fileLine struct {
	line, low      string // low in lower case
	workspace, dir string
	b              belay.Boundary
	seen           Seen
}

func (f *fileLine) says(texts []string) bool {
	return saysAny(f.low, texts)
}

func (f *fileLine) told() (op, target string, ok bool) {
	strict, denied, missing := f.says(readOnlyTexts), f.says(deniedTexts), f.says(missingTexts)
	held := f.says(heldTexts) && !strict && !denied
	if !strict && !denied && !missing && !held {
		return "", "", false
	}
	for _, p := range f.paths() {
		op := OpWrite
		if !strict && !held {
			if op = f.hidden(p, denied); op == "" {
				continue
			}
		}
		if held && !(below(p, f.workspace) && obeyed(p, f.workspace)) {
			continue // something else keeps it busy
		}
		if stops(op, p, f.workspace, f.b) {
			return op, p, true
		}
	}
	return "", "", false
}

// message is a line without the program that says it, and where that is in its
// script: "/bin/sh: 1: cannot create /x: …" and "bash: line 1: /x: …" are about
// /x. A word that the error itself follows is the file: "/x: Permission denied",
// "/x: Cannot open: Permission denied".
func message(line string) string {
	speaker, rest, ok := strings.Cut(line, ": ")
	if !ok || strings.ContainsAny(speaker, " \t'\"‘`") {
		return line
	}
	what, after, more := strings.Cut(rest, ": ")
	if more && isNumber(strings.TrimPrefix(what, "line ")) {
		return strings.TrimPrefix(after, speaker+": ")
	}
	low := strings.ToLower(rest)
	if more && strings.HasPrefix(low, "cannot ") && strings.Count(what, " ") == 1 {
		return line
	}
	for _, texts := range [][]string{readOnlyTexts, heldTexts, deniedTexts, missingTexts} {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(low, text) }) {
			return line
		}
	}
	return rest
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// paths are the files that a line names, as absolute paths.
func (f *fileLine) paths() (out []string) {
	for _, p := range pathsIn(message(f.line)) {
		if !path.IsAbs(p) {
			p = path.Join(f.dir, p)
		}
		out = append(out, path.Clean(p))
	}
	return out
}

// hidden is what was meant with a path that the program may not have, or didn't find:
// to write it, in a folder that is there, or to read a file that is there outside and
// that was kept from it. Empty: it is missing there too, or nobody may have it.
func (f *fileLine) hidden(p string, denied bool) string {
	switch {
	case f.says(writeWords) && (denied || f.seen.Exists(path.Dir(p))):
		return OpWrite
	case f.says(writeWords) || !f.seen.Exists(p):
	case !denied || slices.ContainsFunc(f.seen.Private, func(q string) bool { return below(p, q) }):
		return OpRead
	}
	return ""
}

// CoveredSecrets are the files that a program says it may not open, and that are covered
// because they usually hold a secret.
func CoveredSecrets(said, dir string, covered []string) (found []string) {
	if len(covered) == 0 {
		return nil
	}
	for line := range strings.Lines(said[max(0, len(said)-maxSaid):]) {
		f := fileLine{line: strings.TrimSpace(line), low: strings.ToLower(line), dir: dir}
		if len(line) > maxLine || !f.says(deniedTexts) {
			continue
		}
		for _, p := range f.paths() {
			is := slices.ContainsFunc(covered, func(q string) bool { return below(p, q) })
			if is && !slices.Contains(found, p) && len(found) < maxCoveredSaid {
				found = append(found, p)
			}
		}
	}
	return found
}

// maxCoveredSaid is how many covered files are named.
const maxCoveredSaid = 8

// stops reports whether a boundary doesn't allow an operation on a path.
func stops(op, p, workspace string, b belay.Boundary) bool {
	within := func(places []string) bool {
		return slices.ContainsFunc(places, func(q string) bool { return below(p, q) })
	}
	switch {
	case p == "/" || strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/"):
		return false
	case within(b.Write):
		return false
	case op == OpRead:
		return !below(p, workspace) && !within(b.Read)
	case below(p, workspace):
		return b.Name == belay.BoundaryReadOnly || obeyed(p, workspace)
	}
	return true
}

// writeWords are how programs say that they meant to write.
var writeWords = []string{
	"cannot create", "can't create", "could not create", "couldn't create", "unable to create", "failed to create",
	"error creating", "cannot touch", "mkdir", "directory nonexistent", "for writing", "cannot write", "can't write",
	"could not write", "couldn't write", "unable to write", "failed to write", "error writing", "cannot move", "cannot remove",
	"cannot overwrite", "could not lock", "cannot open output file", "couldn't open temporary file", "tee: ",
}

// inQuotes, bare and blamed are how a line names a file: in quotes, as a word that
// begins like a path and ends before a blank or a colon, or as the word that what
// went wrong is said of.
var (
	inQuotes = match.Lazy(`'([^'\n]+)'|"([^"\n]+)"|‘([^’\n]+)’|` + "`([^'`\n]+)['`]")
	bare     = match.Lazy(`(?:^|[\s:(=])(/[^\s:'"‘’]+|\.\.?/[^\s:'"‘’]+)`)
	blamed   = match.Lazy(`(?i)([^\s:'"‘’]+): (?:read-only file system|device or resource busy|permission denied|operation not permitted)`)
)

// pathsIn are the files that a line names, those in quotes first.
func pathsIn(line string) (out []string) {
	for _, m := range inQuotes.Get().FindAllStringSubmatch(line, 8) {
		if p := strings.Join(m[1:], ""); strings.Contains(p, "/") || !strings.ContainsAny(p, " ,") {
			out = append(out, p)
		}
	}
	for _, m := range append(bare.Get().FindAllStringSubmatchIndex(line, 8), blamed.Get().FindAllStringSubmatchIndex(line, 8)...) {
		if more := line[m[3]:]; len(more) > 1 && more[0] == ':' && more[1] >= '0' && more[1] <= '9' {
			continue // a line of a program's source
		}
		out = append(out, strings.TrimRight(line[m[2]:m[3]], ".,;)"))
	}
	return out
}

// hostForms are how programs say that the network isn't there; the first group
// is the host, where they name it.
var hostForms = [...]*match.Pattern{
	match.Lazy(`could not resolve host:? ?'?([a-z0-9.-]+)?`),
	match.Lazy(`getaddrinfo (?:eai_again|enotfound|failed)[: ]*([a-z0-9.-]+)?`),
	match.Lazy(`lookup ([a-z0-9.-]+).*(?:no such host|connection refused|unreachable|server misbehaving|i/o timeout|try again)`),
	match.Lazy(`unable to resolve host address '?([a-z0-9.-]+)`),
	match.Lazy(`temporary failure (?:in name resolution|resolving '?([a-z0-9.-]+))`),
	match.Lazy(`name or service not known`),
	match.Lazy(`network is unreachable`),
	match.Lazy(`enetunreach`),
	match.Lazy(`failed to resolve '([a-z0-9.-]+)'`),
	match.Lazy(`socket: operation not permitted`),
}

// toldHost reads a line about the network.
func toldHost(low string) (host string, ok bool) {
	if strings.Contains(low, "netlink") { // by which the kernel is asked, not a network
		return "", false
	}
	for _, f := range hostForms {
		if m := f.Get().FindStringSubmatch(low); m != nil {
			if len(m) > 1 {
				host = strings.Trim(m[1], ".")
			}
			return host, true
		}
	}
	return "", false
}
