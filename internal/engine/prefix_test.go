package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/anthropic"
	"github.com/belay-run/belay/internal/model/google"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/openai"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/tool"
)

// TestEachRequestBeginsWithTheOneBefore plays sixty steps in every protocol over
// HTTP: with an approval, a change of the mode, a nudge and a grace step, a
// failure and a second turn. The messages of each request begin with the bytes
// of those before it, which is what a provider's cache goes by; and a process
// that has nothing in memory sends the same bytes.
// Guarantee: M11.
func TestEachRequestBeginsWithTheOneBefore(t *testing.T) {
	for _, p := range protocols(t) {
		var kept [][]byte
		for _, memory := range []string{"kept", "evicted", "restarted"} {
			synctest.Test(t, func(t *testing.T) {
				bodies := longSession(t, p, memory)
				if len(bodies) < 60 {
					t.Fatalf("%s, %s: %d requests", p, memory, len(bodies))
				}
				before := 0
				for i := 1; i < len(bodies); i++ {
					messages := messagesOf(t, bodies[i-1])
					if before > 0 && len(messages) < before {
						t.Errorf("%s, %s: request %d has fewer messages than the one before it", p, memory, i)
					}
					before = len(messages)
					if !bytes.HasPrefix(bodies[i], messages) {
						t.Fatalf("%s, %s: request %d doesn't begin with the messages of the one before it:\n…%s\n…%s", p, memory, i+1,
							messages[max(0, len(messages)-600):], bodies[i][max(0, len(messages)-600):min(len(bodies[i]), len(messages)+200)])
					}
				}
				if kept == nil {
					kept = bodies
				}
				for i := range kept {
					if i >= len(bodies) || !bytes.Equal(kept[i], bodies[i]) {
						t.Fatalf("%s, %s: request %d has other bytes than where everything was kept", p, memory, i+1)
					}
				}
			})
		}
	}
}

// messagesOf are the bytes of a request up to the end of its messages, without
// the brackets that close the last one: some protocols put what follows into the
// message that is there.
func messagesOf(t *testing.T, body []byte) []byte {
	t.Helper()
	var in struct{ Messages, Input, Contents json.RawMessage }
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	for _, list := range []json.RawMessage{in.Messages, in.Input, in.Contents} {
		if len(list) > 0 {
			return bytes.TrimRight(body[:bytes.Index(body, list)+len(list)], "]}")
		}
	}
	t.Fatalf("no messages in %.300s", body)
	return nil
}

// remembering gives an adapter its memory of encoded messages.
func remembering(p model.Provider, c *wire.Prefixes) model.Provider {
	switch p := p.(type) {
	case *openai.Chat:
		p.Prefixes = c
	case *openai.Responses:
		p.Prefixes = c
	case *anthropic.Messages:
		p.Prefixes = c
	case *google.Gemini:
		p.Prefixes = c
	}
	return p
}

// longScenes are the answers of the session, in order; an empty scene is a failure.
func longScenes() (list []modelserver.Scene) {
	say := func(s modeltest.Scene) {
		s.Stop = cmp.Or(s.Stop, "tool_calls")
		list = append(list, modelserver.Scene{Scene: s})
	}
	look := func(n int) model.Call { return model.Call{Name: "look", Args: fmt.Sprintf(`{"n":%d}`, n)} }
	looks := func(n int) {
		for i := range n {
			s := modeltest.Scene{Text: fmt.Sprintf("I look at <%d> & more.", i), Calls: []model.Call{look(2 * len(list))}}
			if i%3 == 0 {
				s.Reasoning = fmt.Sprint("thought ", i)
			}
			if i%4 == 0 {
				s.Calls = append(s.Calls, look(2*len(list)+1))
			}
			say(s)
		}
	}
	put := modeltest.Scene{Calls: []model.Call{{Name: "put", Args: `{}`}}}
	looks(12)
	say(put) // waits for an approval
	looks(10)
	put.Reasoning = "again"
	put.Calls = []model.Call{{Name: "put", Args: `{"n":1}`}}
	say(put) // waits, and the mode changes meanwhile
	looks(8)
	say(modeltest.Scene{Text: "I stop.", Stop: "stop"})       // a nudge follows
	say(modeltest.Scene{Text: "I stop again.", Stop: "stop"}) // the grace step follows
	say(over.Scene)
	looks(10)
	list = append(list, modelserver.Scene{Scene: modeltest.Scene{Fail: "transient"}})
	looks(16)
	say(over.Scene)
	return list
}

