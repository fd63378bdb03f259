package effect

import (
	"context"
	"errors"
	"fmt"
	"github.com/belay-run/belay/internal/engine"
	"io"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/workspace/git"
)

// runTool performs one attempt of a call.
func (v *performer) runTool(ctx context.Context, run *engine.Run, eff core.RunTool) []core.Fact {
	begun := v.e.c.Now()
	s := &sink{v: v, run: run, ids: eff.IDs, attempt: eff.Attempt}
	s.told.at = time.Now()
	r, spec, err := v.execute(ctx, s, eff)
	told := s.told.end()
	ms := v.e.c.Now().Sub(begun).Milliseconds()
	// What is known must be kept also when the call was cancelled.
	keep := context.WithoutCancel(ctx)
	if err == nil {
		var p event.ToolResult
		var taken secret.Taken
		if p, taken, err = v.result(keep, eff, spec, r); err == nil {
			p.Millis = ms
			if rules, err := v.rules(keep, eff.Rules); err == nil {
				p.Instructions = v.instructed(rules.Workspace, rules.Settings, p.Files)
			}
			return s.ended(taken, p)
		}
	}
	if q, ok := errors.AsType[*tool.NeedsInput](err); ok && ctx.Err() == nil {
		var p event.ToolFailed
		if p, err = v.asks(keep, eff, q); err == nil {
			p.Millis = ms
			return s.ended(secret.Taken{}, p)
		}
	}
	p, taken, known := v.failure(ctx, run, eff, spec, err)
	if !known {
		return nil
	}
	p.Millis = ms
	if p.Output.Text == "" {
		p.Output, _ = v.e.content(keep, told, "text/plain") // it is short: can't fail
	}
	return s.ended(taken, p)
}

// ended are the facts of a call's end: what was taken out of what the model reads,
// and the end.
func (s *sink) ended(taken secret.Taken, end event.Payload) (facts []core.Fact) {
	if s.cut.Add(taken); s.cut.Count > 0 {
		facts = append(facts, core.Fact{IDs: s.ids, Data: redacted(s.cut, nil)})
	}
	return append(facts, core.Fact{IDs: s.ids, Data: end})
}

// execute finds the tool and runs it under its timeout.
func (v *performer) execute(ctx context.Context, s *sink, eff core.RunTool) (tool.Result, belay.ToolSpec, error) {
	shared, err := v.rules(ctx, eff.Rules)
	if err != nil {
		return tool.Result{}, belay.ToolSpec{}, err
	}
	rules := shared.Rules
	t, ok := v.tools(ctx, eff.IDs.Turn, rules).Get(eff.Name)
	if !ok {
		return tool.Result{}, belay.ToolSpec{}, &tool.Error{Problem: event.Problem{Class: tool.NotFound, Code: "UNKNOWN_TOOL", Message: "this build has no tool " + eff.Name}}
	}
	spec := t.Spec()
	if began, _ := rules.Tool(eff.Name); began.Definition != spec.Definition {
		return tool.Result{}, began, toolChanged(eff)
	}
	call, err := v.newCall(ctx, s, rules, eff)
	if err != nil {
		return tool.Result{}, spec, err
	}
	defer call.Root.Close() //nolint:errcheck // each file that was written is closed by itself
	limit := toolTime(time.Duration(spec.Timeout))
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errToolTime)
	defer cancel()
	if rec, ok := t.(tool.Recoverer); ok && eff.Recover {
		r, done, err := rec.Recover(ctx, call)
		if done || err != nil {
			return r, spec, err
		}
	}
	if err := v.e.moved(rules, spec, eff, call.Args); err != nil {
		return tool.Result{}, spec, err
	}
	if err := v.e.contextChanged(ctx, rules, eff, call.Args); err != nil {
		return tool.Result{}, spec, err
	}
	r, err := v.inspected(ctx, spec, eff.May, call, func() (tool.Result, error) { return t.Run(ctx, call) })
	if r.Left != nil {
		v.e.background.add(backgroundProcess{Running: r.Left, stream: v.stream, ids: eff.IDs, workspace: rules.Workspace, may: eff.May})
	}
	if err != nil && errors.Is(context.Cause(ctx), errToolTime) {
		if _, told := errors.AsType[*tool.Error](err); !told {
			err = &tool.Error{Problem: event.Problem{Class: tool.Timeout, Code: "TIMEOUT", Message: fmt.Sprintf("%s took longer than %s", eff.Name, limit)}}
		}
	}
	return r, spec, err
}

var errToolTime = errors.New("the tool's time is up")

