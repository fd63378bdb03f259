package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/transfer/bundle"
	"github.com/belay-run/belay/internal/transfer/transcript"
)

type importCmd struct {
	Format string   `enum:"auto,bundle,transcript,claude-code,openclaw" default:"auto" help:"What the files are; auto looks into them. openclaw is pi's format too."`
	Trust  bool     `help:"Accept a bundle whose session can act without a question: with unfinished work, or with tools that run without asking."`
	Files  []string `arg:"" help:"Files that belay export wrote, or transcripts of other agents; - is standard input."`
}

// imported is the outcome of a file, as JSON.
type imported struct {
	File      string          `json:"file"`
	Format    string          `json:"format"`
	Session   belay.SessionID `json:"session"`
	Result    string          `json:"result"`              // imported, or here already
	Workspace string          `json:"workspace,omitempty"` // of a bundle's session
	Facts     int64           `json:"facts,omitempty"`
	Waiting   int             `json:"waiting,omitempty"`
	Missing   int             `json:"missing,omitempty"`
	Expired   int             `json:"expired,omitempty"`  // outputs that expired before, according to facts
	Repaired  int             `json:"repaired,omitempty"` // content that the store lacked
	Resume    string          `json:"resume,omitempty"`   // how its work continues

	Messages int               `json:"messages,omitempty"` // of a transcript
	Turns    int               `json:"turns,omitempty"`
	Left     []transcript.Loss `json:"left,omitempty"` // what could not be carried over
}

func (c *importCmd) run(ctx context.Context, a *app) (int, error) {
	for _, name := range c.Files {
		f, err := a.openImport(name)
		if err != nil {
			return 0, err
		}
		err = c.one(ctx, a, f)
		if err = errors.Join(err, f.close()); err != nil {
			return 0, err
		}
	}
	return belay.ExitOK, nil
}

// one brings in one file.
func (c *importCmd) one(ctx context.Context, a *app, f *importFile) error {
	format, err := f.format(ctx, c.Format)
	if err != nil {
		return err
	}
	var done imported
	if format == "bundle" {
		done, err = c.bundle(ctx, a, f)
		done.Format = format
	} else {
		done, err = c.bring(ctx, a, f, transcript.Format(format))
	}
	if err != nil {
		if e, ok := errors.AsType[*belay.Error](err); ok && !strings.HasPrefix(e.Where, f.name) {
			e.Where = strings.TrimSuffix(f.name+": "+e.Where, ": ")
		}
		return err
	}
	done.File = f.name
	a.printImported(done)
	return nil
}

// bundle restores a session. Everything is checked before the store is touched.
func (c *importCmd) bundle(ctx context.Context, a *app, f *importFile) (imported, error) {
	b, err := bundle.Open(ctx, f.file, f.size, a.secrets())
	if err != nil {
		return imported{}, err
	}
	st, err := a.open(ctx, true)
	if err != nil {
		return imported{}, err
	}
	defer st.Close()
	m := b.Manifest
	done := imported{Session: m.Session, Facts: m.Facts.Count, Waiting: int(m.Inbox.Count), Missing: len(m.Missing), Expired: len(m.Expired), Result: "imported"}
	standing, err := b.Compare(ctx, st)
	if err != nil {
		return done, err
	}
	switch standing {
	case bundle.Same, bundle.Further:
		done.Result = "here already"
		if standing == bundle.Further {
			done.Result = "here already, with more that came after it"
		}
		done.Repaired, err = b.Repair(ctx, st)
		return done, err
	case bundle.Differs:
		return done, belay.Errorf(belay.CodeIDConflict, "this store has a session of this id with another history").At(string(m.Session)).
			WithHint("import it into another store: --store DIR")
	}
	folded, err := engine.Fold(m.Session, b.Facts(ctx), b.Get, a.Now().UTC())
	if err != nil {
		return done, err
	}
	done.Workspace = whereOf(m.Session, folded)
	lanes, rests := map[belay.StreamID]store.Lane{}, m.Inbox.Count == 0
	for s, v := range folded {
		lanes[s] = v.Lane
		rests = rests && !v.Lane.Runnable && v.Lane.Wake.IsZero()
	}
	if !rests {
		done.Resume = "belay sessions resume " + string(m.Session) + a.StoreFlag
	}
	if why := importRisks(folded, rests); len(why) > 0 && !c.Trust {
		return done, belay.Errorf(belay.CodeUntrusted, "the session %s. What was allowed there would count here", strings.Join(why, ", and ")).
			WithHint("if you know who made the file: belay import --trust FILE")
	}
	return done, b.Restore(ctx, restoring{st, a.Point}, lanes)
}

// restoring is a store that reports its steps, for crash tests.
type restoring struct {
	store.Store
	point func(string)
}

func (r restoring) at(kind string) {
	if r.point != nil {
		r.point(kind)
	}
}

// Writer keeps content.
func (r restoring) Writer(ctx context.Context, media string) (store.BlobWriter, error) {
	r.at("import/content")
	return r.Store.Writer(ctx, media)
}

// Restore makes a session.
func (r restoring) Restore(ctx context.Context, s store.Restoration) error {
	keep := s.Keep
	s.Keep = func(ctx context.Context) error {
		err := keep(ctx)
		r.at("import/kept")
		return err
	}
	r.at("import/before")
	err := r.Store.Restore(ctx, s)
	r.at("import/after")
	return err
}

