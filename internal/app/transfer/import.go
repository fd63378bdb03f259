package transfer

import (
	"bytes"
	"cmp"
	"context"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/transfer/bundle"
	"github.com/belay-run/belay/internal/transfer/transcript"
	"io"
	"maps"
	"slices"
	"strings"
)

// ImportSession is what import_session takes.
type ImportSession struct {
	Content   input.Base64 `json:"content" jsonschema:"the file: a bundle, or a transcript of this or another agent, as base64"`
	Format    string       `json:"format,omitempty" jsonschema:"auto (default), bundle, transcript, claude-code, openclaw"`
	Name      string       `json:"name,omitempty" jsonschema:"of the file, for a transcript: it is recorded"`
	Workspace string       `json:"workspace,omitempty" jsonschema:"of a transcript: the folder that its session works in; the server's own when it is left out"`
	Trust     bool         `json:"trust,omitempty" jsonschema:"accept a bundle whose session can act without a question: with unfinished work, or with tools that run without asking"`
}

// SessionImported is what an import brought in.
type SessionImported struct {
	app.Result
	Format    string `json:"format"`
	Outcome   string `json:"outcome"`             // imported, or here already
	Workspace string `json:"workspace,omitempty"` // of a bundle's session
	Facts     int64  `json:"facts,omitempty"`
	Waiting   int    `json:"waiting,omitempty"`    // commands that no fact answers yet
	Missing   int    `json:"missing,omitempty"`    // content that the bundle hasn't
	Expired   int    `json:"expired,omitempty"`    // outputs that expired before, according to facts
	Repaired  int    `json:"repaired,omitempty"`   // content that the store lacked
	Open      bool   `json:"unfinished,omitempty"` // its work hasn't ended

	Messages int               `json:"messages,omitempty"` // of a transcript
	Turns    int               `json:"turns,omitempty"`
	Left     []transcript.Loss `json:"left,omitempty"` // what could not be carried over
}

// Source is a file that can be read more than once.
type Source struct {
	Name string
	File io.ReaderAt
	Size int64
}

// Incoming is a file that was checked to its end.
type Incoming struct {
	Format string
	src    Source
	bundle *bundle.Bundle
	conv   *transcript.Conversation
}

// Open reads a file to its end and checks it, before any store is touched. The format
// auto is the one that the file's first lines tell.
func Open(ctx context.Context, src Source, format string, secrets *secret.Scrubber) (in *Incoming, err error) {
	in = &Incoming{src: src}
	if in.Format, err = formatOf(ctx, src, format); err != nil {
		return nil, err
	}
	if in.Format == Bundle {
		in.bundle, err = bundle.Open(ctx, src.File, src.Size, secrets)
	} else {
		in.conv, err = transcript.Open(ctx, src.File, src.Size, transcript.Format(in.Format))
	}
	return in, err
}

func importSession(ctx context.Context, r *app.Call, in *ImportSession) (*SessionImported, error) {
	if !slices.Contains([]string{"", "auto", Bundle, Transcript, "claude-code", "openclaw"}, in.Format) {
		return nil, input.At("format", belay.Errorf(belay.CodeBadCommand, "%q is no format", input.Shown(in.Format)).WithHint("auto, bundle, transcript, claude-code, openclaw"))
	}
	if err := input.Text("name", in.Name, app.MaxTitle); err != nil {
		return nil, err
	}
	name := cmp.Or(in.Name, "import_session")
	from, err := Open(ctx, Source{name, bytes.NewReader(in.Content), int64(len(in.Content))}, cmp.Or(in.Format, "auto"), r.Workspaces.Secrets())
	if err != nil {
		return nil, input.At("content", r.Hinted(err, "send a file that belay export wrote, or a transcript of another agent; format says what it is"))
	}
	if from.Format == Bundle {
		return from.Restore(ctx, r, in.Trust)
	}
	ws, err := r.Workspaces.Workspace(ctx, in.Workspace)
	if err != nil {
		return nil, input.At("workspace", err)
	}
	settings, err := r.Workspaces.Settings(ctx, ws, nil, app.SettingsInput{})
	if err != nil {
		return nil, err
	}
	return from.Begin(ctx, r, ws, settings)
}

