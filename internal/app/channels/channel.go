package channels

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// Words of a channel, as the standard has them.
var (
	transports   = []string{"sse", "http_json", "websocket", "json_rpc", "grpc", "stdio", "in_process"}
	peerRoles    = []string{"client", "host", "worker", "remote_runtime", "peer_agent", "tool_server"}
	capabilities = []string{"streaming", "resume", app.Bridge, "files", "artifacts", "task_delegation"}
)

// ReconnectChannel is what reconnect_channel takes.
type ReconnectChannel struct {
	Channel      string          `json:"channelId,omitempty" jsonschema:"the caller's id of the channel; one that is new, or left out, is registered"`
	Resume       string          `json:"resumeToken,omitempty" jsonschema:"of a channel that is known; who registered it may come back without"`
	Session      belay.SessionID `json:"sessionId,omitempty" jsonschema:"the session that a new channel follows; everything when it is left out"`
	Last         int64           `json:"lastPosition,omitempty" jsonschema:"the position up to which the peer has what happened; what it acknowledged when it is left out"`
	Transport    string          `json:"transport,omitempty" jsonschema:"of a new channel: sse (default), http_json, websocket, json_rpc, grpc, stdio, in_process"`
	Peer         string          `json:"peerRole,omitempty" jsonschema:"of a new channel: client (default), host, worker, remote_runtime, peer_agent, tool_server"`
	Protocol     string          `json:"nativeProtocol,omitempty" jsonschema:"what the peer speaks, such as a2a or mcp"`
	Capabilities []string        `json:"capabilities,omitempty" jsonschema:"of a new channel: streaming, resume, permissions, files, artifacts, task_delegation"`
}

// ChannelTold is what a channel begins with, or continues with.
type ChannelTold struct {
	Position store.Position  `json:"position"` // of the last fact that it caused
	Channel  string          `json:"channelId"`
	Repeated bool            `json:"repeated,omitempty"`    // it is a repetition
	Resume   string          `json:"resumeToken,omitempty"` // for coming back; shown when it is made
	Stream   string          `json:"stream"`                // the route to follow, with this channel's id as Belay-Channel
	Since    store.Position  `json:"since"`                 // where it continues: what the peer has
	Gap      bool            `json:"gap,omitempty"`         // what lies before since can't be sent again: the snapshot replaces it
	Snapshot json.RawMessage `json:"snapshot,omitempty"`    // the shell of the session that it follows
	Seen     store.Position  `json:"snapshotPosition,omitempty"`
}

func (in *ReconnectChannel) check() error {
	if err := cmp.Or(input.ID("channelId", in.Channel), input.ID("sessionId", string(in.Session)), input.Text("nativeProtocol", in.Protocol, 40), input.Text("resumeToken", in.Resume, 200)); err != nil {
		return err
	}
	of := func(field, s string, all []string) error {
		if s == "" || slices.Contains(all, s) {
			return nil
		}
		return input.At(field, belay.Errorf(belay.CodeBadCommand, "%q is none of %s", input.Shown(s), strings.Join(all, ", ")).WithHint("%s=%s, or leave it out", field, all[0]))
	}
	if err := of("transport", in.Transport, transports); err != nil {
		return err
	}
	if err := of("peerRole", in.Peer, peerRoles); err != nil {
		return err
	}
	if len(in.Capabilities) > len(capabilities) {
		return input.At("capabilities", belay.Errorf(belay.CodeBadCommand, "there are only %d capabilities", len(capabilities)).WithHint("they are %s", strings.Join(capabilities, ", ")))
	}
	for _, c := range in.Capabilities {
		if err := of("capabilities", c, capabilities); err != nil {
			return err
		}
	}
	if in.Last < 0 {
		return input.At("lastPosition", belay.Errorf(belay.CodeBadCursor, "a position isn't negative").WithHint("leave it out to begin where the channel acknowledged"))
	}
	return nil
}

