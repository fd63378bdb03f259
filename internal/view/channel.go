package view

import (
	"context"
	"encoding/json"
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
func (f *folding) channel(ctx context.Context, rec store.Record) error {
	key := channelKey + rec.Event.IDs.Channel
	data, folded := f.out[key]
	if !folded {
		var err error
		if data, err = f.st.ViewRow(ctx, name, key); err != nil {
			return err
		}
	}
	var c Channel
	if data != nil && json.Unmarshal(data, &c) != nil {
		return errUnreadable
	}
	if data == nil {
		if err := f.list(ctx, rec.Event.IDs.Channel); err != nil {
			return err
		}
	}
	c.Apply(rec)
	return f.put(key, &c)
}

// list adds a channel to the list of all.
func (f *folding) list(ctx context.Context, id string) error {
	data, folded := f.out[channels]
	if !folded {
		var err error
		if data, err = f.st.ViewRow(ctx, name, channels); err != nil {
			return err
		}
	}
	var ids []string
	if data != nil && json.Unmarshal(data, &ids) != nil {
		return errUnreadable
	}
	return f.put(channels, append(ids, id))
}

// ChannelByID is a channel by its whole id; belay.CodeNotFound when there is none.
func ChannelByID(ctx context.Context, st store.Store, id string) (Channel, error) {
	data, err := st.ViewRow(ctx, name, channelKey+id)
	if err == nil && data == nil {
		err = belay.Errorf(belay.CodeNotFound, "there is no channel %s", id).WithHint("reconnect_channel registers one; GET /v1/channels lists them")
	}
	var c Channel
	if err == nil && json.Unmarshal(data, &c) != nil {
		err = unreadable(channelKey+id, errUnreadable)
	}
	return c, err
}

// Channels are all channels, in the order in which they came.
func Channels(ctx context.Context, st store.Store) ([]Channel, error) {
	data, err := st.ViewRow(ctx, name, channels)
	if err != nil {
		return nil, err
	}
	var ids []string
	if data != nil && json.Unmarshal(data, &ids) != nil {
		return nil, unreadable(channels, errUnreadable)
	}
	out := make([]Channel, 0, len(ids))
	for _, id := range ids {
		c, err := ChannelByID(ctx, st, id)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}
