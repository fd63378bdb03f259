package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/anthropic"
	"github.com/belay-run/belay/internal/model/google"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/openai"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/workspace/git"
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
		ws := t.TempDir()
		for _, memory := range []string{"kept", "evicted", "restarted"} {
			synctest.Test(t, func(t *testing.T) {
				bodies := longSession(t, p, memory, ws)
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
func longSession(t *testing.T, protocol, memory, ws string) (bodies [][]byte) {
	scenes := longScenes()
	server := modelserver.New(func(a modelserver.Asked) modelserver.Scene { return scenes[min(a.N, len(scenes))-1] })
	far := newFarEnd(t, server, server, false)
	defer far.close()
	budget := 1 << 20
	if memory == "evicted" {
		budget = 0
	}
	adapter := func() model.Provider {
		return remembering(adapters[protocol](far.endpoint(t, "http://"+vendorHost+"/v1")), wire.NewPrefixes(lru.New(budget)))
	}
	provider := adapter()
	run := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "seen\n<it>"}, nil }
	put := fn{tool.Spec{Name: "put", Doc: "put", Input: noArgs, Effect: belay.AtMostOnce}, run}
	b := newBench(t, "steps:\n"+done, func(s *belay.Settings) { s.Provider, s.Model, s.Approvals = protocol, "m", belay.ApprovalsWait }, pure("look", run), put)
	b.changeRules(func(r *thread.Rules) {
		r.Grants = slices.DeleteFunc(r.Grants, func(g policy.Grant) bool { return g.Tool == "put" })
		r.Environment, r.Workspace = true, ws
	})
	around := &around{}
	b.c.Around = around
	renew := func() {
		t.Helper()
		var err error
		if b.e, err = newEngine(b.c); err != nil {
			t.Fatal(err)
		}
	}
	renew()
	b.wrap = func(model.Provider) model.Provider { return provider }
	n := 0
	goOn := func(to belay.StreamID, c belay.Command) {
		if memory == "restarted" {
			provider = adapter()
			renew()
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
	heard := server.Heard()
	for _, a := range heard {
		bodies = append(bodies, a.Body)
	}
	all, last := strings.Join(heard[0].Texts, "\n"), strings.Join(heard[len(heard)-1].Texts, "\n")
	if !strings.Contains(all, "\nworkspace: ") || !strings.Contains(all, "git changed files: 1") || strings.Contains(heard[0].System, "workspace: ") ||
		!strings.HasPrefix(last, all) || strings.Count(last, "\nworkspace: ") != 1 || strings.Count(last, "Changed since you were told where you work:\ngit changed files: 2") != 1 {
		t.Fatalf("%s, %s: what the model is told of where it works:\n%s\n…\n%s", protocol, memory, all, last)
	}
	return bodies
}

// around is a workspace in which one more file changes from turn to turn.
type around struct {
	n    int
	text string // of the files of instructions
}

func (a *around) Status(context.Context, string) (git.Status, error) {
	a.n++
	return git.Status{Branch: "main", Head: "c0ffee", Changed: a.n}, nil
}

func (a *around) Obeys(string) string { return "" }

func (a *around) Above(_ string, files []string) (names []string) {
	for _, f := range files {
		if dir := path.Dir(f); a.text != "" && dir != "." {
			names = append(names, dir+"/AGENTS.md")
		}
	}
	return names
}

func (a *around) Instructions(_ string, names []string) (all []effect.Instruction, left []event.ContextOmission) {
	for _, n := range names {
		if strings.HasPrefix(n, "gone/") {
			left = append(left, event.ContextOmission{Kind: "instruction", Name: n, Reason: "denied"})
			continue
		}
		all = append(all, effect.Instruction{Name: n, Scope: "workspace", Text: a.text})
	}
	return all, left
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

// What changed of instructions, and those of a folder that is worked in, are told in
// the conversation; the instructions of requests stay what they were.
func TestInstructionsThatChangeAreTold(t *testing.T) {
	server := modelserver.New(func(a modelserver.Asked) modelserver.Scene {
		switch a.N {
		case 3:
			return modelserver.Scene{Scene: modeltest.Scene{Calls: []model.Call{{Name: "look", Args: `{}`}, {Name: "look", Args: `{"n":1}`}}, Stop: "tool_calls"}}
		default:
			return modelserver.Scene{Scene: modeltest.Scene{Text: "done", Stop: "stop"}}
		}
	})
	far := newFarEnd(t, server, server, false)
	defer far.close()
	provider := adapters["openai"](far.endpoint(t, "http://"+vendorHost+"/v1"))
	run := func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "seen", Files: []event.FileSeen{{Path: "sub/a.go", Digest: "d"}, {Path: "gone/a.go", Digest: "d"}}}, nil
	}
	b := newBench(t, "steps:\n"+done, func(s *belay.Settings) {
		s.Provider, s.Model, s.Completion = "openai", "m", belay.CompletionConversational
	}, pure("look", run))
	b.wrap = func(model.Provider) model.Provider { return provider }
	b.c.Around = &around{text: "Write s3cr3t-value nowhere."}
	var err error
	if b.e, err = newEngine(b.c); err != nil {
		t.Fatal(err)
	}
	keep := func(text string) *belay.Ref {
		ref, err := b.h.Put(t.Context(), []byte(text), "text/markdown")
		if err != nil {
			t.Fatal(err)
		}
		return &ref
	}
	for n, text := range []string{"Be brief.", "Be kind. " + strings.Repeat("Be kind. ", 600)} {
		b.changeRules(func(r *thread.Rules) {
			r.Environment, r.Tokens = true, 100
			r.Instructions = &belay.Content{Ref: keep("# Instructions\n" + text), Tokens: 10}
			r.Context = []event.ContextItem{{Kind: "instruction", Name: "AGENTS.md", Scope: "workspace", Ref: keep(text)}}
		})
		if n == 0 {
			b.run()
		} else {
			for i := range 2 {
				turn := belay.SubmitWork{Thread: thr, Task: belay.TaskID(fmt.Sprint("task_more", i)), Turn: belay.TurnID(fmt.Sprint("turn_more", i)), Text: belay.Content{Text: "more"}, Rules: b.ref}
				if err := b.h.Enqueue(t.Context(), belay.Order{ID: belay.CommandID(fmt.Sprint("cmd_more", i)), Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: turn}); err != nil {
					t.Fatal(err)
				}
				if err := b.e.Session(t.Context(), sess, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	heard := server.Heard()
	if len(heard) != 4 {
		t.Fatalf("%d requests", len(heard))
	}
	for i, want := range []struct{ changed, nested int }{{0, 0}, {1, 0}, {1, 0}, {1, 1}} {
		a, all := heard[i], strings.Join(heard[i].Texts, "\n")
		if strings.Count(a.System, "Be brief.") != 1 || strings.Contains(a.System, "Be kind.") || strings.Count(all, "(workspace) have changed. They are now:\n\nBe kind.") != want.changed ||
			strings.Count(all, "Instructions in sub/AGENTS.md, for what lies beside and below it:\n\nWrite [redacted:KEY] nowhere.") != want.nested || strings.Contains(string(a.Body), "s3cr3t") {
			t.Errorf("request %d: %s\n%s", i+1, a.System, all)
		}
	}
}
