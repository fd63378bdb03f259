package sessions

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// ArtifactsCmd is the command "belay sessions artifacts".
type ArtifactsCmd struct {
	ID   string `arg:"" optional:"" help:"The session; the last one of this workspace."`
	Name string `arg:"" optional:"" help:"Print this one: NAME, or NAME@VERSION. Without it all are listed."`
	Out  string `short:"o" placeholder:"FILE" help:"Write it to a file that doesn't exist yet."`
}

// Read implements command.Reader.
func (c *ArtifactsCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	if c.Out != "" && c.Name == "" {
		return 0, belay.Errorf(belay.CodeUsage, "it takes one artifact").At("--out").WithHint("belay sessions artifacts %s NAME --out FILE", c.ID)
	}
	id, err := a.SessionID(ctx, st, c.ID)
	if err != nil {
		return 0, err
	}
	s, err := app.FindSession(ctx, st, string(id))
	if err != nil {
		return 0, err
	}
	all, err := published(ctx, st, s)
	if err != nil {
		return 0, err
	}
	if c.Name == "" {
		return listArtifacts(&a.Env, all)
	}
	it, err := pick(all, c.Name, s.ID)
	if err != nil {
		return 0, err
	}
	if a.JSON && c.Out == "" {
		a.PrintJSON(it)
		return belay.ExitOK, nil
	}
	return belay.ExitOK, writeArtifact(ctx, a, st, it, c.Out)
}

// published is every version of every artifact of a session, in the order of
// the log.
func published(ctx context.Context, st store.Store, s view.Session) ([]view.Artifact, error) {
	var all []view.Artifact
	for _, th := range s.Threads {
		for ev, err := range st.Read(ctx, th.ID.Stream(), 0) {
			if err != nil {
				return nil, err
			}
			if it, ok := view.ArtifactOf(ev); ok {
				all = append(all, it)
			}
		}
	}
	return all, nil
}

func listArtifacts(e *term.Env, all []view.Artifact) (int, error) {
	if len(all) == 0 && !e.JSON {
		fmt.Fprintln(e.Err, "nothing was published in this session")
		return belay.ExitOK, nil
	}
	return term.PrintRows(e, all, "", "NAME\tVERSION\tBYTES\tMEDIA\tDIGEST\tDESCRIPTION", func(it view.Artifact) []any {
		return []any{term.Line(it.Name), term.Line(it.Version), it.Content.Size, term.Line(it.Content.Media), it.Content.Digest.Short(), term.Short(it.Note, 60)}
	})
}

// pick finds NAME or NAME@VERSION; the newest version if none is named.
func pick(all []view.Artifact, what string, session belay.SessionID) (view.Artifact, error) {
	name, version, exact := strings.Cut(what, "@")
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Name == name && (!exact || all[i].Version == version) {
			return all[i], nil
		}
	}
	return view.Artifact{}, belay.Errorf(belay.CodeNotFound, "no artifact %s was published", what).At(string(session)).WithHint("belay sessions artifacts %s", session)
}

// writeArtifact copies content to standard output, or into a new file.
func writeArtifact(ctx context.Context, a *command.Program, st store.Store, it view.Artifact, out string) error {
	r, err := st.Open(ctx, it.Content.Digest)
	if err != nil {
		return err
	}
	defer r.Close()
	if out == "" {
		_, err := io.Copy(a.Out, r)
		return err
	}
	f, err := os.OpenFile(a.Environment().Abs(out), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return belay.Errorf(belay.CodeUsage, "it can't be made: %s", files.Reason(err)).At(out).WithHint("name a file that doesn't exist, in a folder that does")
	}
	n, err := io.Copy(f, r)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return belay.Errorf(belay.CodeInternal, "it could not be written").At(out).Wrap(err)
	}
	fmt.Fprintf(a.Err, "wrote %d bytes to %s\n", n, term.Line(out))
	return nil
}