// toolChanged is the failure of a call whose tool isn't the one that the gate
// approved. After a crash there is no tool left that could say what the first
// attempt did.
func toolChanged(eff core.RunTool) error {
	if eff.Attempt > 1 {
		return tool.Failf(tool.Lost, "TOOL_CHANGED", "the definition of %s changed while its call was running; nobody knows whether it did its work", eff.Name).
			WithHint("look at what is there before you decide to run it again")
	}
	return tool.Failf(tool.Conflict, "TOOL_CHANGED", "the definition of %s is not the one that the turn began with; it was not run", eff.Name).
		WithHint("go on without it: the next turn has the new one")
}

func (v *performer) newCall(ctx context.Context, s *sink, rules *thread.Rules, eff core.RunTool) (tool.Call, error) {
	args := eff.Args
	if eff.ArgsRef != nil {
		var err error
		if args, err = v.e.c.Store.Get(ctx, eff.ArgsRef.Digest); err != nil {
			return tool.Call{}, err
		}
	}
	root, err := v.e.root(ctx, rules.Workspace)
	if err != nil {
		return tool.Call{}, &tool.Error{Problem: event.Problem{Class: tool.NotFound, Code: "WORKSPACE_GONE", Message: "the workspace can't be opened: " + err.Error()}}
	}
	s.ctx = ctx
	box, err := v.box(s.run, eff, rules.Workspace, s)
	if err != nil {
		return tool.Call{}, err
	}
	var quiet []string
	if eff.Quiet {
		quiet = git.Quiet()
	}
	input, err := v.input(ctx, eff.Input)
	var commands func(context.Context, string, []byte) ([]byte, error)
	if v.e.c.Command != nil {
		commands = func(ctx context.Context, name string, body []byte) ([]byte, error) {
			return v.e.c.Command(ctx, eff.IDs, name, body)
		}
	}
	return tool.Call{ID: eff.IDs.Call, Session: eff.IDs.Session, Attempt: eff.Attempt, Args: args, Dir: rules.Workspace, Root: root,
		Expect: eff.Expect, Published: eff.Known, Shell: rules.Settings.Shell, Box: box, Quiet: quiet, Process: s.process(), Processes: processes{v}, Reading: reading{v}, Catalog: catalog(rules.Tools), Commands: commands, Input: input, Sink: s}, err
}

// shown is head and tail of a text that is longer than the model is shown; the
// whole is kept then.
func (e *Performers) shown(ctx context.Context, spec belay.ToolSpec, text string) (string, *belay.Ref, error) {
	limit := spec.OutputLimit
	if limit <= 0 {
		limit = tool.DefaultOutputLimit
	}
	if len(text) <= limit {
		return text, nil, nil
	}
	ref, err := e.c.Store.Put(ctx, []byte(text), "text/plain")
	if err != nil {
		return "", nil, err
	}
	head := strings.ToValidUTF8(text[:limit/2], "")
	tail := text[len(text)-limit/2:]
	tail = strings.ToValidUTF8(tail, "")
	return fmt.Sprintf("%s\n[… %d bytes left out; the whole is %s …]\n%s", head, len(text)-len(head)-len(tail), ref.Digest.Short(), tail), &ref, nil
}

// failure is the fact of a call that failed. known is false when the process
// shuts down and the next one may simply run the call again.
func (v *performer) failure(ctx context.Context, run *engine.Run, eff core.RunTool, spec belay.ToolSpec, err error) (p event.ToolFailed, taken secret.Taken, known bool) {
	p = event.ToolFailed{Name: eff.Name, Attempt: eff.Attempt, Final: true}
	te, isTool := errors.AsType[*tool.Error](err)
	switch {
	case ctx.Err() != nil && (spec.Effect == belay.Pure || spec.Effect == belay.Idempotent):
		// Nothing was changed: an interrupted turn records it, a leaving process needn't.
		p.Problem = event.Problem{Class: "cancelled", Code: "CANCELLED", Message: eff.Name + " was cancelled"}
		return p, taken, !run.Leaving()
	case ctx.Err() != nil:
		p.Problem = event.Problem{Class: "cancelled", Code: "CANCELLED", Message: eff.Name + " was stopped before it ended"}
	case isTool:
		p.Problem = te.Problem
	default:
		p.Problem = event.Problem{Class: tool.Internal, Code: "INTERNAL", Message: err.Error()}
	}
	if isTool {
		p.Files, p.Whole = te.Files, te.Output
		var text string
		text, taken = v.e.c.Secrets.Text(strings.ToValidUTF8(te.Text, "\uFFFD"))
		text, cut, err := v.e.shown(context.WithoutCancel(ctx), spec, text)
		if err == nil {
			if p.Whole == nil {
				p.Whole = cut
			}
			p.Output, _ = v.e.content(context.WithoutCancel(ctx), text, "text/plain")
		}
	}
	clean := v.e.c.Secrets.String // before it is cut: half a secret is one too
	p.Problem.Message, p.Problem.Hint = event.CutText(clean(p.Problem.Message), 4000), event.CutText(clean(p.Problem.Hint), 1000)
	if at, again := thread.ToolRetryAt(v.e.c.Now().UTC().Truncate(time.Microsecond), spec, eff.Attempt, p.Problem); again {
		p.Final, p.RetryAt = false, at
	}
	blocked(&p)
	return p, taken, true
}

