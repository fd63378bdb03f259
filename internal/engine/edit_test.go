package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/belay-run/belay/internal/effect"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
)

// noting is a tool that notes the arguments it runs with.
func noting(ran *[]string) fn {
	return fn{spec: tool.Spec{Name: "put", Doc: "d", Effect: belay.AtMostOnce, Access: belay.Write, PathArg: "path",
		Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}},"required":["path"],"additionalProperties":false}`)},
		run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			*ran = append(*ran, string(c.Args))
			return tool.Result{Text: "put"}, nil
		}}
}

const putting = "steps:\n  - calls: [{tool: put, args: {path: a.txt}}]\n" + done

func waits(s *belay.Settings) { s.Approvals = belay.ApprovalsWait }

// brings gives the open question an answer, as another process does, and tells how
// it was refused.
func (b *bench) brings(log []event.Envelope, c belay.RespondAction) error {
	b.t.Helper()
	for _, e := range log {
		if _, ok := e.Data.(event.ActionRequired); ok {
			c.Action = e.IDs.Action
		}
	}
	_, err := b.e.Submit(b.t.Context(), belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: "user:ann", Session: sess, Stream: thr.Stream(), Command: c})
	return err
}

// Guarantee: G60.
func TestAnEditedCallRunsAsItWasEditedAndTheModelIsTold(t *testing.T) {
	var ran []string
	b := newBench(t, putting, waits, noting(&ran))
	b.dropGrants()
	log := b.run()
	if err := b.brings(log, belay.RespondAction{Decision: "allow", Args: json.RawMessage(`{ "text": "hi", "path": "b.txt" }`)}); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	log = b.log()
	want := `{"path":"b.txt","text":"hi"}`
	if !slices.Equal(ran, []string{want}) {
		t.Errorf("it ran with %q", ran)
	}
	edits := find[event.ToolArgs](log)
	if len(edits) != 1 || string(edits[0].Args) != want || edits[0].By != "user:ann" || edits[0].Path != "b.txt" ||
		edits[0].Before != belay.DigestOf([]byte(`{"path":"a.txt"}`)) || edits[0].ArgsHash != belay.DigestOf([]byte(want)) {
		t.Errorf("on record is %+v", edits)
	}
	if started := find[event.ToolStarted](log); len(started) == 0 || started[0].ArgsHash != edits[0].ArgsHash {
		t.Errorf("started is %+v", started)
	}
	if told := b.asked[len(b.asked)-1]; !strings.Contains(told, "A person (user:ann) changed this call") || !strings.Contains(told, `\"path\":\"b.txt\"`) {
		t.Errorf("the model was told %s", told)
	}
	if n := len(find[event.TurnCompleted](log)); n != 1 {
		t.Errorf("%d ends", n)
	}
}

// What is wrong with an edit is said with its place, and the question stays open.
func TestAnEditThatTheToolDoesNotTakeIsRefusedAndChangesNothing(t *testing.T) {
	var ran []string
	b := newBench(t, putting, waits, noting(&ran))
	b.dropGrants()
	log := b.run()
	for args, want := range map[string]string{
		`{"text":"x"}`:                 `"path"`,
		`{"path":1}`:                   `"path"`,
		`{"path":"a","mode":"x"}`:      `"mode"`,
		`[1]`:                          "must be a JSON object",
		`{"path":"a","path":"b"}`:      "path",
		`{"path":"b\u0000"}`:           "NUL",
		`{"path":"s3cr3t-value"}`:      "registered secret",
		`{"path":"s3cr3t\u002dvalue"}`: "registered secret",
		`{"path":"` + strings.Repeat("x", effect.MaxEdit) + `"}`: "at most",
	} {
		err := b.brings(log, belay.RespondAction{Decision: "allow", Args: json.RawMessage(args)})
		if belay.CodeOf(err) != belay.CodeBadArguments || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", args, err)
		}
	}
	d, err := loadThread(t.Context(), b.h)
	if err != nil || len(d.Opens()) != 1 || len(find[event.ToolArgs](b.log())) != 0 {
		t.Errorf("%v, open are %+v", err, d.Opens())
	}
	if err := b.brings(log, belay.RespondAction{Decision: "allow"}); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ran, []string{`{"path":"a.txt"}`}) {
		t.Errorf("it ran with %q", ran)
	}
}