func reconnectChannel(ctx context.Context, r *app.Call, in *ReconnectChannel) (*ChannelTold, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	made := in.Channel == "" && in.Resume == ""
	if in.Channel == "" {
		in.Channel = belay.NewID(belay.PrefixChannel)
		if r.Key != "" {
			in.Channel = r.Keyed(belay.PrefixChannel)
		}
	}
	r.Peers.One.Lock() // one at a time: what is known of a channel is read and then changed
	defer r.Peers.One.Unlock()
	row, err := r.ChannelRow(ctx, in.Channel)
	switch {
	case belay.CodeOf(err) == belay.CodeNotFound && in.Resume == "":
		return register(ctx, r, in)
	case err != nil:
		return nil, input.At("channelId", err)
	case made && row.Account == r.By.String(): // its answer got lost, and the token with it
		told, err := start(ctx, r, row, cmp.Or(row.Acknowledged, store.Position(in.Last)))
		if err != nil {
			return nil, err
		}
		told.Repeated = true
		return connect(ctx, r, told, row)
	}
	if in.Session != "" && in.Session != row.Follows {
		return nil, input.At("sessionId", belay.Errorf(belay.CodeConflict, "the channel follows something else").At(in.Channel).WithHint("register another channel for it"))
	}
	return resume(ctx, r, in, row)
}

// register makes a channel.
func register(ctx context.Context, r *app.Call, in *ReconnectChannel) (*ChannelTold, error) {
	end, err := r.Store.End(ctx)
	if err != nil {
		return nil, err
	}
	row := view.Channel{ID: in.Channel, Transport: cmp.Or(in.Transport, "sse"), Peer: cmp.Or(in.Peer, "client"), Follows: in.Session, Protocol: in.Protocol, Capabilities: in.Capabilities}
	if in.Last == 0 {
		in.Last = int64(end)
	}
	told, err := start(ctx, r, row, store.Position(in.Last))
	if err != nil {
		return nil, err
	}
	return connect(ctx, r, told, row)
}

// connect gives a channel a new token and records that it is there.
func connect(ctx context.Context, r *app.Call, told *ChannelTold, row view.Channel) (*ChannelTold, error) {
	secret := make([]byte, 32)
	rand.Read(secret) //nolint:errcheck // it doesn't fail
	told.Resume = "resume_" + base64.RawURLEncoding.EncodeToString(secret)
	err := r.Note(ctx, row.ID, "", event.ChannelConnected{Transport: row.Transport, Peer: row.Peer, Protocol: row.Protocol, Account: r.By.String(),
		Capabilities: row.Capabilities, Follows: row.Follows, Resume: belay.DigestOf([]byte(told.Resume))})
	if err != nil {
		return nil, err
	}
	told.Position, err = r.Store.End(ctx)
	return told, err
}

// resume reconnects a peer: the account that registered the channel, or the
// holder of its token.
func resume(ctx context.Context, r *app.Call, in *ReconnectChannel, row view.Channel) (*ChannelTold, error) {
	switch {
	case in.Resume != "" && belay.DigestOf([]byte(in.Resume)) != row.Resume:
		return nil, input.At("resumeToken", belay.Errorf(belay.CodeForbidden, "it isn't this channel's token").At(row.ID).WithHint("who registered the channel gets a new one: leave resumeToken out"))
	case in.Resume == "" && row.Account != r.By.String():
		return nil, input.At("resumeToken", belay.Errorf(belay.CodeForbidden, "the channel is registered by another account").At(row.ID).WithHint("bring its resume token, or register a channel of your own"))
	}
	if in.Last == 0 {
		in.Last = int64(row.Acknowledged)
	}
	told, err := start(ctx, r, row, store.Position(in.Last))
	if err != nil {
		return nil, err
	}
	err = r.Note(ctx, row.ID, "", event.ChannelResumed{After: int64(told.Since), Gap: told.Gap})
	if err == nil && told.Gap {
		err = r.Note(ctx, row.ID, "", event.SnapshotRepaired{View: "channel", From: int64(told.Since), To: in.Last, Reason: "gap"})
	}
	if err != nil {
		return nil, err
	}
	if in.Resume == "" || row.Account != r.By.String() { // its token got lost, or it belongs to another account now
		return connect(ctx, r, told, row)
	}
	told.Position, err = r.Store.End(ctx)
	return told, err
}

