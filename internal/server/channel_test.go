package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/app/channels"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/view"
)

// channel is a command about a channel that must be done.
func (r *rig) channel(name, token, body string, header ...string) channels.ChannelTold {
	r.t.Helper()
	a := r.command(name, token, body, header...)
	var out channels.ChannelTold
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK {
		r.t.Fatalf("%s: status %d: %s (%v)", name, a.status, a.body, err)
	}
	return out
}

// channelFacts are the types of what is recorded of a channel, with what matters.
func (r *rig) channelFacts(id string) (out []string) {
	r.t.Helper()
	for rec, err := range r.opened[auth.DefaultTenant].Scan(r.t.Context(), 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		e := rec.Event
		if e.IDs.Channel != id {
			continue
		}
		what := e.Type()
		switch p := e.Data.(type) {
		case event.ChannelDisconnected:
			what += " " + p.Reason
		case event.ChannelMessage:
			what += " " + p.Kind
		case event.ChannelPermissionForwarded:
			what += " " + p.Tool
		case event.ChannelPermissionReturned:
			what += " " + p.Decision + p.Reason
		case event.ChannelResumed:
			if p.Gap {
				what += " gap"
			}
		}
		out = append(out, what)
	}
	return out
}

// untilChannel waits until the last fact of a channel is this one.
func (r *rig) untilChannel(id, last string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	st := r.opened[auth.DefaultTenant]
	for {
		changed := st.Changed(ctx)
		all := r.channelFacts(id)
		if len(all) > 0 && all[len(all)-1] == last {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.t.Fatalf("channel %s: %q, not %q", id, all, last)
		}
	}
}

// listen follows a stream through a channel until it has seen a type of event.
func (r *rig) listen(path, token, channel, until string) (close func()) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, "GET", r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set(app.ChannelHeader, channel)
	resp, err := r.client.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %v %v", path, resp, err)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == "event: "+until {
			return func() { cancel(); resp.Body.Close() }
		}
	}
	r.t.Fatalf("%s ended before %s: %v", path, until, lines.Err())
	return nil
}