// longSession plays the scenes and returns the bodies of the requests.
func longSession(t *testing.T, protocol, memory string) (bodies [][]byte) {
	scenes := longScenes()
	server := modelserver.New(func(a modelserver.Asked) modelserver.Scene { return scenes[min(a.N, len(scenes))-1] })
	far := newFarEnd(t, server, server, false)
	defer far.close()
	budget := 1 << 20
	if memory == "evicted" {
		budget = 0
	}
	adapter := func() model.Provider {
		return remembering(adapters[protocol](far.endpoint(t, "http://"+vendorHost+"/v1")), wire.NewPrefixes(budget))
	}
	provider := adapter()
	run := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "seen\n<it>"}, nil }
	put := fn{tool.Spec{Name: "put", Doc: "put", Input: noArgs, Effect: belay.AtMostOnce}, run}
	b := newBench(t, "steps:\n"+done, func(s *belay.Settings) { s.Provider, s.Model, s.Approvals = protocol, "m", belay.ApprovalsWait }, pure("look", run), put)
	b.changeRules(func(r *thread.Rules) {
		r.Grants = slices.DeleteFunc(r.Grants, func(g policy.Grant) bool { return g.Tool == "put" })
	})
	b.wrap = func(model.Provider) model.Provider { return provider }
	n := 0
	goOn := func(to belay.StreamID, c belay.Command) {
		if memory == "restarted" {
			b.e.Close() //nolint:errcheck // it rests
			provider = adapter()
			var err error
			if b.e, err = newEngine(b.c); err != nil {
				t.Fatal(err)
			}
		}
		n++
		if err := b.h.Enqueue(t.Context(), belay.Order{ID: belay.CommandID(fmt.Sprint("cmd_more_", n)), Principal: "user:ann", Session: sess, Stream: to, Command: c}); err != nil {
			t.Fatal(err)
		}
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Fatal(err)
		}
	}
	b.run()
	goOn(thr.Stream(), belay.RespondAction{Action: b.waits(1), Decision: "allow"})
	b.waits(2)
	b.changeRules(func(r *thread.Rules) { r.Settings.Mode = belay.ModePlan })
	goOn(thr.Stream(), belay.ResumeThread{Rules: b.ref})
	goOn(sess.Stream(), belay.SubmitWork{Thread: thr, Task: "task_more", Turn: "turn_more", Text: belay.Content{Text: "and <more>"}, Rules: b.ref})
	log := b.log()
	kinds := map[string]int{}
	for _, p := range find[event.ModelRequested](log) {
		kinds[p.Kind]++
	}
	if len(find[event.TurnCompleted](log)) != 2 || len(find[event.ThreadUpdated](log)) != 1 || len(find[event.ModelFailed](log)) != 1 || kinds["grace"] != 1 || kinds["nudge"] != 1 {
		t.Fatalf("%s, %s: it went another way: %v, ends with %+v", protocol, memory, kinds, log[len(log)-1].Data)
	}
	for _, a := range server.Heard() {
		bodies = append(bodies, a.Body)
	}
	return bodies
}

// waits is the n-th question, which must be open.
func (b *bench) waits(n int) belay.ActionID {
	b.t.Helper()
	var asked []belay.ActionID
	for _, e := range b.log() {
		if _, ok := e.Data.(event.ActionRequired); ok {
			asked = append(asked, e.IDs.Action)
		}
	}
	if len(asked) != n {
		b.t.Fatalf("%d questions were asked, not %d", len(asked), n)
	}
	return asked[n-1]
}