// Restore brings a bundle's session into the store. One that can act without a question
// is refused unless it is trusted.
func (in *Incoming) Restore(ctx context.Context, r *app.Call, trust bool) (*SessionImported, error) {
	b, m := in.bundle, in.bundle.Manifest
	done := &SessionImported{Result: app.Result{Status: app.Done, Session: m.Session}, Format: in.Format, Outcome: "imported",
		Facts: m.Facts.Count, Waiting: int(m.Inbox.Count), Missing: len(m.Missing), Expired: len(m.Expired)}
	standing, err := b.Compare(ctx, r.Store)
	if err != nil {
		return nil, err
	}
	switch standing {
	case bundle.Same, bundle.Further:
		done.Outcome, done.Repeated = "here already", true
		if standing == bundle.Further {
			done.Outcome = "here already, with more that came after it"
		}
		if done.Repaired, err = b.Repair(ctx, r.Store); err != nil {
			return nil, err
		}
		return done, r.End(ctx, &done.Result)
	case bundle.Differs:
		err := belay.Errorf(belay.CodeIDConflict, "this store has a session of this id with another history").At(string(m.Session)).
			WithHint("import it into another store: --store DIR")
		return nil, r.Hinted(err, "import it into another store")
	}
	folded, err := engine.Fold(m.Session, b.Facts(ctx), b.Get, r.Now().UTC())
	if err != nil {
		return nil, err
	}
	done.Workspace = whereOf(m.Session, folded)
	if err := mayWork(ctx, r, done.Workspace); err != nil {
		return nil, err
	}
	lanes, rests := map[belay.StreamID]store.Lane{}, m.Inbox.Count == 0
	for s, v := range folded {
		lanes[s] = v.Lane
		rests = rests && !v.Lane.Runnable && v.Lane.Wake.IsZero()
	}
	done.Open = !rests
	if why := risks(folded, rests); len(why) > 0 && !trust {
		err := belay.Errorf(belay.CodeUntrusted, "the session %s. What was allowed there would count here", strings.Join(why, ", and ")).
			WithHint("if you know who made the file: belay import --trust FILE")
		return nil, r.Hinted(err, "if you know who made the file: trust")
	}
	if err := b.Restore(ctx, r.Store, lanes); err != nil {
		return nil, err
	}
	if done.Open {
		r.Wake(ctx, m.Session, 0)
	}
	return done, r.End(ctx, &done.Result)
}

// mayWork refuses a session from outside whose folder is none that the server was given.
func mayWork(ctx context.Context, r *app.Call, workspace string) error {
	if !r.Remote {
		return nil
	}
	_, err := r.Workspaces.Workspace(ctx, workspace)
	return input.At("content", err)
}

// Begin makes a session in a workspace that begins with a transcript.
func (in *Incoming) Begin(ctx context.Context, r *app.Call, workspace string, settings belay.Settings) (*SessionImported, error) {
	id := belay.SessionID(belay.NewID(belay.PrefixSession))
	b := &transcriptImport{r: r, c: in.conv, counts: r.Workspaces.Counts(ctx, workspace, settings), thread: belay.ThreadID(belay.NewID(belay.PrefixThread))}
	if r.Key != "" {
		id, b.thread = belay.SessionID(r.Keyed(belay.PrefixSession)), belay.ThreadID(r.Keyed(belay.PrefixThread))
	}
	if err := b.keep(ctx, in.src); err != nil {
		return nil, err
	}
	create := belay.CreateSession{Workspace: workspace, Title: b.title(), Settings: settings, Thread: b.thread, Begin: &b.begin}
	res, err := r.Send(ctx, id, id.Stream(), create)
	if res, err = app.With(res, err, b.thread, ""); err != nil {
		return nil, err
	}
	from := b.begin.ImportedFrom
	return &SessionImported{Result: *res, Format: from.Format, Outcome: "imported", Messages: b.said, Turns: from.Turns, Left: in.conv.Left()}, nil
}

// risks are the reasons to ask a person before a session from outside is
// kept: what it would do here without asking again.
func risks(folded map[belay.StreamID]engine.Folded, rests bool) (why []string) {
	if !rests {
		why = append(why, "has work that hasn't ended")
	}
	also := func(reason string) {
		if !slices.Contains(why, reason) {
			why = append(why, reason)
		}
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
			for _, g := range s.Shared {
				tools[g.Tool] = true
			}
			if len(s.Family) > 0 { // one that has ended is told more under them: its mode, its gate, where its model is
				also("has agents that keep the rules of where it comes from")
			}
		case *thread.Decider:
			granted(tools, d.State().Grants)
			if rests && (d.State().Turn != nil || len(d.State().Queue) > 0) {
				also("has turns that haven't ended")
			}
		case *task.Decider:
			if rests && (d.State().Planned != nil || d.State().Again != nil) {
				also("has tasks that haven't begun")
			}
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

// formatOf is the file's format: as told, or from its first lines.
func formatOf(ctx context.Context, f Source, told string) (string, error) {
	start := make([]byte, 512)
	n, err := f.File.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return "", belay.Errorf(belay.CodeUsage, "it can't be read: %s", files.Reason(err)).At(f.Name).WithHint("name a file that you can read")
	}
	start = start[:n]
	if len(start) > 2 && start[0] == 0x1f && start[1] == 0x8b || len(start) > 4 && string(start[:4]) == "\x28\xb5\x2f\xfd" {
		return "", belay.Errorf(belay.CodeUsage, "it is compressed").At(f.Name).WithHint("unpack it first: zcat FILE | belay import -")
	}
	if told != "auto" {
		return told, nil
	}
	if bundle.Is(start) {
		return Bundle, nil
	}
	if found := transcript.Detect(ctx, f.File, f.Size); found != "" {
		return string(found), nil
	}
	return "", belay.Errorf(belay.CodeUsage, "it is no file that can be imported").At(f.Name).
		WithHint("bundles and transcripts can: belay import --help; --format says what a file is that isn't known by its beginning")
}