// Long arguments are content, and what the model is told of them is bounded.
func TestALongEditIsKeptBesideTheLog(t *testing.T) {
	var ran []string
	b := newBench(t, putting, waits, noting(&ran))
	b.dropGrants()
	log := b.run()
	long := `{"path":"b.txt","text":"` + strings.Repeat("y", 100<<10) + `"}`
	if err := b.brings(log, belay.RespondAction{Decision: "allow", Args: json.RawMessage(long)}); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	edits := find[event.ToolArgs](b.log())
	if len(edits) != 1 || edits[0].Args != nil || edits[0].ArgsRef == nil || edits[0].ArgsRef.Size != int64(len(long)) || !slices.Equal(ran, []string{long}) {
		t.Errorf("on record is %+v; it ran %d times", edits, len(ran))
	}
	if told := b.asked[len(b.asked)-1]; !strings.Contains(told, fmt.Sprintf("(%d bytes in all)", len(long))) || len(told) > 20<<10 {
		t.Errorf("the model was told %d bytes", len(told))
	}
}

// Where the paths of the changed call lead is looked up as for any call: a link to
// a protected place isn't followed because a person typed its name.
// Guarantee: G60.
func TestAnEditIsJudgedByWhereItsPathsLead(t *testing.T) {
	var ran []string
	b := newBench(t, putting, waits, noting(&ran))
	ws, out := b.besides()
	b.govern(policy.Document{Rules: []policy.Rule{{ID: "inside", Tier: policy.TierUser, Verdict: policy.Deny, Reason: "only inside", Match: policy.Match{Tool: []string{"put"}, Path: &policy.PathMatch{Where: "outside"}}}}})
	b.dropGrants()
	if err := os.Symlink(out, filepath.Join(ws, "here")); err != nil {
		t.Fatal(err)
	}
	log := b.run()
	if err := b.brings(log, belay.RespondAction{Decision: "allow", Args: json.RawMessage(`{"path":"here/key"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	log = b.log()
	edits, failed := find[event.ToolArgs](log), find[event.ToolFailed](log)
	if len(edits) != 1 || len(edits[0].Links) != 1 || edits[0].Links[0].Real != filepath.Join(out, "key") {
		t.Errorf("on record is %+v", edits)
	}
	if len(ran) != 0 || len(failed) != 1 || !strings.Contains(failed[0].Problem.Message, "only inside") {
		t.Errorf("it ran %q, failed is %+v", ran, failed)
	}
}

// Wherever the process dies between the answer and the end, the model's arguments
// never run, the person's at most once, and what happened is known.
// Guarantee: G60.
func TestAnEditIsWholeWhereverTheProcessDies(t *testing.T) {
	script, err := scripted.Parse("put.yaml", []byte(putting))
	if err != nil {
		t.Fatal(err)
	}
	points, lost := 0, 0
	for hit := true; hit; points++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.script = script
			var ran []string
			note := noting(&ran)
			if m.tools, err = tool.NewSet(append(tool.TurnTools(), mortalOf(note))...); err != nil {
				t.Fatal(err)
			}
			m.edit = json.RawMessage(`{"path":"b.txt"}`)
			_, hit = m.run(points + 1)
			if m.checkEdit(points+1, ran) {
				lost++
			}
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	if points < 15 || lost == 0 {
		t.Errorf("%d points, %d lost", points, lost)
	}
	t.Logf("%d points, %d lost", points, lost)
}

func (m *machine) checkEdit(at int, ran []string) (lost bool) {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	var told []string
	for e, err := range h.Read(m.t.Context(), thr.Stream(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		switch p := e.Data.(type) {
		case event.ToolArgs:
			told = append(told, "edit")
		case event.PermissionEvaluated:
			if p.Tool == "put" {
				told = append(told, p.Decision)
			}
		case event.ToolStarted:
			if p.Name == "put" {
				told = append(told, "start "+p.ArgsHash.Short())
			}
		case event.ToolFailed:
			lost = p.Problem.Class == "lost"
		}
	}
	hash := belay.DigestOf(m.edit).Short()
	if want := []string{"ask", "edit", "allow", "start " + hash}; !slices.Equal(told, want) {
		m.t.Errorf("died at %d: %q", at, told)
	}
	if len(ran) > 1 || !lost && len(ran) != 1 || len(ran) == 1 && ran[0] != string(m.edit) {
		m.t.Errorf("died at %d: it ran with %q, lost %v", at, ran, lost)
	}
	d, err := loadThread(m.t.Context(), h)
	if err != nil || d.Prev == nil || d.Prev.Outcome != belay.Completed {
		m.t.Errorf("died at %d: %v, ended %+v", at, err, d.Prev)
	}
	return lost
}
