package effect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/workspace/fswalk"
)

// Bounds of what a check reads.
const (
	maxHeld  = 16 << 20 // bytes of a JSON file that is held against a schema
	maxNoted = 1 << 30  // bytes of files whose digest is taken
)

// verify finds out whether a check passes, makes the call that does, or notes how files
// are.
func (v *performer) verify(ctx context.Context, eff core.Verify) []core.Fact {
	r := event.CheckResult{ID: eff.Check.ID, Kind: eff.Check.Kind}
	rules, err := v.rules(ctx, eff.Rules)
	if err == nil {
		switch {
		case eff.Note:
			r.Status = event.CheckNoted
			r.Files, err = v.digests(ctx, rules.Workspace, eff.Check.Paths)
		case eff.Check.Kind == belay.CheckCommand:
			err = v.checkCommand(ctx, eff, rules, &r)
		case eff.Check.Kind == belay.CheckFiles:
			err = v.checkFiles(ctx, eff, rules.Workspace, &r)
		case eff.Check.Kind == belay.CheckSchema:
			err = v.checkSchema(ctx, eff, rules.Workspace, &r)
		case eff.Check.Kind == belay.CheckAgent:
			err = v.checkByAgent(ctx, eff, rules.Workspace, &r)
		case eff.Check.Kind == belay.CheckConfidence:
			err = v.checkConfidence(ctx, eff, &r)
		default:
			err = fmt.Errorf("this build knows no check of kind %s", eff.Check.Kind)
		}
	}
	if ctx.Err() != nil {
		return nil // the next drive finds it out
	}
	if err != nil {
		r.Reason = event.CutText(v.e.c.Secrets.String(err.Error()), 500)
	}
	if err != nil && !eff.Note {
		r.Status = event.CheckUnknown
	}
	return []core.Fact{{IDs: eff.IDs, Data: event.TaskProgress{Phase: event.PhaseVerifying, Check: &r}}}
}

// checkCommand makes the call that runs the program: the gate judges it as any other.
func (v *performer) checkCommand(ctx context.Context, eff core.Verify, rules *sharedRules, r *event.CheckResult) error {
	if _, has := rules.Tool(tool.ExecName); !has {
		return errors.New("the agent has no tool " + tool.ExecName + ", which runs programs")
	}
	args, err := json.Marshal(struct {
		Argv    []string `json:"argv"`
		Dir     string   `json:"dir,omitempty"`
		Timeout int      `json:"timeout_seconds,omitempty"`
	}{eff.Check.Argv, eff.Check.Dir, eff.Check.Timeout})
	if err != nil {
		return err
	}
	a := &answer{v: v, eff: core.CallModel{IDs: eff.IDs, Rules: eff.Rules}, rules: rules.Rules}
	budget := inlineCalls
	call, err := a.call(ctx, model.Call{Name: tool.ExecName, Args: string(args)}, &budget)
	if err != nil {
		return err
	}
	call.ID = eff.Call
	r.Status, r.Call = event.CheckRunning, &call
	return nil
}

// checkFiles looks whether files exist, or are as they were noted.
func (v *performer) checkFiles(ctx context.Context, eff core.Verify, workspace string, r *event.CheckResult) error {
	now, err := v.digests(ctx, workspace, eff.Check.Paths)
	if err != nil {
		return err
	}
	was := map[string]string{}
	for _, f := range eff.Files {
		was[f.Path] = f.Digest
	}
	r.Status = event.CheckPassed
	var wrong []string
	for _, f := range now {
		before, known := was[f.Path]
		switch {
		case !eff.Check.Unchanged && f.Digest == absent:
			wrong = append(wrong, f.Path+" doesn't exist")
		case eff.Check.Unchanged && !known:
			return fmt.Errorf("nobody noted how %s was", f.Path)
		case eff.Check.Unchanged && before != f.Digest:
			wrong = append(wrong, f.Path+" has changed")
		}
	}
	if len(wrong) > 0 {
		r.Status, r.Reason = event.CheckFailed, event.CutText(strings.Join(wrong, ", "), 500)
	}
	return nil
}

// absent stands for the digest of a file that there isn't.
const absent = "absent"

