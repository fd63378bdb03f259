package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/retention"
	"github.com/belay-run/belay/internal/store/sqlite/backup"
	"github.com/belay-run/belay/internal/view"
)

type storeCmd struct {
	Stats   storeStatsCmd   `cmd:"" default:"1" help:"Say what the store holds and how large it is."`
	Backup  storeBackupCmd  `cmd:"" help:"Write everything into one file, while others go on working."`
	Restore storeRestoreCmd `cmd:"" help:"Make a store from a backup."`
	Compact storeCompactCmd `cmd:"" help:"Delete expired and unreferenced content, and free the space."`
	Retain  storeRetainCmd  `cmd:"" help:"Say which sessions and outputs are kept: compact removes the others, a server other outputs."`
}

// openAdmin opens the store that is there, to look after it.
func (a *program) openAdmin(ctx context.Context) (store.Admin, error) {
	st, err := a.Open(ctx, false)
	if err != nil {
		return nil, err
	}
	db, ok := st.(store.Admin)
	if !ok {
		return nil, errors.Join(noFile(), st.Close())
	}
	return db, nil
}

func noFile() error { return belay.Errorf(belay.CodeUsage, "this store has no file") }

type storeStatsCmd struct{}

func (c *storeStatsCmd) run(ctx context.Context, a *program) (int, error) {
	db, err := a.openAdmin(ctx)
	if err != nil {
		return 0, err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	h, err := db.Inventory(ctx)
	if err != nil {
		return 0, err
	}
	p, err := policyOf(ctx, db)
	if err != nil {
		return 0, err
	}
	if a.JSON {
		a.PrintJSON(struct {
			store.Inventory
			Retain retention.Policy `json:"retain,omitzero"`
		}{h, p})
		return belay.ExitOK, nil
	}
	a.Row("store", "%s", h.Path)
	a.Row("runtime", "%s", h.Runtime)
	a.Row("sessions", "%s, %s deleted", term.Count(int64(h.Sessions)), term.Count(int64(h.Tombstones)))
	a.Row("facts", "%s in %s, up to position %d", term.Count(h.Facts), term.Plural(h.Streams, "stream"), h.Position)
	if !h.First.IsZero() {
		a.Row("", "%s to %s", h.First.Local().Format("2006-01-02 15:04"), h.Last.Local().Format("2006-01-02 15:04"))
	}
	a.Row("waiting", "%s", term.Plural(int(h.Waiting), "command"))
	a.Row("contents", "%s, %s of them in files", term.Count(h.Contents), term.Count(h.Files))
	a.Row("size", "%s in the database (%s free), %s in the log, %s in files", retention.Size(h.Database), retention.Size(h.Free), retention.Size(h.Log), retention.Size(h.FileBytes))
	a.Row("keeps", "%s", p)
	if h.Unfinished > 0 {
		a.Row("try", "belay store compact: %s cut short", term.Plural(h.Unfinished, "deletion"))
	}
	return belay.ExitOK, nil
}

type storeBackupCmd struct {
	File  string `arg:"" help:"The file to write."`
	Force bool   `help:"Replace a file that is there."`
}

func (c *storeBackupCmd) run(ctx context.Context, a *program) (int, error) {
	db, err := a.openAdmin(ctx)
	if err != nil {
		return 0, err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	from, ok := db.(backup.Source)
	if !ok {
		return 0, noFile()
	}
	file := a.environment().Abs(c.File)
	m, err := backup.Write(ctx, from, file, backup.Options{Replace: c.Force, Now: a.Now})
	if err != nil {
		return 0, err
	}
	if a.JSON {
		a.PrintJSON(struct {
			File string `json:"file"`
			backup.Manifest
		}{file, m})
		return belay.ExitOK, nil
	}
	fmt.Fprintf(a.Out, "backed up: %s in %s and %s, up to position %d, verified\n", term.Plural(m.Facts, "fact"), term.Plural(m.Streams, "stream"),
		term.Plural(m.Files, "large content"), m.Position)
	return belay.ExitOK, nil
}

type storeRestoreCmd struct {
	File  string `arg:"" help:"A file that belay store backup wrote."`
	Force bool   `help:"Keep a store that is there aside."`
}

func (c *storeRestoreCmd) run(ctx context.Context, a *program) (int, error) {
	dir, err := a.storeDir()
	if err != nil {
		return 0, err
	}
	done, err := backup.Restore(ctx, a.environment().Abs(c.File), dir, backup.RestoreOptions{Force: c.Force, Now: a.Now})
	if err != nil {
		return 0, err
	}
	if a.JSON {
		a.PrintJSON(struct {
			Store string `json:"store"`
			Aside string `json:"aside,omitempty"`
			backup.Manifest
		}{dir, done.Aside, done.Manifest})
		return belay.ExitOK, nil
	}
	fmt.Fprintf(a.Out, "restored: %s in %s, as of %s, verified\n", term.Plural(done.Facts, "fact"), term.Plural(done.Streams, "stream"), done.Made.Local().Format("2006-01-02 15:04"))
	if done.Aside != "" {
		fmt.Fprintf(a.Out, "the store that was there is kept in %s\n", term.Line(done.Aside))
	}
	return belay.ExitOK, nil
}

// limits are what a policy is made of, as flags.
type limits struct {
	OlderThan string `placeholder:"AGE" help:"Let sessions go that haven't changed for this long: 30d, 2w."`
	Newest    int    `placeholder:"N" help:"Keep the newest N sessions."`
	MaxSize   string `placeholder:"SIZE" help:"Let the oldest sessions go when all facts take more: 10GB."`

	OutputsOlderThan string `placeholder:"AGE" help:"Let outputs expire that were recorded longer ago: 30d."`
	OutputsMaxSize   string `placeholder:"SIZE" help:"Let the oldest outputs expire when all take more: 2GB."`
}

func (l limits) policy() (p retention.Policy, err error) {
	if l.OlderThan != "" {
		age, err := retention.ParseAge(l.OlderThan)
		if err != nil {
			return p, err
		}
		p.Age = belay.Duration(age)
	}
	if l.Newest < 0 {
		return p, belay.Errorf(belay.CodeUsage, "it must be positive").At("--newest").WithHint("--newest 500")
	}
	p.Count = l.Newest
	if l.MaxSize != "" {
		if p.Bytes, err = retention.ParseSize(l.MaxSize); err != nil {
			return p, err
		}
	}
	p.Outputs, err = outputPolicy(l.OutputsOlderThan, l.OutputsMaxSize)
	return p, err
}

// policyKey is the name of the store's setting.
const policyKey = "retain"

func policyOf(ctx context.Context, db store.Admin) (p retention.Policy, err error) {
	text, err := db.Setting(ctx, policyKey)
	if err != nil || text == "" {
		return p, err
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, belay.Errorf(belay.CodeStoreDamaged, "the retention setting can't be read").WithHint("belay store retain --off").Wrap(err)
	}
	return p, nil
}

type storeRetainCmd struct {
	limits
	Off bool `help:"Keep everything."`
}

func (c *storeRetainCmd) run(ctx context.Context, a *program) (int, error) {
	p, err := c.policy()
	if err != nil {
		return 0, err
	}
	db, err := a.openAdmin(ctx)
	if err != nil {
		return 0, err
	}
	defer db.Close() //nolint:errcheck // what was set is durable
	switch {
	case c.Off && !p.None():
		return 0, belay.Errorf(belay.CodeUsage, "--off goes with no other flag").WithHint("belay store retain --off")
	case c.Off:
		err = db.Set(ctx, policyKey, "")
	case p.None():
		p, err = policyOf(ctx, db)
	default:
		var b []byte
		if b, err = json.Marshal(p); err == nil {
			err = db.Set(ctx, policyKey, string(b))
		}
	}
	if err != nil {
		return 0, err
	}
	if p.Outputs == (retention.Outputs{}) {
		return a.Say(p, "belay store compact keeps %s", p)
	}
	return a.Say(p, "belay store compact keeps %s\noutputs beyond that go by themselves, within an hour, where belay serve runs", p)
}

type storeCompactCmd struct {
	limits
	DryRun bool `help:"Only say what would go."`
}

// compacted is what compact did, as JSON.
type compacted struct {
	DryRun    bool   `json:"dryRun,omitempty"`
	Sessions  []gone `json:"sessions"`
	Deletions int    `json:"deletions,omitempty"` // cut short before, and finished now
	Contents  int    `json:"contents"`
	Bytes     int64  `json:"contentBytes"`
	Before    int64  `json:"before"` // bytes of the store's files
	After     int64  `json:"after"`

	Outputs *expiry `json:"outputs,omitempty"` // what expired, and what is gone of it
}

type gone struct {
	Session belay.SessionID `json:"session"`
	Changed time.Time       `json:"changed"`
	Bytes   int64           `json:"bytes"`
	Why     string          `json:"why"`
	Kept    string          `json:"kept,omitempty"` // why it stayed after all
}

func (c *storeCompactCmd) run(ctx context.Context, a *program) (int, error) {
	p, err := c.policy()
	if err != nil {
		return 0, err
	}
	db, err := a.openAdmin(ctx)
	if err != nil {
		return 0, err
	}
	defer db.Close() //nolint:errcheck // what was removed is gone
	if p.None() {
		if p, err = policyOf(ctx, db); err != nil {
			return 0, err
		}
	}
	done := compacted{DryRun: c.DryRun, Sessions: []gone{}}
	chosen, err := chosen(ctx, &a.Env, db, p)
	if err != nil {
		return 0, err
	}
	from, err := db.End(ctx)
	if err != nil {
		return 0, err
	}
	for _, x := range chosen {
		g := gone{x.ID, x.Changed, x.Bytes, x.Why, ""}
		if !c.DryRun {
			if g.Kept, err = retire(ctx, db, x.ID); err != nil {
				return 0, err
			}
		}
		done.Sessions = append(done.Sessions, g)
	}
	if done.Outputs, err = compactOutputs(ctx, &a.Env, db, p.Outputs, c.DryRun); err != nil {
		return 0, err
	}
	r, err := db.Compact(ctx, c.DryRun)
	if err != nil {
		return 0, err
	}
	done.Deletions, done.Contents, done.Bytes, done.Before, done.After = r.Deletions, r.Contents, r.Bytes, r.Before, r.After
	printCompacted(&a.Env, done)
	if c.DryRun {
		return belay.ExitOK, nil
	}
	gone, err := db.Tombstones(ctx, from)
	if err == nil {
		err = store.RecordDeletions(ctx, db, store.ThisProcess(), gone)
	}
	return belay.ExitOK, errors.Join(err, view.Catchup(ctx, db))
}

// compactOutputs lets the outputs go that a policy doesn't keep.
func compactOutputs(ctx context.Context, e *term.Env, db store.Admin, p retention.Outputs, dry bool) (*expiry, error) {
	var due []retention.OutputChoice
	if p != (retention.Outputs{}) {
		all, err := retention.List(ctx, db, "")
		if err != nil {
			return nil, err
		}
		due = p.Due(e.Now(), all)
	}
	done, err := expireOutputs(ctx, db, retention.ExpiryTarget{Reason: event.ExpiredByRetention, Owner: store.ThisProcess(), DryRun: dry}, due)
	if len(done.Outputs) == 0 && done.Contents+done.Left == 0 {
		return nil, err
	}
	return &done, err
}

// retire deletes a session that has passed its retention time. One that was
// claimed in the meantime stays.
func retire(ctx context.Context, db store.Admin, id belay.SessionID) (kept string, err error) {
	err = db.DeleteIdle(ctx, id, "retention")
	_, owned := errors.AsType[*store.OwnedError](err)
	switch {
	case owned:
		return "a process drives it", nil
	case belay.CodeOf(err) == belay.CodeBusy && err != nil:
		return term.Line(err.Error()), nil
	case errors.Is(err, store.ErrNotFound):
		return "", nil // another compaction was faster
	}
	return "", err
}

// chosen are the sessions to delete now under a policy.
func chosen(ctx context.Context, e *term.Env, db store.Admin, p retention.Policy) ([]retention.Choice, error) {
	if p.None() {
		return nil, nil
	}
	if err := view.Catchup(ctx, db); err != nil {
		return nil, err
	}
	all, err := view.Sessions(ctx, db, view.Filter{})
	if err != nil {
		return nil, err
	}
	sizes, err := db.SessionBytes(ctx)
	if err != nil {
		return nil, err
	}
	lanes, err := db.Lanes(ctx, "")
	if err != nil {
		return nil, err
	}
	busy := map[belay.SessionID]bool{}
	for _, l := range lanes {
		busy[l.Session] = true
	}
	var sessions []retention.Session
	for _, s := range all {
		owner, err := db.OwnerOf(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, retention.Session{ID: s.ID, Changed: s.Updated, Bytes: sizes[s.ID], Rests: !busy[s.ID] && owner == nil})
	}
	return p.Choose(e.Now(), sessions), nil
}

func printCompacted(e *term.Env, done compacted) {
	if e.JSON {
		e.PrintJSON(done)
		return
	}
	verb, left := "deleted", "removed"
	if done.DryRun {
		verb, left = "would delete", "would remove"
	}
	for _, s := range done.Sessions {
		if s.Kept != "" {
			fmt.Fprintf(e.Out, "kept %s: %s\n", s.Session, s.Kept)
			continue
		}
		fmt.Fprintf(e.Out, "%s %s: %s\n", verb, s.Session, s.Why)
	}
	if done.Outputs != nil {
		printExpiry(e, *done.Outputs)
	}
	fmt.Fprintf(e.Out, "%s %s that nothing names, %s\n", left, term.Plural(done.Contents, "content"), retention.Size(done.Bytes))
	if !done.DryRun {
		fmt.Fprintf(e.Out, "%s before, %s now\n", retention.Size(done.Before), retention.Size(done.After))
	}
}
