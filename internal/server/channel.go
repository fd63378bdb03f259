package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/problem"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// channelHeader names the channel that a request comes through.
const channelHeader = "Belay-Channel"

// bridge is the capability of a channel to which questions of the gate are
// forwarded.
const bridge = "permissions"

// Words of a channel, as the standard has them.
var (
	transports   = []string{"sse", "http_json", "websocket", "json_rpc", "grpc", "stdio", "in_process"}
	peerRoles    = []string{"client", "host", "worker", "remote_runtime", "peer_agent", "tool_server"}
	capabilities = []string{"streaming", "resume", bridge, "files", "artifacts", "task_delegation"}
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
	for _, err := range []error{id("channelId", in.Channel), id("sessionId", string(in.Session)), text("nativeProtocol", in.Protocol, 40), text("resumeToken", in.Resume, 200)} {
		if err != nil {
			return err
		}
	}
	of := func(field, s string, all []string) error {
		if s == "" || slices.Contains(all, s) {
			return nil
		}
		return problem.At(field, belay.Errorf(belay.CodeBadCommand, "%q is none of %s", problem.Shown(s), strings.Join(all, ", ")).WithHint("%s=%s, or leave it out", field, all[0]))
	}
	if err := of("transport", in.Transport, transports); err != nil {
		return err
	}
	if err := of("peerRole", in.Peer, peerRoles); err != nil {
		return err
	}
	if len(in.Capabilities) > len(capabilities) {
		return problem.At("capabilities", belay.Errorf(belay.CodeBadCommand, "there are only %d capabilities", len(capabilities)).WithHint("they are %s", strings.Join(capabilities, ", ")))
	}
	for _, c := range in.Capabilities {
		if err := of("capabilities", c, capabilities); err != nil {
			return err
		}
	}
	if in.Last < 0 {
		return problem.At("lastPosition", belay.Errorf(belay.CodeBadCursor, "a position isn't negative").WithHint("leave it out to begin where the channel acknowledged"))
	}
	return nil
}

func reconnectChannel(ctx context.Context, r *request, in *ReconnectChannel) (*ChannelTold, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	made := in.Channel == "" && in.Resume == ""
	if in.Channel == "" {
		in.Channel = belay.NewID(belay.PrefixChannel)
		if r.key != "" {
			in.Channel = r.keyed(belay.PrefixChannel)
		}
	}
	r.peers.one.Lock() // one at a time: what is known of a channel is read and then changed
	defer r.peers.one.Unlock()
	row, err := r.channelRow(ctx, in.Channel)
	switch {
	case belay.CodeOf(err) == belay.CodeNotFound && in.Resume == "":
		return r.register(ctx, in)
	case err != nil:
		return nil, problem.At("channelId", err)
	case made && row.Account == r.by.String(): // its answer got lost, and the token with it
		told, err := r.start(ctx, row, cmp.Or(row.Acknowledged, store.Position(in.Last)))
		if err != nil {
			return nil, err
		}
		told.Repeated = true
		return r.connect(ctx, told, row)
	}
	if in.Session != "" && in.Session != row.Follows {
		return nil, problem.At("sessionId", belay.Errorf(belay.CodeConflict, "the channel follows something else").At(in.Channel).WithHint("register another channel for it"))
	}
	return r.resume(ctx, in, row)
}

// channelRow is what facts say of a channel.
func (t *tenant) channelRow(ctx context.Context, id string) (view.Channel, error) {
	if err := t.Reads.Views.Catchup(ctx); err != nil {
		return view.Channel{}, err
	}
	return view.ChannelByID(ctx, t.Store, id)
}

// register makes a channel.
func (r *request) register(ctx context.Context, in *ReconnectChannel) (*ChannelTold, error) {
	end, err := r.Store.End(ctx)
	if err != nil {
		return nil, err
	}
	row := view.Channel{ID: in.Channel, Transport: cmp.Or(in.Transport, "sse"), Peer: cmp.Or(in.Peer, "client"), Follows: in.Session, Protocol: in.Protocol, Capabilities: in.Capabilities}
	if in.Last == 0 {
		in.Last = int64(end)
	}
	told, err := r.start(ctx, row, store.Position(in.Last))
	if err != nil {
		return nil, err
	}
	return r.connect(ctx, told, row)
}

// connect gives a channel a new token and records that it is there.
func (r *request) connect(ctx context.Context, told *ChannelTold, row view.Channel) (*ChannelTold, error) {
	secret := make([]byte, 32)
	rand.Read(secret) //nolint:errcheck // it doesn't fail
	told.Resume = "resume_" + base64.RawURLEncoding.EncodeToString(secret)
	err := r.noteChannel(ctx, row.ID, "", event.ChannelConnected{Transport: row.Transport, Peer: row.Peer, Protocol: row.Protocol, Account: r.by.String(),
		Capabilities: row.Capabilities, Follows: row.Follows, Resume: belay.DigestOf([]byte(told.Resume))})
	if err != nil {
		return nil, err
	}
	told.Position, err = r.Store.End(ctx)
	return told, err
}

