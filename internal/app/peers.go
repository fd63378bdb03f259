package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/view"
)

// Peers are the channels that follow now, and the questions that went
// to them.
type Peers struct {
	One sync.Mutex // held while a channel is looked at and changed

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
func (p *Peers) enter(row *view.Channel) (first bool) {
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
func (p *Peers) leave(id string) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[id]--; p.open[id] > 0 {
		return false
	}
	delete(p.open, id)
	delete(p.asked, id)
	return true
}

// Following returns how many streams of a channel are open.
func (p *Peers) Following(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[id]
}

// forwarding notes that a question goes to a channel, unless it did before.
func (p *Peers) forwarding(id string, a belay.ActionID) bool {
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
func (p *Peers) returning(id string, a belay.ActionID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.asked[id][a]
	delete(p.asked[id], a)
	return had
}

// Follow counts a stream that the caller's channel follows, and records that the
// channel came back. The stream runs under the context that it returns; Unfollow is
// its inverse.
func (c *Call) Follow(ctx context.Context, id string) (context.Context, error) {
	row, first, err := c.enter(ctx, id)
	if err != nil {
		return nil, input.At("header "+ChannelHeader, err)
	}
	if first && !row.Connected {
		if err := c.Note(ctx, id, "", event.ChannelResumed{After: int64(row.Acknowledged)}); err != nil {
			return nil, errors.Join(err, c.Unfollow(context.WithoutCancel(ctx), id))
		}
	}
	who := &peer{id: id, by: c.By.String(), bridge: slices.Contains(row.Capabilities, Bridge)}
	return context.WithValue(ctx, peerKey{}, who), nil
}

func (c *Call) enter(ctx context.Context, id string) (row view.Channel, first bool, err error) {
	if err := belay.CheckID("the channel", id); err != nil {
		return row, false, err
	}
	c.Peers.One.Lock()
	defer c.Peers.One.Unlock()
	if row, err = c.OwnChannel(ctx, id); err != nil {
		return row, false, err
	}
	return row, c.Peers.enter(&row), nil
}

// Unfollow records that a channel left, if it has no other stream.
func (r *Runtime) Unfollow(ctx context.Context, id string) error {
	r.Peers.One.Lock()
	defer r.Peers.One.Unlock()
	if !r.Peers.leave(id) {
		return nil
	}
	return r.Note(ctx, id, "", event.ChannelDisconnected{Reason: "closed", LastSeen: r.Now().UTC()})
}

// DisconnectStale records of channels that followed when a process was killed that
// they don't follow any more.
func (r *Runtime) DisconnectStale(ctx context.Context) error {
	r.Peers.One.Lock()
	defer r.Peers.One.Unlock()
	if err := r.Reads.Views.Catchup(ctx); err != nil {
		return err
	}
	all, err := view.Channels(ctx, r.Store)
	for _, c := range all {
		if c.Connected && r.Peers.Following(c.ID) == 0 && err == nil {
			err = r.Note(ctx, c.ID, "", event.ChannelDisconnected{Reason: "failed", LastSeen: c.LastSeen})
		}
	}
	return err
}

// Given is called with what was written to a stream. To a channel that takes
// questions, an open one was forwarded by it, and one that was decided has returned.
func (r *Runtime) Given(ctx context.Context, kind string, data []byte) error {
	who, ok := ctx.Value(peerKey{}).(*peer)
	if !ok || !who.bridge || kind != "action.required" && kind != "action.resolved" {
		return nil
	}
	var f event.Envelope
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("channel %s: %w", who.id, err)
	}
	if err := r.carried(ctx, who, f); err != nil {
		return fmt.Errorf("channel %s: %w", who.id, err)
	}
	return nil
}

func (r *Runtime) carried(ctx context.Context, who *peer, f event.Envelope) error {
	if d, ok := f.Data.(event.ActionResolved); ok {
		if !r.Peers.returning(who.id, f.IDs.Action) {
			return nil
		}
		p := event.ChannelPermissionReturned{Peer: who.by, Decision: d.Decision, By: d.By, Scope: d.Scope}
		if d.By == "deadline" {
			p.Decision = "timeout"
		}
		return r.Note(ctx, who.id, f.IDs.Action, p)
	}
	th, err := r.Thread(ctx, f.IDs.Thread)
	if err != nil {
		return err
	}
	open := OpenAction(th, f.IDs.Action)
	if open == nil || open.Kind != "permission" || !r.Peers.forwarding(who.id, open.ID) { // it is history
		return nil
	}
	return r.Note(ctx, who.id, open.ID, event.ChannelPermissionForwarded{Peer: who.by, Tool: open.Tool, ArgsHash: open.ArgsHash, Until: open.Until})
}

// Returned records the answer that a channel gave to a question, also one that was
// refused. Decision and scope are the answer's.
func (c *Call) Returned(ctx context.Context, action belay.ActionID, decision, scope string, refused error) error {
	if c.Channel == "" {
		return nil
	}
	p := event.ChannelPermissionReturned{Peer: c.By.String(), Decision: decision, By: c.By.String(), Scope: scope}
	if refused != nil {
		p.Decision, p.Reason = "failed", string(codeOf(refused))
	} else if !c.Peers.returning(c.Channel, action) {
		return nil // it was seen coming back, or never went out
	}
	return c.Note(ctx, c.Channel, action, p)
}

// ChannelRow returns what facts say of a channel.
func (r *Runtime) ChannelRow(ctx context.Context, id string) (view.Channel, error) {
	if err := r.Reads.Views.Catchup(ctx); err != nil {
		return view.Channel{}, err
	}
	return view.ChannelByID(ctx, r.Store, id)
}

// OwnChannel returns a channel of the caller.
func (c *Call) OwnChannel(ctx context.Context, id string) (view.Channel, error) {
	row, err := c.ChannelRow(ctx, id)
	if err == nil && row.Account != c.By.String() {
		err = belay.Errorf(belay.CodeForbidden, "the channel is registered by another account").At(id).WithHint("reconnect_channel with its resume token makes it yours")
	}
	return row, err
}

// checkChannel refuses a call through a channel that isn't its caller's.
func (c *Call) checkChannel(ctx context.Context) error {
	if c.Channel == "" {
		return nil
	}
	if err := input.Named("header "+ChannelHeader, c.Channel); err != nil {
		return err
	}
	_, err := c.OwnChannel(ctx, c.Channel)
	return input.At("header "+ChannelHeader, err)
}

// Note records what happened to a channel.
func (r *Runtime) Note(ctx context.Context, channel string, action belay.ActionID, p event.Payload) error {
	return r.Recorder.Note(ctx, belay.IDs{Channel: channel, Action: action}, p)
}

// ChannelHeader names the channel that a request comes through.
const ChannelHeader = "Belay-Channel"

// Bridge is the capability of a channel to which questions of the gate are forwarded.
const Bridge = "permissions"