// start is what a peer continues with that has everything up to a position. One
// that the log doesn't have (any more) leaves a gap, and begins at the log's end.
func start(ctx context.Context, r *app.Call, row view.Channel, last store.Position) (*ChannelTold, error) {
	end, err := r.Store.End(ctx)
	if err != nil {
		return nil, err
	}
	told := &ChannelTold{Channel: row.ID, Stream: streamOf(row), Since: last}
	lapsed, err := store.RolledBack(ctx, r.Store, last)
	if err != nil {
		return nil, err
	}
	if lapsed {
		told.Since, told.Gap = end, true
	}
	if row.Follows == "" {
		return told, nil
	}
	if told.Snapshot, told.Seen, err = r.Reads.Shell(ctx, row.Follows); err == nil && told.Snapshot == nil {
		err = input.At("sessionId", app.NoSession(row.Follows))
	}
	return told, err
}

// streamOf is the route that a channel follows.
func streamOf(row view.Channel) string {
	if row.Follows == "" {
		return "/v1/stream"
	}
	return "/v1/sessions/" + string(row.Follows) + "/stream"
}

// AckEvents is what ack_events takes.
type AckEvents struct {
	Channel  string `json:"channelId"`
	Position int64  `json:"position" jsonschema:"the peer has what happened up to here"`
}

// ackEvents records how far a peer is. Less than it said before changes nothing.
func ackEvents(ctx context.Context, r *app.Call, in *AckEvents) (*ChannelTold, error) {
	if err := input.Named("channelId", in.Channel); err != nil {
		return nil, err
	}
	r.Peers.One.Lock()
	defer r.Peers.One.Unlock()
	row, err := r.OwnChannel(ctx, in.Channel)
	if err != nil {
		return nil, input.At("channelId", err)
	}
	lapsed, err := store.RolledBack(ctx, r.Store, store.Position(in.Position))
	if err != nil {
		return nil, err
	}
	if in.Position <= 0 || lapsed {
		return nil, input.At("position", belay.Errorf(belay.CodeBadCursor, "nothing is recorded at %d", in.Position).WithHint("acknowledge a position that the server told"))
	}
	told := &ChannelTold{Channel: row.ID, Stream: streamOf(row), Since: max(row.Acknowledged, store.Position(in.Position))}
	if told.Repeated = told.Since == row.Acknowledged; !told.Repeated {
		err = r.Note(ctx, row.ID, "", event.ChannelMessage{Kind: "ack", Principal: r.By.String(), Acknowledged: in.Position})
	}
	if err == nil {
		told.Position, err = r.Store.End(ctx)
	}
	return told, err
}

// ChannelsShown are the peers that registered.
type ChannelsShown struct {
	app.Fresh
	Channels []ChannelShown `json:"channels"` // in the order in which they came
}

// ChannelShown is a peer, and whether it follows now.
type ChannelShown struct {
	view.Channel
	Following int `json:"following"` // its open streams
}

// ChannelSummary is the channel_summary.
type ChannelSummary struct {
	app.Fresh
	Session   belay.SessionID `json:"sessionId"`
	Channels  []ChannelShown  `json:"channels"`  // in the order in which they came
	Connected int             `json:"connected"` // that no fact says left
	Pending   int             `json:"pending"`   // questions that went to them and didn't return
}

func channelSummary(ctx context.Context, r *app.Call, f app.Fresh, id belay.SessionID) (*ChannelSummary, error) {
	all, err := view.Channels(ctx, r.Store)
	if err != nil {
		return nil, err
	}
	out := &ChannelSummary{Fresh: f, Session: id, Channels: []ChannelShown{}}
	for _, c := range all {
		if c.Follows != "" && c.Follows != id {
			continue
		}
		out.Channels = append(out.Channels, ChannelShown{c, r.Peers.Following(c.ID)})
		out.Pending += len(c.Pending)
		if c.Connected {
			out.Connected++
		}
	}
	return out, nil
}

// listChannels returns the peers that registered.
func listChannels(ctx context.Context, c *app.Call, f app.Fresh, _ app.Query) (*ChannelsShown, error) {
	all, err := view.Channels(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	out := &ChannelsShown{Fresh: f, Channels: make([]ChannelShown, 0, len(all))}
	for _, row := range all {
		out.Channels = append(out.Channels, ChannelShown{row, c.Peers.Following(row.ID)})
	}
	return out, nil
}
