package effect

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// Bounds of what is looked at.
const (
	maxPrograms = 16       // that a fact names; of the others it has a digest
	maxWholly   = 32 << 20 // bytes of a program that is read; a larger one is identified by its file attributes
	maxNamed    = 200      // bytes of a name in a fact
)

// Inspect captures the approval context of the calls that a person is about to be
// asked about, and puts it into the questions. It costs nothing where there is no
// question. A context in which nothing is known is never the same later: the call isn't
// run then.
func (v *performer) Inspect(ctx context.Context, d core.Decider, facts []core.Fact) (func(context.Context) []core.Fact, error) {
	type asked struct {
		at   int
		name string
		args []byte
	}
	var all []asked
	t, ok := d.(*thread.Decider)
	if !ok || t.Rules() == nil {
		return nil, nil
	}
	for i := range facts {
		p, ok := facts[i].Data.(event.PermissionRequested)
		if !ok {
			continue
		}
		c := t.State().CallOf(facts[i].IDs.Call)
		if c == nil {
			continue
		}
		args := []byte(c.Args)
		if c.ArgsRef != nil {
			var err error
			if args, err = v.e.c.Store.Get(ctx, c.ArgsRef.Digest); err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
		}
		p.Stands = &belay.ApprovalContext{}
		facts[i].Data = p
		all = append(all, asked{i, c.Name, args})
	}
	if len(all) == 0 {
		return nil, nil
	}
	rules, facts := t.Rules(), slices.Clone(facts)
	return func(ctx context.Context) []core.Fact {
		for _, a := range all {
			p, _ := facts[a.at].Data.(event.PermissionRequested)
			p.Stands = v.e.stands(ctx, rules, a.name, a.args)
			facts[a.at].Data = p
		}
		return facts
	}, nil
}

// stands returns the approval context of a call, besides its arguments and its
// boundary: its working folder, and for tools that start programs their
// environment and the identity of the program files.
func (e *Performers) stands(ctx context.Context, r *thread.Rules, name string, args []byte) *belay.ApprovalContext {
	s := &belay.ApprovalContext{}
	s.Folder, s.FolderID = folderOf(r.Workspace)
	t, ok := e.tools(ctx, r).Get(name)
	if !ok {
		return s
	}
	starter, ok := t.(tool.ProgramLister)
	if !ok {
		return s
	}
	root, err := e.root(ctx, r.Workspace)
	if err != nil {
		return s
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	var names []string
	for _, c := range policy.CommandsOf(t.Spec(), args, r.Place()) {
		if !strings.HasPrefix(c.Name, "(") && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	start, err := starter.Starts(ctx, tool.Call{Args: args, Dir: r.Workspace, Root: root, Shell: r.Settings.Shell}, names)
	if err != nil { // it would fail; should it not by then, it is another call
		return s
	}
	s.Folder, s.FolderID = folderOf(start.Dir)
	s.Env = e.environment(start.Env)
	s.Programs, s.More = e.programs(start.Programs)
	return s
}

// folderOf is a folder without links, and what tells it from another one that
// takes its name.
func folderOf(dir string) (real, id string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", ""
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", ""
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id = fmt.Sprintf("inode %d", st.Ino)
	}
	return event.CutText(real, maxNamed), id
}

// environment returns a keyed digest of variables, so that values can't be
// guessed without the engine's key; without a key only the names count. Names of
// terminals and the working folder, which is looked at itself, are left out.
func (e *Performers) environment(env []string) belay.Digest {
	mac := hmac.New(sha256.New, e.c.ArgsKey)
	for _, kv := range slices.Sorted(slices.Values(env)) {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PWD" || name == "TERM" {
			continue
		}
		if len(e.c.ArgsKey) == 0 {
			value = ""
		}
		fmt.Fprintf(mac, "%d %s=%d %s\n", len(name), name, len(value), value)
	}
	return belay.DigestOf(mac.Sum(nil))
}

// programs are programs as their names lead to files now.
func (e *Performers) programs(found []tool.FoundProgram) (seen []belay.ProgramSeen, more belay.Digest) {
	var rest strings.Builder
	for _, f := range found {
		p := belay.ProgramSeen{Name: f.Name}
		if real, err := filepath.EvalSymlinks(f.Path); f.Path != "" && err == nil {
			p.Path, p.Digest = real, contentOf(real)
		}
		if len(seen) == maxPrograms {
			fmt.Fprintf(&rest, "%q %q %s\n", p.Name, p.Path, p.Digest)
			continue
		}
		p.Name, p.Path = event.CutText(e.c.Secrets.String(p.Name), maxNamed), event.CutText(p.Path, maxNamed)
		seen = append(seen, p)
	}
	if rest.Len() > 0 {
		more = belay.DigestOf([]byte(rest.String()))
	}
	return seen, more
}

// contentOf is the digest of a program; of one that is too large to be read each
// time, of what the file system says of it. Nothing is what can't be read at all.
func contentOf(path string) belay.Digest {
	f, info, err := files.Open(path)
	if err != nil {
		return whichFile(path)
	}
	defer f.Close()
	if info.Size() > maxWholly {
		return whichFile(path)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxWholly+1)); err != nil {
		return whichFile(path)
	}
	return belay.Digest(fmt.Sprintf("sha256:%x", h.Sum(nil)))
}

// whichFile tells a file from others by what is known without reading it.
func whichFile(path string) belay.Digest {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	id := fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id += fmt.Sprintf(" %d", st.Ino)
	}
	return belay.DigestOf([]byte(id))
}

// contextChanged is why a call isn't run that a person allowed: it would be another
// one than they were asked about. What is exchanged after this look only a
// boundary can keep.
func (e *Performers) contextChanged(ctx context.Context, r *thread.Rules, eff core.RunTool, args []byte) error {
	if eff.Stands == nil {
		return nil
	}
	was, is := eff.Stands, e.stands(ctx, r, eff.Name, args)
	if was.Same(is) {
		return nil
	}
	code, what := thread.CodeProgramChanged, "a program that it starts is another one"
	switch {
	case was.Folder != is.Folder || was.FolderID != is.FolderID:
		code, what = thread.CodeFolderChanged, "the folder that it works in is another one, "+orNone(is.Folder)
	case was.Env != is.Env:
		code, what = thread.CodeEnvironmentChanged, "its programs would get other variables"
	}
	for i, p := range is.Programs {
		if code == thread.CodeProgramChanged && (i >= len(was.Programs) || was.Programs[i] != p) {
			what = "the program " + p.Name + " is another one, " + orNone(p.Path)
			break
		}
	}
	return tool.Failf(tool.Conflict, code, "%s was not run: %s now than when it was allowed", eff.Name, what)
}

func orNone(path string) string {
	if path == "" {
		return "none"
	}
	return path
}
