package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/builtin"
)

// refusedHere are the commands that the state of the test can't do, and what the
// client is told.
var refusedHere = map[string]belay.Code{
	"retry_task": belay.CodeBadState, "resolve_permission": belay.CodeBadState, "clear_goal": belay.CodeBadState, "read_peer_session": belay.CodeNotFound, "tell_peer_session": belay.CodeNotFound,
	"write_process_stdin": belay.CodeBadCommand, "terminate_process": belay.CodeNotFound, "read_process_output": belay.CodeNotFound, "revoke_token": belay.CodeNotFound, "test_mcp_server": belay.CodeNotFound, "trust_mcp_server": belay.CodeNotFound, "login_mcp_server": belay.CodeNotFound, "finish_mcp_login": belay.CodeNotFound, "logout_mcp_server": belay.CodeNotFound, "trust_file": belay.CodeNotGoverned, "revoke_grant": belay.CodeNotFound, "close_subagent": belay.CodeNotFound, "wait_subagents": belay.CodeNotFound, "send_subagent_input": belay.CodeNotFound, "unpin_context": belay.CodeNotFound,
	"append_task_progress": belay.CodeBadCommand, "complete_task": belay.CodeBadState, "fail_task": belay.CodeBadState, // it says nothing; an attempt runs
	"start_task": belay.CodeNotFound, "link_tasks": belay.CodeNotFound, "unlink_tasks": belay.CodeNotFound, // the task wasn't planned
	"run_agents":  belay.CodeNotFound,
	"pause_agent": belay.CodeNotFound, "resume_agent": belay.CodeNotFound, "stop_agent": belay.CodeNotFound, "check_agent": belay.CodeNotFound,
	"save_rule":      belay.CodeBadPolicy, // the file has no rule
	"resume_task":    belay.CodeBadState,  // it isn't paused
	"pause_subagent": belay.CodeNotFound, "resume_subagent": belay.CodeNotFound,
	"fork_session": belay.CodeBadState, "rollback_thread": belay.CodeBadState, "undo_turns": belay.CodeBadState,
}

// TestTheClientRoundTripsEveryCommand sends each command of the table through the
// client, with a value for each field that it must have: what it answers is all
// there, what it refuses is the error that HTTP has, and told again under its key
// it is not done again.
// Guarantee: V32.
func TestTheClientRoundTripsEveryCommand(t *testing.T) {
	var reads *rig
	var told app.Result
	var q app.Action
	begin := func() *rig {
		r := newRig(t, asks)
		owner := r.token(auth.Owner, auth.DefaultTenant)
		told, q = question(t, r, owner)
		for _, turn := range []string{"t2", "t3"} {
			r.command("submit_turn", owner, `{"sessionId":"s1","turnId":"`+turn+`","text":"wait"}`).told(t)
		}
		return r
	}
	for _, c := range builtin.Commands() {
		r := reads
		if reads == nil || c.Mutates && c.Later == "" {
			r = begin()
		}
		if !c.Mutates {
			reads = r
		}
		owner := r.token(auth.Owner, auth.DefaultTenant)
		cl, err := client.New(r.url, client.Options{Token: owner, HTTP: r.client})
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]string{"sessionId": "s1", "taskId": string(told.Task), "actionId": string(q.ID), "decision": "deny", "queuedTurnId": "t3", "queuedTurnIds": `["t3","t2"]`, "text": "go",
			"tool": "todo", "processId": "proc_x", "subagentId": "sub_x", "peerSessionId": "s2", "grantId": "evt_x", "channelId": "phone", "position": "1", "role": "viewer", "tokenId": "tok_x", "server": "none", "redirect": "http://127.0.0.1:1/callback", "login": "login_x", "address": "http://127.0.0.1:1/callback", "pinId": "p1",
			"objective": "go", "task": "go", "reason": "no", "scope": "session", "upTo": "1", "agents": `["none"]`, "agent": "none", "relation": "evidence", "targetId": "ev_1", "turn": "0", "budget": "500ktok", "rules": "version: 1", "settings": `{"mode":"plan"}`, "path": "notes.md", "digest": "sha256:0", "content": `"` + base64.StdEncoding.EncodeToString([]byte(ownTranscript)) + `"`}
		if c.Name == "ack_events" {
			r.channel("reconnect_channel", owner, `{"channelId":"phone"}`)
		}
		in := valued(t, c, values)
		var out json.RawMessage
		err = cl.Command(t.Context(), c.Name, "round-trip", in, &out)
		want := refusedHere[c.Name]
		if c.Later != "" {
			want = belay.CodeUnavailable
		}
		if want != "" {
			raw := r.command(c.Name, owner, string(in), "Idempotency-Key", "round-trip")
			e, ok := errors.AsType[*belay.Error](err)
			if !ok || e.Code != want || raw.Code != want || e.Message != raw.Detail || e.Hint != raw.Hint || e.Where != raw.Field {
				t.Errorf("%s: %v; HTTP says %d %s, want %s", c.Name, err, raw.status, raw.body, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.Name, in, err)
			continue
		}
		if err := same(out, c.Out); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if !c.Mutates {
			continue
		}
		if c.Name == "sign_out" { // nobody who was signed out asks again
			continue
		}
		var again app.Result
		if err := cl.Command(t.Context(), c.Name, "round-trip", in, &again); err != nil || !idle[c.Name] && !again.Repeated {
			t.Errorf("%s again under its key: %+v, %v", c.Name, again, err)
		}
		if a := r.command(c.Name, "", string(in)); a.status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", c.Name, a.status)
		}
	}
}

// ownTranscript is a conversation that can be imported.
const ownTranscript = `{"format":"belay-transcript","version":1}
{"role":"user","parts":[{"text":"How many ducks are there?"}]}
{"role":"assistant","parts":[{"text":"Two."}]}
`

// idle are commands that change nothing as they are told here, so that nothing
// says that they were told before.
var idle = map[string]bool{"resume_thread": true, "configure_queue": true, "label_session": true, "revoke_trust": true, "update_task": true}

// valued is a body that has every field which a command must have.
func valued(t *testing.T, c app.Command, values map[string]string) json.RawMessage {
	t.Helper()
	if c.Later != "" {
		return json.RawMessage("{}")
	}
	var parts []string
	for _, f := range input.Fields(c.In) {
		if !f.Required {
			continue
		}
		v, ok := values[f.Name]
		if !ok {
			t.Fatalf("%s must have %s, and the test has no value for it", c.Name, f.Name)
		}
		if f.Of.Kind() == reflect.String {
			v = strconv.Quote(v)
		}
		parts = append(parts, fmt.Sprintf("%q:%s", f.Name, v))
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

// same reports whether an answer is one of its type, and nothing of it is lost in
// the type.
func same(raw json.RawMessage, of reflect.Type) error {
	v := reflect.New(of).Interface()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	back, err := json.Marshal(v)
	if err == nil && !bytes.Equal(bytes.TrimSpace(raw), back) {
		err = fmt.Errorf("it is %s, and read again %s", raw, back)
	}
	return err
}