// TestAChannelComesBackWhereItWas: it is told a snapshot, and continues behind what
// it acknowledged; that it left and came back are facts.
// Guarantee: V14.
func TestAChannelComesBackWhereItWas(t *testing.T) {
	r := newRig(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	turn := r.command("submit_turn", owner, `{"sessionId":"s1","turnId":"t1","text":"go"}`).told(t)
	r.until(owner, turn.Run, "ended")
	first := r.channel("reconnect_channel", owner, `{"channelId":"phone","sessionId":"s1","lastPosition":1,"capabilities":["streaming","resume"]}`)
	if first.Resume == "" || first.Since != 1 || first.Gap || !strings.Contains(string(first.Snapshot), `"s1"`) || first.Stream != "/v1/sessions/s1/stream" {
		t.Fatalf("registered: %+v", first)
	}
	stop := r.listen(first.Stream+"?since=1", owner, "phone", "turn.completed")
	if a := r.do("GET", "/v1/channels", owner, ""); !strings.Contains(string(a.body), `"following":1`) || !strings.Contains(string(a.body), `"connected":true`) {
		t.Errorf("while it follows: %s", a.body)
	}
	acked := r.channel("ack_events", owner, `{"channelId":"phone","position":5}`)
	if acked.Since != 5 {
		t.Errorf("acknowledged: %+v", acked)
	}
	if less := r.channel("ack_events", owner, `{"channelId":"phone","position":3}`); less.Since != 5 {
		t.Errorf("less than before: %+v", less)
	}
	stop()
	r.untilChannel("phone", "channel.disconnected closed")
	again := r.channel("reconnect_channel", owner, `{"channelId":"phone","resumeToken":"`+first.Resume+`"}`)
	if again.Since != 5 || again.Gap || len(again.Snapshot) == 0 || again.Resume != "" {
		t.Errorf("came back: %+v", again)
	}
	ahead := r.channel("reconnect_channel", owner, `{"channelId":"phone","resumeToken":"`+first.Resume+`","lastPosition":1000000}`)
	if !ahead.Gap || ahead.Since >= 1000000 || len(ahead.Snapshot) == 0 {
		t.Errorf("from a history that isn't there: %+v", ahead)
	}
	want := []string{"channel.connected", "channel.message ack", "channel.disconnected closed", "channel.resumed", "channel.resumed gap", "snapshot.repaired"}
	if got := r.channelFacts("phone"); !slices.Equal(got, want) {
		t.Errorf("recorded: %q", got)
	}
	st := r.opened[auth.DefaultTenant]
	err := view.Catchup(t.Context(), st)
	kept, kerr := view.Channels(t.Context(), st)
	if err == nil {
		err = view.Rebuild(t.Context(), st)
	}
	folded, ferr := view.Channels(t.Context(), st)
	if err != nil || kerr != nil || ferr != nil || len(kept) != 1 || !reflect.DeepEqual(kept, folded) {
		t.Errorf("kept %+v, folded again %+v, %v %v", kept, folded, errors.Join(err, kerr), ferr)
	}
}

// TestAChannelDoesntOutliveItsServer: the next one says that it is gone, until it
// comes back.
// Guarantee: V14.
func TestAChannelDoesntOutliveItsServer(t *testing.T) {
	w := newWorld(t)
	r := w.serve(t, once)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	r.channel("reconnect_channel", owner, `{"channelId":"c1"}`)
	r.stop()
	r = w.serve(t, once)
	r.untilChannel("c1", "channel.disconnected failed")
	defer r.listen("/v1/stream?since=start", owner, "c1", "channel.connected")()
	r.untilChannel("c1", "channel.resumed")
}

// TestAChannelIsItsOwners: nobody else comes back as it, follows or answers
// through it; who has its token makes it theirs.
// Guarantee: V14.
func TestAChannelIsItsOwners(t *testing.T) {
	r := newRig(t, once)
	ann, bob := r.token(auth.Owner, auth.DefaultTenant), r.token(auth.Viewer, auth.DefaultTenant)
	other := r.token(auth.Owner, "other")
	made := r.channel("reconnect_channel", ann, `{"channelId":"c1"}`)
	refused := func(what string, a answer, code belay.Code, field string) {
		t.Helper()
		if a.Code != code || a.Field != field {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	refused("without the token", r.command("reconnect_channel", bob, `{"channelId":"c1"}`), belay.CodeForbidden, "resumeToken")
	refused("with another token", r.command("reconnect_channel", ann, `{"channelId":"c1","resumeToken":"resume_x"}`), belay.CodeForbidden, "resumeToken")
	refused("acknowledged by another", r.command("ack_events", bob, `{"channelId":"c1","position":1}`), belay.CodeForbidden, "channelId")
	refused("of another tenant", r.command("ack_events", other, `{"channelId":"c1","position":1}`), belay.CodeNotFound, "channelId")
	refused("with a token, and unknown", r.command("reconnect_channel", ann, `{"channelId":"c2","resumeToken":"resume_x"}`), belay.CodeNotFound, "channelId")
	refused("a command through another's", r.command("submit_turn", bob, `{"text":"x"}`, app.ChannelHeader, "c1"), belay.CodeForbidden, "")
	refused("followed by another", r.do("GET", "/v1/stream", bob, "", app.ChannelHeader, "c1"), belay.CodeForbidden, "header "+app.ChannelHeader)
	refused("of a session that isn't there", r.command("reconnect_channel", ann, `{"sessionId":"none"}`), belay.CodeNotFound, "sessionId")
	refused("a role that isn't one", r.command("reconnect_channel", ann, `{"peerRole":"boss"}`), belay.CodeBadCommand, "peerRole")
	refused("more than there is", r.command("ack_events", ann, `{"channelId":"c1","position":100000}`), belay.CodeBadCursor, "position")
	lost := r.channel("reconnect_channel", ann, `{"channelId":"c1"}`)
	if lost.Resume == "" || lost.Resume == made.Resume {
		t.Errorf("a lost token is replaced: %+v", lost)
	}
	refused("with the token that was replaced", r.command("reconnect_channel", bob, `{"channelId":"c1","resumeToken":"`+made.Resume+`"}`), belay.CodeForbidden, "resumeToken")
	if moved := r.channel("reconnect_channel", bob, `{"channelId":"c1","resumeToken":"`+lost.Resume+`"}`); moved.Resume == "" {
		t.Errorf("who has the token gets the channel, and a token: %+v", moved)
	}
	refused("by who had it", r.command("ack_events", ann, `{"channelId":"c1","position":1}`), belay.CodeForbidden, "channelId")
	for rec, err := range r.opened[auth.DefaultTenant].Scan(t.Context(), 0) {
		raw, merr := json.Marshal(rec.Event)
		if err != nil || merr != nil || strings.Contains(string(raw), "resume_") {
			t.Errorf("a token is recorded: %s %v %v", raw, err, merr)
		}
	}
}

// gated is a model that wants something that is asked for.
const gated = "steps:\n  - calls:\n      - {tool: ring, args: {}}\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n"

// TestAQuestionGoesThroughAChannelAndBack: that it went out and what came back are
// facts, also what was refused; and a question goes out once.
// Guarantee: V15.
func TestAQuestionGoesThroughAChannelAndBack(t *testing.T) {
	r := newRig(t, gated)
	owner := r.token(auth.Owner, auth.DefaultTenant)
	r.channel("reconnect_channel", owner, `{"channelId":"desk","capabilities":["permissions"]}`)
	r.channel("reconnect_channel", owner, `{"channelId":"deaf","capabilities":["streaming"]}`)
	turn := r.command("submit_turn", owner, `{"sessionId":"s1","turnId":"t1","text":"go"}`).told(t)
	stop := r.listen("/v1/sessions/s1/stream", owner, "desk", "action.required")
	r.untilChannel("desk", "channel.permission_forwarded ring")
	stop()
	r.untilChannel("desk", "channel.disconnected closed")
	stop = r.listen("/v1/sessions/s1/stream", owner, "desk", "action.required")
	defer r.listen("/v1/sessions/s1/stream", owner, "deaf", "action.required")()
	var open approvals.ActionsShown
	if err := json.Unmarshal(r.do("GET", "/v1/actions", owner, "").body, &open); err != nil || len(open.Actions) != 1 {
		t.Fatalf("%+v %v", open, err)
	}
	id := string(open.Actions[0].ID)
	if a := r.command("respond_action", owner, `{"actionId":"`+id+`","decision":"allow","version":"0123456789ab"}`, app.ChannelHeader, "desk"); a.Code != belay.CodeConflict {
		t.Fatalf("%d %s", a.status, a.body)
	}
	r.command("respond_action", owner, `{"actionId":"`+id+`","decision":"deny"}`, app.ChannelHeader, "desk").told(t)
	r.until(owner, turn.Run, "ended")
	stop()
	r.untilChannel("desk", "channel.disconnected closed")
	want := []string{"channel.connected", "channel.permission_forwarded ring", "channel.disconnected closed", "channel.resumed",
		"channel.permission_returned failedconflict", "channel.permission_returned deny", "channel.disconnected closed"}
	if got := r.channelFacts("desk"); !slices.Equal(got, want) {
		t.Errorf("recorded: %q", got)
	}
	if got := r.channelFacts("deaf"); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "permission") }) {
		t.Errorf("a channel that takes no questions: %q", got)
	}
}