// digests are files and folders as they are now, whatever ignore files say.
func (v *performer) digests(ctx context.Context, workspace string, paths []string) (out []event.FileSeen, err error) {
	root, err := v.e.root(ctx, workspace)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	left := int64(maxNoted)
	for _, p := range paths {
		name, err := file.Clean(p)
		if err != nil {
			return nil, err
		}
		digest, err := digest(ctx, root, name, &left)
		if err != nil {
			return nil, fmt.Errorf("%s can't be read: %s", p, files.Reason(err))
		}
		out = append(out, event.FileSeen{Path: p, Digest: digest})
	}
	return out, nil
}

// digest is that of a file, or of a folder with everything in it.
func digest(ctx context.Context, root *os.Root, name string, left *int64) (string, error) {
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, nil
	case err != nil:
		return "", err
	}
	sum := sha256.New()
	if !info.IsDir() {
		f, info, err := files.OpenIn(root, name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		err = take(sum, f, info.Size(), left)
		return hex.EncodeToString(sum.Sum(nil)), err
	}
	report, err := fswalk.Walk(ctx, root, name, fswalk.Options{Hidden: true, Ignored: true}, func(e fswalk.Entry) error {
		fmt.Fprintf(sum, "%q %s\n", e.Path, e.Type)
		if e.Type&fs.ModeSymlink != 0 {
			to, err := e.Link()
			fmt.Fprintf(sum, "%q\n", to)
			return err
		}
		if !e.Type.IsRegular() {
			return nil
		}
		f, info, err := e.Open()
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(sum, "%d\n", info.Size())
		return take(sum, f, info.Size(), left)
	})
	if err == nil && len(report.Unread) > 0 {
		err = errors.New(report.Unread[0] + " can't be read")
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// take reads a file of a size into a digest, up to what is left.
func take(sum io.Writer, f io.Reader, size int64, left *int64) error {
	if size > *left {
		return errManyBytes
	}
	n, err := io.Copy(sum, io.LimitReader(f, *left+1))
	if *left -= n; err == nil && *left < 0 {
		return errManyBytes
	}
	return err
}

var errManyBytes = fmt.Errorf("the files have more than %d MiB", maxNoted>>20)

// checkSchema holds the output of the completion, or a file, against a schema.
func (v *performer) checkSchema(ctx context.Context, eff core.Verify, workspace string, r *event.CheckResult) error {
	schema, err := tool.ReadSchema(eff.Check.Schema)
	if err != nil {
		return fmt.Errorf("the schema can't be used: %w", err)
	}
	r.Status = event.CheckFailed
	raw, missing, err := v.held(ctx, eff, workspace)
	if err != nil {
		return err
	}
	var value any
	switch {
	case missing != "":
		r.Reason = missing
		return nil
	case json.Unmarshal(raw, &value) != nil:
		r.Reason = "it isn't JSON"
		return nil
	}
	if wrong := schema.Complaints(value); len(wrong) > 0 {
		r.Reason = event.CutText(v.e.c.Secrets.String(strings.Join(wrong, "; ")), 500)
		return nil
	}
	r.Status = event.CheckPassed
	return nil
}

// said is what the completion says.
func (v *performer) said(ctx context.Context, eff core.Verify) ([]byte, error) {
	if eff.ArgsRef == nil {
		return eff.Args, nil
	}
	return v.e.c.Store.Get(ctx, eff.ArgsRef.Digest)
}

// held is what is held against the schema; missing says that there is nothing.
func (v *performer) held(ctx context.Context, eff core.Verify, workspace string) (raw []byte, missing string, err error) {
	if eff.Check.Path == "" {
		args, err := v.said(ctx, eff)
		if err != nil {
			return nil, "", err
		}
		var in struct{ Output json.RawMessage }
		if err := json.Unmarshal(args, &in); err != nil || len(in.Output) == 0 {
			return nil, "output is missing", err
		}
		return in.Output, "", nil
	}
	root, err := v.e.root(ctx, workspace)
	if err != nil {
		return nil, "", err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	name, err := file.Clean(eff.Check.Path)
	if err != nil {
		return nil, "", err
	}
	raw, err = files.ReadIn(root, name, maxHeld)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, eff.Check.Path + " doesn't exist", nil
	case err != nil:
		return nil, "", fmt.Errorf("%s: %s", eff.Check.Path, files.Reason(err))
	}
	return raw, "", nil
}
