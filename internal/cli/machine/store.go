package machine

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/storage"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/retention"
)

// StoreCmd is the command "belay store".
type StoreCmd struct {
	Stats   storeStatsCmd   `cmd:"" default:"1" help:"Say what the store holds and how large it is."`
	Backup  storeBackupCmd  `cmd:"" help:"Write everything into one file, while others go on working."`
	Restore storeRestoreCmd `cmd:"" help:"Make a store from a backup."`
	Compact storeCompactCmd `cmd:"" help:"Delete expired and unreferenced content, and free the space."`
	Retain  storeRetainCmd  `cmd:"" help:"Say which sessions and outputs are kept: compact removes the others, a server other outputs."`
}

type storeStatsCmd struct{}

func (c *storeStatsCmd) Keep(ctx context.Context, a *command.Program, db store.Admin) (int, error) {
	h, err := db.Inventory(ctx)
	if err != nil {
		return 0, err
	}
	p, err := storage.RetentionPolicy(ctx, db)
	if err != nil {
		return 0, err
	}
	return a.Show(struct {
		store.Inventory
		Retain retention.Policy `json:"retain,omitzero"`
	}{h, p}, func() {
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
	})
}

type storeBackupCmd struct {
	File  string `arg:"" help:"The file to write."`
	Force bool   `help:"Replace an existing file."`
}

func (c *storeBackupCmd) Keep(ctx context.Context, a *command.Program, db store.Admin) (int, error) {
	file := a.Environment().Abs(c.File)
	m, ok, err := storage.Backup(ctx, db, file, c.Force, a.Now)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, command.NoFile()
	}
	return a.Say(struct {
		File string `json:"file"`
		storage.Manifest
	}{file, m}, "backed up: %s in %s and %s, up to position %d, verified", term.Plural(m.Facts, "fact"), term.Plural(m.Streams, "stream"),
		term.Plural(m.Files, "large content"), m.Position)
}

type storeRestoreCmd struct {
	File  string `arg:"" help:"A file that belay store backup wrote."`
	Force bool   `help:"Move an existing store aside."`
}

func (c *storeRestoreCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	dir, err := a.StoreDir()
	if err != nil {
		return 0, err
	}
	done, err := storage.Restore(ctx, a.Environment().Abs(c.File), dir, c.Force, a.Now)
	if err != nil {
		return 0, err
	}
	return a.Show(struct {
		Store string `json:"store"`
		Aside string `json:"aside,omitempty"`
		storage.Manifest
	}{dir, done.Aside, done.Manifest}, func() {
		fmt.Fprintf(a.Out, "restored: %s in %s, as of %s, verified\n", term.Plural(done.Facts, "fact"), term.Plural(done.Streams, "stream"), done.Made.Local().Format("2006-01-02 15:04"))
		if done.Aside != "" {
			fmt.Fprintf(a.Out, "the store that was there is kept in %s\n", term.Line(done.Aside))
		}
	})
}

// limits are what a policy is made of, as flags.
type limits struct {
	OlderThan string `placeholder:"AGE" help:"Remove sessions that haven't changed for this long: 30d, 2w."`
	Newest    int    `placeholder:"N" help:"Keep the newest N sessions."`
	MaxSize   string `placeholder:"SIZE" help:"Remove the oldest sessions when all facts take more: 10GB."`

	OutputsOlderThan string `placeholder:"AGE" help:"Expire outputs that were recorded longer ago: 30d."`
	OutputsMaxSize   string `placeholder:"SIZE" help:"Expire the oldest outputs when all take more: 2GB."`
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

type storeRetainCmd struct {
	limits
	Off bool `help:"Keep everything."`
}

func (c *storeRetainCmd) Keep(ctx context.Context, a *command.Program, db store.Admin) (int, error) {
	p, err := c.policy()
	if err != nil {
		return 0, err
	}
	switch {
	case c.Off && !p.None():
		return 0, belay.Errorf(belay.CodeUsage, "--off goes with no other flag").WithHint("belay store retain --off")
	case p.None() && !c.Off:
		p, err = storage.RetentionPolicy(ctx, db)
	default:
		err = storage.Retain(ctx, db, p)
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
	DryRun bool `help:"Only list what would be removed."`
}

func (c *storeCompactCmd) Keep(ctx context.Context, a *command.Program, db store.Admin) (int, error) {
	p, err := c.policy()
	if err != nil {
		return 0, err
	}
	if p.None() {
		if p, err = storage.RetentionPolicy(ctx, db); err != nil {
			return 0, err
		}
	}
	done, err := storage.Compact(ctx, db, a.Now(), p, c.DryRun)
	if done != nil {
		printCompacted(&a.Env, done)
	}
	return belay.ExitOK, err
}

func printCompacted(e *term.Env, done *storage.Compacted) {
	e.Show(done, func() {
		verb, left := "deleted", "removed"
		if done.DryRun {
			verb, left = "would delete", "would remove"
		}
		for _, s := range done.Sessions {
			if s.Kept != "" {
				fmt.Fprintf(e.Out, "kept %s: %s\n", s.Session, term.Line(s.Kept))
				continue
			}
			fmt.Fprintf(e.Out, "%s %s: %s\n", verb, s.Session, s.Why)
		}
		if done.Outputs != nil {
			printExpiry(e, done.Outputs)
		}
		fmt.Fprintf(e.Out, "%s %s that nothing names, %s\n", left, term.Plural(done.Contents, "content"), retention.Size(done.Bytes))
		if !done.DryRun {
			fmt.Fprintf(e.Out, "%s before, %s now\n", retention.Size(done.Before), retention.Size(done.After))
		}
	})
}