// resume reconnects a peer: the account that registered the channel, or the
// holder of its token.
func (r *request) resume(ctx context.Context, in *ReconnectChannel, row view.Channel) (*ChannelTold, error) {
	switch {
	case in.Resume != "" && belay.DigestOf([]byte(in.Resume)) != row.Resume:
		return nil, problem.At("resumeToken", belay.Errorf(belay.CodeForbidden, "it isn't this channel's token").At(row.ID).WithHint("who registered the channel gets a new one: leave resumeToken out"))
	case in.Resume == "" && row.Account != r.by.String():
		return nil, problem.At("resumeToken", belay.Errorf(belay.CodeForbidden, "the channel is registered by another account").At(row.ID).WithHint("bring its resume token, or register a channel of your own"))
	}
	if in.Last == 0 {
		in.Last = int64(row.Acknowledged)
	}
	told, err := r.start(ctx, row, store.Position(in.Last))
	if err != nil {
		return nil, err
	}
	err = r.noteChannel(ctx, row.ID, "", event.ChannelResumed{After: int64(told.Since), Gap: told.Gap})
	if err == nil && told.Gap {
		err = r.noteChannel(ctx, row.ID, "", event.SnapshotRepaired{View: "channel", From: int64(told.Since), To: in.Last, Reason: "gap"})
	}
	if err != nil {
		return nil, err
	}
	if in.Resume == "" || row.Account != r.by.String() { // its token got lost, or it belongs to another account now
		return r.connect(ctx, told, row)
	}
	told.Position, err = r.Store.End(ctx)
	return told, err
}

// start is what a peer continues with that has everything up to a position. One
// that the log doesn't have (any more) leaves a gap, and begins at the log's end.
func (r *request) start(ctx context.Context, row view.Channel, last store.Position) (*ChannelTold, error) {
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
		err = problem.At("sessionId", noSession(row.Follows))
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
func ackEvents(ctx context.Context, r *request, in *AckEvents) (*ChannelTold, error) {
	if err := named("channelId", in.Channel); err != nil {
		return nil, err
	}
	r.peers.one.Lock()
	defer r.peers.one.Unlock()
	row, err := r.mine(ctx, in.Channel)
	if err != nil {
		return nil, problem.At("channelId", err)
	}
	lapsed, err := store.RolledBack(ctx, r.Store, store.Position(in.Position))
	if err != nil {
		return nil, err
	}
	if in.Position <= 0 || lapsed {
		return nil, problem.At("position", belay.Errorf(belay.CodeBadCursor, "nothing is recorded at %d", in.Position).WithHint("acknowledge a position that the server told"))
	}
	told := &ChannelTold{Channel: row.ID, Stream: streamOf(row), Since: max(row.Acknowledged, store.Position(in.Position))}
	if told.Repeated = told.Since == row.Acknowledged; !told.Repeated {
		err = r.noteChannel(ctx, row.ID, "", event.ChannelMessage{Kind: "ack", Principal: r.by.String(), Acknowledged: in.Position})
	}
	if err == nil {
		told.Position, err = r.Store.End(ctx)
	}
	return told, err
}

// mine is a channel of the caller.
func (r *request) mine(ctx context.Context, id string) (view.Channel, error) {
	row, err := r.channelRow(ctx, id)
	if err == nil && row.Account != r.by.String() {
		err = belay.Errorf(belay.CodeForbidden, "the channel is registered by another account").At(id).WithHint("reconnect_channel with its resume token makes it yours")
	}
	return row, err
}

// ofChannel refuses a request through a channel that isn't its sender's.
func (r *request) ofChannel(ctx context.Context) error {
	if r.channel == "" {
		return nil
	}
	if err := named("header "+channelHeader, r.channel); err != nil {
		return err
	}
	_, err := r.mine(ctx, r.channel)
	return problem.At("header "+channelHeader, err)
}

// noteChannel records what happened to a channel.
func (t *tenant) noteChannel(ctx context.Context, id string, action belay.ActionID, p event.Payload) error {
	return t.audit.record(ctx, entry{at: t.now(), data: p, ids: belay.IDs{Channel: id, Action: action}})
}

// ChannelsShown are the peers that registered.
type ChannelsShown struct {
	Fresh
	Channels []ChannelShown `json:"channels"` // in the order in which they came
}

// ChannelShown is a peer, and whether it follows now.
type ChannelShown struct {
	view.Channel
	Following int `json:"following"` // its open streams
}

func (s *Server) getChannels(w http.ResponseWriter, r *http.Request) {
	out, err := s.listChannels(r)
	if err != nil {
		problem.Write(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

func (s *Server) listChannels(r *http.Request) (*ChannelsShown, error) {
	req, f, err := s.reading(r)
	if err != nil {
		return nil, err
	}
	all, err := view.Channels(r.Context(), req.Store)
	if err != nil {
		return nil, err
	}
	out := &ChannelsShown{Fresh: f, Channels: make([]ChannelShown, 0, len(all))}
	for _, c := range all {
		out.Channels = append(out.Channels, ChannelShown{c, req.peers.following(c.ID)})
	}
	return out, nil
}
