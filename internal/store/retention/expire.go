package retention

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Keeper is a store that outputs are taken from.
type Keeper interface {
	Source
	store.Owners
	store.Lanes
	Append(ctx context.Context, b ...store.Batch) ([]store.Position, error)
	Head(ctx context.Context, s belay.StreamID) (store.Head, error)
	// NeededBesides finds the contents that are referenced otherwise than as an
	// output.
	NeededBesides(ctx context.Context, digests []belay.Digest) (map[belay.Digest]bool, error)
}

// OutputChoice is an output that is to go.
type OutputChoice struct {
	Output
	Why  string
	Kept string // why it stays after all; empty: every session that names it has let it go
}

// ExpiryTarget is a request that outputs expire.
type ExpiryTarget struct {
	Reason string // retention, asked
	By     string // the requester; empty: retention
	Owner  store.Owner
	DryRun bool // nothing is written
	Most   int  // how many outputs expire at once, the first ones; 0: all
}

// Due are the outputs that expire under a policy, and why, the oldest first.
func (p Outputs) Due(now time.Time, all []Output) (due []OutputChoice) {
	there, total := make([]Output, 0, len(all)), int64(0)
	for _, o := range all {
		if !o.Gone() {
			there, total = append(there, o), total+o.Bytes
		}
	}
	slices.SortStableFunc(there, func(a, b Output) int { return a.Recorded.Compare(b.Recorded) })
	shrink := p.Bytes > 0 && total > p.Bytes
	for _, o := range there {
		why := ""
		switch age := now.Sub(o.Recorded); {
		case p.Age > 0 && age > time.Duration(p.Age):
			why = "older than " + days(time.Duration(p.Age))
		case shrink && total > p.Bytes/100*highWater:
			why = "outputs took more than " + Size(p.Bytes)
		default:
			continue
		}
		total -= o.Bytes
		due = append(due, OutputChoice{Output: o, Why: why})
	}
	return due
}

// Later is why an output stays that was beyond what goes at once.
const Later = "enough go at once: it is one of the next"

const (
	lease = 15 * time.Second
	most  = 100 // facts in an append
)

// Expire writes the facts that let outputs go, and says of each whether it
// could. The bytes are the store's to remove then. An output that something else
// needs stays, and so does one of a session that a live process drives: only
// that process may write there.
func Expire(ctx context.Context, k Keeper, w ExpiryTarget, chosen []OutputChoice) ([]OutputChoice, error) {
	chosen = slices.Clone(chosen)
	if err := needed(ctx, k, chosen); err != nil {
		return nil, err
	}
	if err := driven(ctx, k, chosen); err != nil {
		return chosen, err
	}
	w.bound(chosen)
	if w.DryRun {
		return chosen, nil
	}
	var sessions []belay.SessionID
	facts := map[belay.SessionID][]event.OutputExpired{}
	for _, c := range chosen {
		if c.Kept != "" {
			continue
		}
		for _, n := range c.Named {
			if n.Expired != nil {
				continue
			}
			if facts[n.Session] == nil {
				sessions = append(sessions, n.Session)
			}
			facts[n.Session] = append(facts[n.Session], event.OutputExpired{Digest: c.Digest, Bytes: c.Bytes, Owner: n.Owner,
				Reason: w.Reason, Why: event.CutText(c.Why, 1000), By: w.By, Since: n.Recorded})
		}
	}
	for _, s := range sessions {
		kept, err := record(ctx, k, w, s, facts[s])
		if err != nil {
			return chosen, err
		}
		for i := range chosen {
			if kept != "" && chosen[i].Kept == "" && slices.ContainsFunc(chosen[i].Named, func(n Naming) bool { return n.Session == s && n.Expired == nil }) {
				chosen[i].Kept = kept
			}
		}
	}
	return chosen, nil
}

// bound leaves what is more than goes at once. Those that stay anyway don't count,
// or the same ones would stand before all others for ever.
func (w ExpiryTarget) bound(chosen []OutputChoice) {
	n := 0
	for i := range chosen {
		if chosen[i].Kept != "" || w.Most == 0 {
			continue
		}
		if n++; n > w.Most {
			chosen[i].Kept = Later
		}
	}
}

// needed finds the outputs that are something else too.
func needed(ctx context.Context, k Keeper, chosen []OutputChoice) error {
	var digests []belay.Digest
	for _, c := range chosen {
		digests = append(digests, c.Digest)
	}
	other, err := k.NeededBesides(ctx, digests)
	for i := range chosen {
		if chosen[i].Kept == "" && other[chosen[i].Digest] {
			chosen[i].Kept = "something else needs the same content"
		}
	}
	return err
}

// driven finds the outputs of sessions that are driven.
func driven(ctx context.Context, k Keeper, chosen []OutputChoice) error {
	known := map[belay.SessionID]bool{}
	for i := range chosen {
		for _, n := range chosen[i].Named {
			is, asked := known[n.Session]
			if !asked {
				o, err := k.OwnerOf(ctx, n.Session)
				if err != nil {
					return err
				}
				is = o != nil
				known[n.Session] = is
			}
			if is && n.Expired == nil && chosen[i].Kept == "" {
				chosen[i].Kept = drives(n.Session)
			}
		}
	}
	return nil
}

func drives(s belay.SessionID) string { return "a process drives " + string(s) }

// record appends facts to a session's stream. What is wanted in it doesn't change
// by them, so its lane stays as it is.
func record(ctx context.Context, k Keeper, w ExpiryTarget, s belay.SessionID, all []event.OutputExpired) (kept string, err error) {
	epoch, err := k.Claim(ctx, s, w.Owner, lease)
	if _, owned := errors.AsType[*store.OwnedError](err); owned {
		return drives(s), nil
	}
	if belay.CodeOf(err) == belay.CodeDeleted {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, k.Release(context.WithoutCancel(ctx), s, epoch)) }()
	b := store.Batch{Session: s, Stream: s.Stream(), Epoch: epoch}
	head, err := k.Head(ctx, b.Stream)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return string(s) + " has no facts of its own", nil
		}
		return "", err
	}
	lanes, err := k.Lanes(ctx, s)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(lanes, func(l store.LaneRow) bool { return l.Stream == b.Stream }); i >= 0 {
		b.Lane = lanes[i].Lane
	}
	b.After = head.Seq
	for part := range slices.Chunk(all, most) {
		b.Events = nil
		for i, p := range part {
			b.Events = append(b.Events, event.Envelope{Stream: b.Stream, Seq: b.After + int64(i) + 1, IDs: belay.IDs{Session: s}, Data: p})
		}
		if _, err := k.Append(ctx, b); err != nil {
			return "", err
		}
		b.After += int64(len(part))
	}
	return "", nil
}

// Find returns the outputs with a name: a digest or its beginning, the process
// that printed it, or the call.
func Find(all []Output, name string) (found []Output) {
	for _, o := range all {
		d := strings.TrimPrefix(string(o.Digest), "sha256:")
		if hex := strings.TrimPrefix(name, "sha256:"); len(hex) >= 8 && strings.HasPrefix(d, hex) ||
			slices.ContainsFunc(o.Named, func(n Naming) bool { return string(n.Process) == name || string(n.Call) == name }) {
			found = append(found, o)
		}
	}
	return found
}
