package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/policy/simulate"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/transfer/bundle"
	"github.com/belay-run/belay/internal/view"
)

// recordedCalls selects the recorded calls of a command.
type recordedCalls struct {
	Of  string `arg:"" optional:"" name:"session" help:"A session, the beginning of its id, or a bundle that belay export wrote; without it, the sessions of this workspace."`
	All bool   `short:"a" help:"Every session of the store."`
}

type policyReplayCmd struct {
	recordedCalls
	ruleFiles
	Counts bool `short:"c" help:"Only how many verdicts change, not each."`
}

// replayed is a changed verdict, as JSON.
type replayed struct {
	Session belay.SessionID `json:"session"`
	Call    belay.CallID    `json:"call"`
	Event   belay.EventID   `json:"event"`
	simulate.Row
	Cause string `json:"cause"` // rules, or build
	What  string `json:"what"`  // the call in a few words
}

// replaySum is what came of all, as JSON.
type replaySum struct {
	simulate.Tally
	Rows []simulate.Counted `json:"rows"`
}

func (c *policyReplayCmd) run(ctx context.Context, a *app) (int, error) {
	r, err := a.newReplay(ctx, c.recordedCalls, c.ruleFiles)
	if err != nil {
		return 0, err
	}
	defer r.close()
	var t simulate.Tally
	err = r.each(ctx, func(k *simulate.Case) error {
		set, err := r.rules(ctx, k)
		if err != nil {
			return err
		}
		if ch := t.Take(k, set); ch != nil && !c.Counts {
			printChange(&a.Env, ch)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	printReplay(&a.Env, &t)
	return belay.ExitOK, nil
}

// replay reads recorded calls, and knows the rules that they are held against.
type replay struct {
	a     *app
	of    recordedCalls
	files ruleFiles
	sets  map[string]*policy.Set // by workspace
	store store.Store
	file  *importFile
	from  *bundle.Bundle
	ids   []belay.SessionID
}

// newReplay opens what calls are read from.
func (a *app) newReplay(ctx context.Context, of recordedCalls, files ruleFiles) (*replay, error) {
	if of.Of != "" && of.All {
		return nil, belay.Errorf(belay.CodeUsage, "--all takes every session, and one is named").At(term.Line(of.Of)).WithHint("leave one of them out")
	}
	r := &replay{a: a, of: of, files: files, sets: map[string]*policy.Set{}}
	if _, err := a.setOf(ctx, r.sets, "", files); err != nil { // files that can't be read are said before anything else is done
		return nil, err
	}
	if of.Of != "" {
		if info, err := os.Stat(a.environment().Abs(of.Of)); err == nil && info.Mode().IsRegular() {
			return r, r.bundle(ctx)
		}
	}
	var err error
	if r.store, err = a.open(ctx, false); err != nil {
		return nil, err
	}
	if r.ids, err = r.sessions(ctx); err != nil {
		return nil, errors.Join(err, r.store.Close())
	}
	return r, nil
}

func (r *replay) bundle(ctx context.Context) (err error) {
	if r.file, err = r.a.openImport(r.of.Of); err != nil {
		return err
	}
	if r.from, err = bundle.Open(ctx, r.file.file, r.file.size, r.a.secrets()); err != nil {
		return errors.Join(err, r.file.close())
	}
	return nil
}

func (r *replay) close() {
	if r.file != nil {
		_ = r.file.close() // it was only read
	}
	if r.store != nil {
		_ = r.store.Close()
	}
}

// sessions are those that are looked at, oldest first.
func (r *replay) sessions(ctx context.Context) ([]belay.SessionID, error) {
	if r.of.Of != "" {
		id, err := r.a.sessionID(ctx, r.store, r.of.Of, false)
		return []belay.SessionID{id}, err
	}
	f := view.Filter{}
	if !r.of.All {
		ws, err := r.a.workspace()
		if err != nil {
			return nil, err
		}
		f.Workspace = ws
	}
	all, err := sessions.List(ctx, r.store, f)
	if err != nil {
		return nil, err
	}
	ids := make([]belay.SessionID, len(all))
	for i, s := range all {
		ids[len(all)-1-i] = s.ID
	}
	return ids, nil
}

// each hands on every recorded decision, session by session.
func (r *replay) each(ctx context.Context, take func(*simulate.Case) error) error {
	if r.from != nil {
		get := func(d belay.Digest) ([]byte, error) { return orGone(r.from.Get(d)) }
		return decisions(ctx, r.from.Manifest.Runtime, r.from.Manifest.Session, r.from.Facts(ctx), get, take)
	}
	end, err := r.store.End(ctx)
	if err != nil {
		return err
	}
	get := func(d belay.Digest) ([]byte, error) { return orGone(r.store.Get(ctx, d)) }
	for _, id := range r.ids {
		if err := decisions(ctx, r.store.Runtime(), id, r.store.Stored(ctx, id, end), get, take); err != nil {
			return err
		}
	}
	return nil
}

func orGone(b []byte, err error) ([]byte, error) {
	if errors.Is(err, store.ErrNotFound) {
		return nil, simulate.ErrGone
	}
	return b, err
}

// decisions folds one session's facts.
func decisions(ctx context.Context, runtime belay.RuntimeID, id belay.SessionID, facts iter.Seq2[store.Stored, error], get simulate.Content, take func(*simulate.Case) error) error {
	reader := simulate.NewReader(get)
	for e, err := range ahead(ctx, runtime, id, facts) {
		if err != nil {
			return err
		}
		k, err := reader.Apply(e)
		if err != nil {
			return err
		}
		if k == nil {
			continue
		}
		if err := take(k); err != nil {
			return err
		}
	}
	return nil
}

// unpacked is a part of a session on its way from the store to the fold.
type unpacked struct {
	facts []event.Envelope
	err   error
}

// Of how many facts a part has, and how many parts wait: what a replay holds of a
// log at once.
const (
	partFacts = 256
	partsWait = 4
)

// ahead reads and decodes the facts that matter while those before are judged.
func ahead(ctx context.Context, runtime belay.RuntimeID, id belay.SessionID, facts iter.Seq2[store.Stored, error]) iter.Seq2[event.Envelope, error] {
	return func(yield func(event.Envelope, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		parts := make(chan unpacked, partsWait)
		defer func() { // the reader is gone before this returns
			stop()
			for range parts { //nolint:revive // it is only emptied
			}
		}()
		go func() {
			defer close(parts)
			unpack(ctx, runtime, id, facts, parts)
		}()
		for p := range parts {
			for _, e := range p.facts {
				if !yield(e, nil) {
					return
				}
			}
			if p.err != nil {
				yield(event.Envelope{}, p.err)
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(event.Envelope{}, err)
		}
	}
}

func unpack(ctx context.Context, runtime belay.RuntimeID, id belay.SessionID, facts iter.Seq2[store.Stored, error], parts chan<- unpacked) {
	var p unpacked
	send := func() bool {
		select {
		case parts <- p:
			p = unpacked{}
			return true
		case <-ctx.Done():
			return false
		}
	}
	for f, err := range facts {
		var e event.Envelope
		if err == nil {
			if !strings.HasPrefix(string(f.Stream), "thread/") || !simulate.Needed(f.Row.Type) {
				continue
			}
			e, err = f.Row.Unpack(runtime, id, f.Stream)
		}
		if err != nil {
			p.err = err
			break
		}
		if p.facts = append(p.facts, e); len(p.facts) == partFacts && !send() {
			return
		}
	}
	send()
}

// rules are those that a call is held against: of its workspace, as the files
// are now.
func (r *replay) rules(ctx context.Context, k *simulate.Case) (*policy.Set, error) {
	return r.a.setOf(ctx, r.sets, k.Request.Workspace, r.files)
}

// setOf is setFor, made once for each workspace. A workspace that is gone has
// no rules of its own.
func (a *app) setOf(ctx context.Context, made map[string]*policy.Set, ws string, files ruleFiles) (*policy.Set, error) {
	if set := made[ws]; set != nil {
		return set, nil
	}
	p, err := a.workspaces().get(ctx, ws)
	if err != nil {
		return nil, err
	}
	set, err := a.setFor(ctx, p, files)
	if err == nil {
		made[ws] = set
	}
	return set, err
}

func printChange(e *term.Env, ch *simulate.Change) {
	k := ch.Case
	row := simulate.Row{Tool: k.Recorded.Tool, Old: ch.Old, OldRule: ch.OldRule, New: ch.New, NewRule: ch.NewRule}
	what := simulate.About(k.Request)
	if e.JSON {
		e.PrintJSON(replayed{Session: k.IDs.Session, Call: k.IDs.Call, Event: k.Event, Row: row, Cause: ch.Cause, What: what})
		return
	}
	because := ""
	if ch.Cause == "build" {
		because = "  (this build reads the call otherwise; the rules of its day say so too)"
	}
	fmt.Fprintf(e.Out, "%s → %s  %s %s  %s%s\n", ch.Old, ch.New, term.Line(row.Tool), term.Line(what), term.Line(string(k.IDs.Call)), because)
}

func printReplay(e *term.Env, t *simulate.Tally) {
	if e.JSON {
		e.PrintJSON(replaySum{*t, t.Rows()})
		return
	}
	rows := t.Rows()
	if len(rows) > 0 {
		fmt.Fprintf(e.Out, "\n%6s  %s\n", "COUNT", "TOOL: OLD (RULE) → NEW (RULE)")
	}
	for _, r := range rows {
		fmt.Fprintf(e.Out, "%6d  %s: %s (%s) → %s (%s)\n", r.Count, term.Line(r.Tool), r.Old, term.Line(r.OldRule), r.New, term.Line(r.NewRule))
	}
	if t.Others > 0 {
		fmt.Fprintf(e.Out, "%6d  in other rows\n", t.Others)
	}
	fmt.Fprintf(e.Out, "%s: %d changed, %d the same, %d the same by another rule, %d not judged again\n", term.Plural(t.Decisions, "decision"), t.Changed, t.Same, t.OtherRule, t.Unjudged())
	for _, why := range slices.Sorted(maps.Keys(t.Lost)) {
		fmt.Fprintf(e.Out, "  %d not judged again: %s\n", t.Lost[why], simulate.LostWords[why])
	}
}
