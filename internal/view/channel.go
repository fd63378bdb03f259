package view

import (
	"context"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Channel is a peer of the server, as facts say. Whether it follows now only the
// process knows that it is connected to.
type Channel struct {
	ID           string          `json:"channelId"`
	Connected    bool            `json:"connected"` // no fact records that it left
	Transport    string          `json:"transport"`
	Peer         string          `json:"peerRole"`
	Protocol     string          `json:"nativeProtocol,omitempty"`
	Account      string          `json:"account"`
	Capabilities []string        `json:"capabilities"`
	Follows      belay.SessionID `json:"sessionId,omitempty"`
	Resume       belay.Digest    `json:"resumeTokenRef"`
	Since        time.Time       `json:"since"`    // of its first connection
	LastSeen     time.Time       `json:"lastSeen"` // its last fact
	Acknowledged store.Position  `json:"acknowledged"`
	Resumed      int             `json:"resumed"` // how often it came back
	Gaps         int             `json:"gaps"`    // how often that with a gap
	Reason       string          `json:"reason,omitempty"`

	Pending  []belay.ActionID `json:"pending"`  // questions that went to it and whose decision didn't return
	Returned int              `json:"returned"` // decisions that came back through it
}

// maxPending bounds the questions that a channel's row lists: the newest stay.
const maxPending = 200

// Apply folds a fact of the channel.
func (c *Channel) Apply(rec store.Record) {
	e := rec.Event
	if c.ID == "" {
		*c = Channel{ID: e.IDs.Channel, Since: e.Time, Capabilities: []string{}, Pending: []belay.ActionID{}}
	}
	c.LastSeen = e.Time
	switch p := e.Data.(type) {
	case event.ChannelConnected:
		c.Transport, c.Peer, c.Protocol, c.Account, c.Follows, c.Resume = p.Transport, p.Peer, p.Protocol, p.Account, p.Follows, p.Resume
		c.Capabilities = append([]string{}, p.Capabilities...)
		c.Connected, c.Reason = true, ""
	case event.ChannelResumed:
		c.Connected, c.Reason = true, ""
		c.Acknowledged = store.Position(p.After)
		if c.Resumed++; p.Gap {
			c.Gaps++
		}
	case event.ChannelDisconnected:
		c.Connected, c.Reason = false, p.Reason
	case event.ChannelMessage:
		if p.Kind == "ack" {
			c.Acknowledged = max(c.Acknowledged, store.Position(p.Acknowledged))
		}
	case event.ChannelPermissionForwarded:
		c.Pending = newest(append(c.Pending, e.IDs.Action), maxPending)
	case event.ChannelPermissionReturned:
		c.Returned++
		c.Pending = slices.DeleteFunc(c.Pending, func(id belay.ActionID) bool { return id == e.IDs.Action })
	}
}

// channel folds a fact of a channel into its row.
func (f *sessionsFolding) channel(ctx context.Context, rec store.Record) error {
	id := rec.Event.IDs.Channel
	var c Channel
	there, err := f.row(ctx, channelKey+id, &c)
	if err == nil && !there {
		err = f.list(ctx, id)
	}
	if err != nil {
		return err
	}
	c.Apply(rec)
	return f.put(channelKey+id, &c)
}

// list adds a channel to the list of all.
func (f *sessionsFolding) list(ctx context.Context, id string) error {
	var ids []string
	if _, err := f.row(ctx, channels, &ids); err != nil {
		return err
	}
	return f.put(channels, append(ids, id))
}

// ChannelByID is a channel by its whole id; belay.CodeNotFound when there is none.
func ChannelByID(ctx context.Context, st store.Store, id string) (Channel, error) {
	var c Channel
	there, err := row(ctx, st, channelKey+id, &c)
	if err == nil && !there {
		err = belay.Errorf(belay.CodeNotFound, "there is no channel %s", id).WithHint("reconnect_channel registers one; GET /v1/channels lists them")
	}
	return c, err
}

// Channels are all channels, in the order in which they came.
func Channels(ctx context.Context, st store.Store) ([]Channel, error) {
	var ids []string
	if _, err := row(ctx, st, channels, &ids); err != nil {
		return nil, err
	}
	out := make([]Channel, len(ids))
	for i, id := range ids {
		var err error
		if out[i], err = ChannelByID(ctx, st, id); err != nil {
			return nil, err
		}
	}
	return out, nil
}
