package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/problem"
	"github.com/belay-run/belay/internal/view"
)

// peers are the channels of a tenant that follow now, and the questions that went
// to them.
type peers struct {
	one sync.Mutex // held while a channel is looked at and changed

	mu    sync.Mutex
	open  map[string]int                     // streams of each channel
	asked map[string]map[belay.ActionID]bool // forwarded, and not returned
}

// peer is the channel that a stream's request comes through.
type peer struct {
	id     string
	by     string // the principal
	bridge bool   // questions are forwarded to it
}

type peerKey struct{}

// enter counts a stream of a channel; it reports whether it is the first.
func (p *peers) enter(row *view.Channel) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open, p.asked = map[string]int{}, map[string]map[belay.ActionID]bool{}
	}
	if p.open[row.ID]++; p.open[row.ID] > 1 {
		return false
	}
	asked := map[belay.ActionID]bool{}
	for _, id := range row.Pending {
		asked[id] = true
	}
	p.asked[row.ID] = asked
	return true
}

// leave is the inverse of enter; it reports whether it was the last.
func (p *peers) leave(id string) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[id]--; p.open[id] > 0 {
		return false
	}
	delete(p.open, id)
	delete(p.asked, id)
	return true
}

func (p *peers) following(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[id]
}

// forwarding notes that a question goes to a channel, unless it did before.
func (p *peers) forwarding(id string, a belay.ActionID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked[id]
	if asked == nil || asked[a] {
		return false
	}
	asked[a] = true
	return true
}

// returning takes back what forwarding noted; false: there was nothing, or its
// decision returned already.
func (p *peers) returning(id string, a belay.ActionID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.asked[id][a]
	delete(p.asked[id], a)
	return had
}

// follows answers a stream that a channel follows. That it came back, and that it
// left, are facts.
func (t *tenant) follows(w http.ResponseWriter, r *http.Request, id string, stream http.HandlerFunc) {
	p, _ := auth.From(r.Context())
	row, first, err := t.enter(r.Context(), &request{tenant: t, by: p}, id)
	if err != nil {
		problem.Write(w, r, problem.At("header "+channelHeader, err))
		return
	}
	defer t.left(context.WithoutCancel(r.Context()), id)
	if first && !row.Connected {
		if err := t.noteChannel(r.Context(), id, "", event.ChannelResumed{After: int64(row.Acknowledged)}); err != nil {
			problem.Write(w, r, err)
			return
		}
	}
	who := &peer{id: id, by: p.String(), bridge: slices.Contains(row.Capabilities, bridge)}
	stream(w, r.WithContext(context.WithValue(r.Context(), peerKey{}, who)))
}

func (t *tenant) enter(ctx context.Context, r *request, id string) (row view.Channel, first bool, err error) {
	if err := belay.CheckID("the channel", id); err != nil {
		return row, false, err
	}
	t.peers.one.Lock()
	defer t.peers.one.Unlock()
	if row, err = r.mine(ctx, id); err != nil {
		return row, false, err
	}
	return row, t.peers.enter(&row), nil
}

// left records that a channel has no stream any more.
func (t *tenant) left(ctx context.Context, id string) {
	t.peers.one.Lock()
	defer t.peers.one.Unlock()
	if !t.peers.leave(id) {
		return
	}
	if err := t.noteChannel(ctx, id, "", event.ChannelDisconnected{Reason: "closed", LastSeen: t.now().UTC()}); err != nil {
		t.log.Warn("channel", "channel", id, "error", err.Error())
	}
}

// forget records of channels that were there when the server before this one was
// killed that they aren't any more.
func (t *tenant) forget(ctx context.Context) {
	t.peers.one.Lock()
	defer t.peers.one.Unlock()
	err := t.Reads.Views.Catchup(ctx)
	var all []view.Channel
	if err == nil {
		all, err = view.Channels(ctx, t.Store)
	}
	for _, c := range all {
		if c.Connected && t.peers.following(c.ID) == 0 && err == nil {
			err = t.noteChannel(ctx, c.ID, "", event.ChannelDisconnected{Reason: "failed", LastSeen: c.LastSeen})
		}
	}
	if err != nil && ctx.Err() == nil {
		t.log.Warn("channels", "error", err.Error())
	}
}

// given looks at what was written to a channel that takes questions: one that is
// open was forwarded, one that was decided has returned.
func (t *tenant) given(ctx context.Context, kind string, data []byte) {
	who, ok := ctx.Value(peerKey{}).(*peer)
	if !ok || !who.bridge || kind != "action.required" && kind != "action.resolved" {
		return
	}
	var f event.Envelope
	err := json.Unmarshal(data, &f)
	if err == nil {
		err = t.carried(ctx, who, f)
	}
	if err != nil && ctx.Err() == nil {
		t.log.Warn("channel", "channel", who.id, "error", err.Error())
	}
}

func (t *tenant) carried(ctx context.Context, who *peer, f event.Envelope) error {
	if d, ok := f.Data.(event.ActionResolved); ok {
		if !t.peers.returning(who.id, f.IDs.Action) {
			return nil
		}
		p := event.ChannelPermissionReturned{Peer: who.by, Decision: d.Decision, By: d.By, Scope: d.Scope}
		if d.By == "deadline" {
			p.Decision = "timeout"
		}
		return t.noteChannel(ctx, who.id, f.IDs.Action, p)
	}
	th, err := t.thread(ctx, f.IDs.Thread)
	if err != nil {
		return err
	}
	open := openAction(th, f.IDs.Action)
	if open == nil || open.Kind != "permission" || !t.peers.forwarding(who.id, open.ID) { // it is history
		return nil
	}
	return t.noteChannel(ctx, who.id, open.ID, event.ChannelPermissionForwarded{Peer: who.by, Tool: open.Tool, ArgsHash: open.ArgsHash, Until: open.Until})
}

// returned records the answer that a channel gave to a question, also one that
// was refused.
func (r *request) returned(ctx context.Context, in *RespondAction, refused error) error {
	if r.channel == "" {
		return nil
	}
	p := event.ChannelPermissionReturned{Peer: r.by.String(), Decision: in.Decision, By: r.by.String(), Scope: in.Scope}
	if refused != nil {
		p.Decision, p.Reason = "failed", string(codeOf(refused))
	} else if !r.peers.returning(r.channel, in.Action) {
		return nil // it was seen coming back, or never went out
	}
	return r.noteChannel(ctx, r.channel, in.Action, p)
}
