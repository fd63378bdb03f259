package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/belay-run/belay/internal/engine"
	"os"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/tool/file"
)

// restoreFiles makes the files of a plan what they were. Each is recorded after
// it changed; an attempt that finds one changed and not recorded records it. No
// facts mean that the process shuts down: the next one continues.
func (v *performer) restoreFiles(ctx context.Context, run *engine.Run, eff core.RestoreFiles) []core.Fact {
	end := eff.Event
	plan, root, err := v.plan(ctx, eff)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		end.Kept = append(end.Kept, event.CutText("no file was restored: "+err.Error(), 1000))
		return []core.Fact{{IDs: eff.IDs, Data: end}}
	}
	defer root.Close() //nolint:errcheck // each file that was written is closed by itself
	recorded, err := v.recorded(ctx, eff.Started)
	if err != nil {
		return nil // the log can't be read: the next drive tries again
	}
	room := history.RoomForArtifacts
	for _, f := range plan {
		if !recorded[f.Path] {
			switch err := v.restoreFile(ctx, run, root, eff, f); {
			case ctx.Err() != nil, errors.Is(err, errNotRecorded):
				return nil
			case err != nil:
				end.Kept = append(end.Kept, event.CutText(err.Error(), 300))
				continue
			}
		}
		end.Restored++
		if room -= event.TextLen(f.Path) + 3; room >= 0 {
			end.Artifacts = append(end.Artifacts, f.Path)
		}
	}
	end.Kept = event.Fitting(end.Kept, history.RoomForArtifacts)
	return []core.Fact{{IDs: eff.IDs, Data: end}}
}

// errNotRecorded means that a file was changed and its fact wasn't recorded.
var errNotRecorded = errors.New("the fact was not recorded")

func (v *performer) plan(ctx context.Context, eff core.RestoreFiles) ([]history.FileChange, *os.Root, error) {
	raw, err := v.e.c.Store.Get(ctx, eff.Plan.Digest)
	if err != nil {
		return nil, nil, fmt.Errorf("its plan: %w", err)
	}
	var plan []history.FileChange
	if err := json.Unmarshal(raw, &plan); err != nil {
		return nil, nil, fmt.Errorf("its plan: %w", err)
	}
	root, err := v.e.root(ctx, eff.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("the workspace can't be opened: %w", err)
	}
	return plan, root, nil
}

// recorded are the files that attempts before have recorded.
func (v *performer) recorded(ctx context.Context, since int64) (map[string]bool, error) {
	done := map[string]bool{}
	for ev, err := range v.e.c.Store.Read(ctx, v.stream, since) {
		if err != nil {
			return nil, err
		}
		if p, ok := ev.Data.(event.ArtifactChanged); ok && p.Kind == "file" {
			done[p.Path] = true
		}
	}
	return done, nil
}

// restoreFile makes one file what it was, and records it.
func (v *performer) restoreFile(ctx context.Context, run *engine.Run, root *os.Root, eff core.RestoreFiles, f history.FileChange) error {
	_, err := file.Restore(ctx, root, file.Restoration{
		Path: f.Path, Have: history.Digest(f.Have), Want: history.Digest(f.Want), Mode: f.Mode, Mark: string(v.stream) + "/" + eff.Key(),
		Before: func() ([]byte, error) { return v.e.c.Store.Get(ctx, f.Want.Digest) },
	})
	if err != nil {
		return history.Reason(f.Path, err)
	}
	p := event.ArtifactChanged{Kind: "file", Path: f.Path, Op: "changed", Before: f.Have, After: f.Want, Kept: true, Mode: f.Mode, Note: "restored"}
	switch {
	case f.Have == nil:
		p.Op, p.Mode = "created", ""
	case f.Want == nil:
		p.Op = "removed"
	}
	if err := run.RecordDurably(core.Fact{IDs: eff.IDs, Data: p}); err != nil {
		return errors.Join(errNotRecorded, err)
	}
	return nil
}
