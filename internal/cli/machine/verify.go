package machine

import (
	"bytes"
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/storage"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
)

// VerifyCmd is the command "belay verify".
type VerifyCmd struct {
	Against string `placeholder:"HEADS" help:"Compare with heads that were kept elsewhere: the file that --heads wrote."`
	Heads   bool   `help:"Print every stream's head, to be kept elsewhere."`
}

// verdict is what verify found, as JSON.
type verdict struct {
	OK          bool              `json:"ok"`
	Facts       int               `json:"facts"`
	Streams     int               `json:"streams"`
	Contents    int               `json:"contents"`
	Compared    int               `json:"compared,omitempty"` // heads that were found again
	Problems    []storage.Problem `json:"problems,omitempty"`
	More        int               `json:"more,omitempty"` // problems beyond those
	Differences []storage.Problem `json:"differences,omitempty"`
	Deleted     []storage.Problem `json:"deleted,omitempty"` // heads whose facts were deleted
	Warnings    []storage.Problem `json:"warnings,omitempty"`
	Expired     int               `json:"expired,omitempty"` // outputs that expired, according to facts
}

// Run implements command.Command.
func (c *VerifyCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	var kept []store.Head
	if c.Against != "" {
		var err error
		if kept, err = heads(a, c.Against); err != nil {
			return 0, err
		}
	}
	dir, err := a.StoreDir()
	if err != nil {
		return 0, err
	}
	if !a.Build.HasStore(dir) {
		return 0, belay.Errorf(belay.CodeNotFound, "there is no store").At(dir).WithHint("--store DIR names another")
	}
	r, err := storage.Verify(ctx, dir, kept)
	if err != nil {
		return 0, err
	}
	if c.Heads && r.OK() {
		return belay.ExitOK, storage.WriteHeads(a.Out, r.Heads)
	}
	printVerdict(&a.Env, r, c.Against != "")
	return verdictExit(r), nil
}

// heads reads what an earlier verify printed.
func heads(a *command.Program, file string) ([]store.Head, error) {
	const hint = "belay verify --heads >HEADS makes such a file"
	b, err := files.ReadGiven(a.Environment().Abs(file), 256<<20)
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%s", files.Reason(err)).At("--against").WithHint(hint)
	}
	heads, err := storage.ReadHeads(bytes.NewReader(b))
	if err == nil && len(heads) == 0 {
		err = belay.Errorf(belay.CodeUsage, "it holds no heads")
	}
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%s", err.Error()).At(file).WithHint(hint)
	}
	return heads, nil
}

// verdictExit is 8 for damage and 1 for a store that differs from kept heads.
func verdictExit(r storage.Report) int {
	switch {
	case len(r.Problems) > 0:
		return belay.ExitStore
	case len(r.Differences) > 0:
		return belay.ExitFailed
	}
	return belay.ExitOK
}

func printVerdict(e *term.Env, r storage.Report, compared bool) {
	e.Show(verdict{r.OK(), r.Events, r.Streams, r.Blobs, r.Compared, r.Problems, r.More, r.Differences, r.Deleted, r.Warnings, r.Expired}, func() {
		list := func(what string, all []storage.Problem) {
			for _, p := range all {
				fmt.Fprintf(e.Out, "%s: %s\n", what, term.Line(p.String()))
			}
		}
		list("damaged", r.Problems)
		if r.More > 0 {
			fmt.Fprintf(e.Out, "and %s more\n", term.Plural(r.More, "problem"))
		}
		list("different", r.Differences)
		list("deleted", r.Deleted)
		list("warning", r.Warnings)
		if !r.OK() {
			fmt.Fprintln(e.Err, "try: keep a copy of the store as it is; sessions before the damage can still be read")
			return
		}
		fmt.Fprintf(e.Out, "whole: %s in %s, every hash follows from the one before; %s, all as they were kept\n",
			term.Plural(r.Events, "fact"), term.Plural(r.Streams, "stream"), term.Plural(r.Blobs, "content"))
		term.Some(e.Out, r.Expired, "output", "expired, as facts say: belay outputs list --all")
		if compared {
			fmt.Fprintf(e.Out, "%s found again as they were: nothing was changed before them\n", term.Plural(r.Compared-len(r.Deleted), "head"))
		}
	})
}