// sink is where a running call's facts and content go.
type sink struct {
	v       *performer
	run     *engine.Run
	ctx     context.Context
	ids     belay.IDs
	attempt int
	procs   int
	cut     secret.Taken // of parts of contents
	told    progress
}

var _ tool.Sink = (*sink)(nil)

func (s *sink) fact(p event.Payload) core.Fact {
	ids := s.ids
	switch p := p.(type) {
	case event.ProcessStarted:
		s.procs++
		ids.Process = s.process()
	case event.ArtifactChanged:
		if p.Kind == "artifact" {
			ids.Artifact = artifactID(ids.Thread, p.Name)
		}
	case event.ProcessOutput, event.ProcessInput, event.ProcessCompleted, event.ProcessFailed, event.ProcessTerminated,
		event.ChannelConnected, event.ChannelDisconnected, event.ChannelResumed:
		ids.Process = s.process()
	}
	return core.Fact{IDs: ids, Data: p}
}

func (s *sink) process() belay.ProcessID {
	return belay.ProcessID(belay.DeriveID(belay.PrefixProcess, belay.StreamID(s.ids.Call), int64(s.attempt), max(s.procs, 1)))
}

func (s *sink) Fact(p event.Payload) { s.run.Record(s.fact(p)) }

func (s *sink) Durable(p event.Payload) error {
	return s.run.RecordDurably(s.fact(p))
}

func (s *sink) Keep(content []byte, media string) (belay.Ref, error) {
	if s.v.e.c.Secrets.Holds(content) {
		return belay.Ref{}, tool.ErrHoldsSecret
	}
	return s.v.e.c.Store.Put(context.WithoutCancel(s.ctx), content, media)
}

func (s *sink) Kept(d belay.Digest) ([]byte, error) {
	return s.v.e.c.Store.Get(context.WithoutCancel(s.ctx), d)
}

func (s *sink) Part(d belay.Digest, offset, n int64) ([]byte, error) {
	return store.Part(context.WithoutCancel(s.ctx), s.v.e.c.Store, d, offset, n)
}

func (s *sink) Scrub(w io.Writer) io.WriteCloser {
	return &scrubbed{Writer: s.v.e.c.Secrets.Writer(w), sink: s}
}

// scrubbed is an output without secrets. Its end is when what was taken out is
// recorded.
type scrubbed struct {
	*secret.Writer
	sink *sink
}

func (w *scrubbed) Close() error {
	err := w.Writer.Close()
	w.sink.redacted(w.Taken(), nil)
	return err
}

// redacted records what was taken out of an output.
func (s *sink) redacted(t secret.Taken, ref *belay.Ref) {
	if t.Count > 0 {
		s.Fact(redacted(t, ref))
	}
}

func redacted(t secret.Taken, ref *belay.Ref) event.OutputRedacted {
	return event.OutputRedacted{Count: t.Count, Rules: t.Rules, Ref: ref}
}

func (s *sink) Cut(content []byte) func(from, to int) []byte {
	return s.v.e.c.Secrets.Cut(content, &s.cut)
}

func (s *sink) Restore(text string, content []byte) (restored, unknown string) {
	return s.v.e.c.Secrets.Restore(text, content)
}

func (s *sink) Output(media string) (tool.OutputWriter, error) {
	w, err := s.v.e.c.Store.Writer(context.WithoutCancel(s.ctx), media)
	if err != nil {
		return nil, err
	}
	return &output{BlobWriter: w, clean: s.v.e.c.Secrets.Writer(w), sink: s}, nil
}

// output is a blob in the making, without the secrets of what is written.
type output struct {
	store.BlobWriter
	clean *secret.Writer
	sink  *sink
}

func (o *output) Write(p []byte) (int, error) { return o.clean.Write(p) }

func (o *output) Commit() (belay.Ref, error) {
	if err := o.clean.Close(); err != nil {
		return belay.Ref{}, err
	}
	ref, err := o.BlobWriter.Commit()
	if err == nil {
		o.sink.redacted(o.clean.Taken(), &ref)
	}
	return ref, err
}

func (s *sink) Print(offset int64, text string) {
	s.v.e.c.Live(event.Delta{Stream: s.v.stream, IDs: s.ids, Kind: "progress", Attempt: s.attempt, Offset: offset, Text: text})
}