// importRisks are the reasons to ask a person before a session from outside is
// kept: what it would do here without asking again.
func importRisks(folded map[belay.StreamID]engine.Folded, rests bool) (why []string) {
	if !rests {
		why = append(why, "has work that hasn't ended")
	}
	tools := map[string]bool{}
	for _, stream := range slices.Sorted(maps.Keys(folded)) {
		switch d := folded[stream].Decider.(type) {
		case *session.Decider:
			s := d.State()
			switch s.Settings.Mode {
			case "", belay.ModeDefault, belay.ModePlan, belay.ModeNever, belay.ModeUntrusted:
			default:
				why = append(why, "runs in mode "+string(s.Settings.Mode))
			}
			if s.Worktree != nil {
				why = append(why, "works in a worktree of "+s.Worktree.Repository)
			}
			for _, name := range s.Settings.Allow {
				tools[name] = true
			}
			granted(tools, s.Grants)
		case *thread.Decider:
			granted(tools, d.State().Grants)
		}
	}
	if len(tools) > 0 {
		why = append(why, "may use "+strings.Join(slices.Sorted(maps.Keys(tools)), ", ")+" without asking")
	}
	return why
}

func granted(tools map[string]bool, grants []policy.Grant) {
	for _, g := range grants {
		tools[g.Tool] = true
	}
}

// whereOf is the workspace of a folded session.
func whereOf(id belay.SessionID, folded map[belay.StreamID]engine.Folded) string {
	if d, ok := folded[id.Stream()].Decider.(*session.Decider); ok {
		return d.State().Workspace
	}
	return ""
}

func (a *app) printImported(i imported) {
	if a.JSON {
		a.PrintJSON(i)
		return
	}
	fmt.Fprintf(a.Out, "%s: %s\n", i.Session, i.Result)
	if i.Result == "imported" && i.Facts > 0 {
		fmt.Fprintf(a.Err, "%s, every hash follows from the one before; its workspace is %s\n", term.Plural(int(i.Facts), "fact"), term.Line(i.Workspace))
	}
	if i.Waiting > 0 {
		fmt.Fprintf(a.Err, "%s not handled yet\n", term.Plural(i.Waiting, "command"))
	}
	if i.Repaired > 0 {
		fmt.Fprintf(a.Err, "%s that the store lacked came back\n", term.Plural(i.Repaired, "content"))
	}
	if i.Expired > 0 {
		fmt.Fprintf(a.Err, "%s had expired and was not in the bundle\n", term.Plural(i.Expired, "output"))
	}
	if i.Missing > 0 {
		fmt.Fprintf(a.Err, "%s named by facts was not in the bundle\n", term.Plural(i.Missing, "content"))
	}
	if i.Format != "bundle" {
		fmt.Fprintf(a.Err, "%s, %s, from %s\n", term.Plural(i.Turns, "turn"), term.Plural(i.Messages, "message"), i.Format)
		a.printLeft(i.Left)
		fmt.Fprintf(a.Err, "give it something to do: %s\n", i.Resume)
		return
	}
	if i.Resume != "" {
		fmt.Fprintf(a.Err, "its work hasn't ended; continue with: %s\n", i.Resume)
	}
}

// importFile is a file that can be read more than once.
type importFile struct {
	name string
	file *os.File
	size int64
	temp bool
}

// openImport opens a file; standard input is put into a file first, because
// everything is read to its end before anything is kept.
func (a *app) openImport(name string) (*importFile, error) {
	if name == "-" {
		return spool(&a.Env)
	}
	f, err := os.Open(a.environment().Abs(name))
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%s", readfile.Reason(err)).At(name).WithHint("belay import FILE, a file that you can read")
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = belay.Errorf(belay.CodeUsage, "it is no regular file").At(name).WithHint("belay import - <FILE")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &importFile{name: name, file: f, size: info.Size()}, nil
}

func spool(e *term.Env) (*importFile, error) {
	if e.In == nil || e.IsTerminal(e.In) {
		return nil, belay.Errorf(belay.CodeUsage, "nothing is there to read").At("standard input").WithHint("belay import FILE")
	}
	t, err := os.CreateTemp("", "belay-import-")
	if err != nil {
		return nil, err
	}
	f := &importFile{name: "standard input", file: t, temp: true}
	if f.size, err = io.Copy(t, e.In); err != nil {
		return nil, errors.Join(belay.Errorf(belay.CodeUsage, "it can't be read: %s", readfile.Reason(err)).At("standard input").WithHint("belay import FILE reads a file"), f.close())
	}
	return f, nil
}

func (f *importFile) close() error {
	err := f.file.Close()
	if f.temp {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return err
}

// format is the file's format, from the flag or from its first lines.
func (f *importFile) format(ctx context.Context, told string) (string, error) {
	start := make([]byte, 512)
	n, err := f.file.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return "", belay.Errorf(belay.CodeUsage, "it can't be read: %s", readfile.Reason(err)).At(f.name).WithHint("name a file that you can read")
	}
	start = start[:n]
	if len(start) > 2 && start[0] == 0x1f && start[1] == 0x8b || len(start) > 4 && string(start[:4]) == "\x28\xb5\x2f\xfd" {
		return "", belay.Errorf(belay.CodeUsage, "it is compressed").At(f.name).WithHint("unpack it first: zcat FILE | belay import -")
	}
	if told != "auto" {
		return told, nil
	}
	if bundle.Is(start) {
		return "bundle", nil
	}
	if found := transcript.Detect(ctx, f.file, f.size); found != "" {
		return string(found), nil
	}
	return "", belay.Errorf(belay.CodeUsage, "it is no file that can be imported").At(f.name).
		WithHint("bundles and transcripts can: belay import --help; --format says what a file is that isn't known by its beginning")
}
