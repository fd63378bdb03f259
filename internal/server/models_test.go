package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/builtin"
)

// standardModels are the read models of the standard's specification.
var standardModels = []string{
	"session_snapshot", "thread_read_model", "tool_inventory_snapshot", "queue_snapshot", "task_snapshot", "context_boundary_snapshot", "artifact_checkpoint_summary",
	"evidence_summary", "permission_sandbox_summary", "execution_environment_snapshot", "routing_limit_summary", "subagent_job_summary", "benchmark_summary", "channel_summary",
}

// notShown are the read models whose subsystem isn't here yet, and what they wait
// for. Whoever makes one answer takes it out.
var notShown = map[string]string{"evidence_summary": "evidence", "benchmark_summary": "benchmarks"}

// asking is a rig whose only session waits for a person.
func asking(t *testing.T) (r *rig, owner string, told app.Result) {
	r = newRig(t, asks)
	owner = r.token(auth.Owner, auth.DefaultTenant)
	told = r.command("submit_turn", owner, `{"text":"go","sessionId":"s1","turnId":"t1"}`).told(t)
	r.until(owner, told.Run, "waiting")
	return r, owner, told
}

// about is the path of a read model of a session, or of its thread.
func about(m app.Read, told app.Result) string {
	id := string(told.Session)
	if m.Of == "threads" {
		id = string(told.Thread)
	}
	return strings.Replace(m.Route(), "{id}", id, 1)
}

// TestReadModelsAreListed holds the list against what the server answers, in both
// directions, and against the documentation.
// Guarantee: L19.
func TestReadModelsAreListed(t *testing.T) {
	r, owner, told := asking(t)
	doc, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range readModels() {
		names = append(names, m.Name)
		a := r.do("GET", about(m, told), owner, "")
		why, waits := notShown[m.Name]
		switch {
		case waits && (a.status != http.StatusNotImplemented || a.Code != belay.CodeUnavailable || !strings.Contains(a.Detail, why)):
			t.Errorf("%s waits for %s and answers %d %s", m.Name, why, a.status, a.body)
		case !waits && a.status != http.StatusOK:
			t.Errorf("%s isn't listed as unavailable and answers %d %s", m.Name, a.status, a.body)
		case waits != (m.Later != "") || waits && m.Later != why || !waits && m.View == "":
			t.Errorf("%s: the table says it waits for %q and is made of %q", m.Name, m.Later, m.View)
		}
		row := fmt.Sprintf("| `%s` | `%s` | %s |", m.Name, strings.TrimPrefix(m.Route(), "/v1"), m.View)
		if waits {
			row = fmt.Sprintf("| `%s` | | unavailable: %s |", m.Name, why)
		}
		if !bytes.Contains(doc, []byte(row)) {
			t.Errorf("docs/api.md has no row %s", row)
		}
	}
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(slices.Values(standardModels))) {
		t.Errorf("the table has %v", names)
	}
	for _, other := range []string{"/v1/sessions/s1/read/evidence", "/v1/sessions/s1/read/thread_read_model", "/v1/sessions/s1/read/"} {
		if a := r.do("GET", other, owner, ""); a.status != http.StatusNotFound {
			t.Errorf("%s isn't listed and answers %d %s", other, a.status, a.body)
		}
	}
	for _, o := range (&read.Reads{}).Routes() {
		if strings.Contains(o.Pattern, "/read/") {
			t.Errorf("%s is served beside the table", o.Pattern)
		}
	}
}

// TestReadModelsAreWhatIsDescribed: each answers with a document of the schema
// that the description names, of the session asked for, as far as it was told to
// wait for; an unknown session is not found, and a position is a number.
// Guarantee: L19.
func TestReadModelsAreWhatIsDescribed(t *testing.T) {
	r, owner, told := asking(t)
	raw, err := OpenAPI(builtin.Commands(), builtin.Reads())
	if err != nil {
		t.Fatal(err)
	}
	var doc apiDocument
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	validate := components(t, raw)
	for _, m := range readModels() {
		if m.Later != "" {
			if doc.Paths[m.Route()] != nil || doc.Unavailable[m.Name] != m.Later {
				t.Errorf("%s isn't described as unavailable", m.Name)
			}
			continue
		}
		a := r.do("GET", fmt.Sprintf("%s?after=%d", about(m, told), told.Position), owner, "")
		var any any
		var head struct {
			Position  int64
			Stale     bool
			SessionID string
		}
		if err := json.Unmarshal(a.body, &any); err != nil {
			t.Fatalf("%s: %d %s", m.Name, a.status, a.body)
		}
		if err := validate(m.Out.Name(), any); err != nil {
			t.Errorf("%s: %v\n%s", m.Name, err, a.body)
		}
		if err := json.Unmarshal(a.body, &head); err != nil || head.SessionID != "s1" || head.Stale || head.Position < int64(told.Position) {
			t.Errorf("%s: %s", m.Name, a.body)
		}
		none := strings.Replace(m.Route(), "{id}", "nobody", 1)
		if a := r.do("GET", none, owner, ""); a.status != http.StatusNotFound || a.Field != "path id" {
			t.Errorf("%s: %d %s", none, a.status, a.body)
		}
		if a := r.do("GET", about(m, told)+"?after=x", owner, ""); a.status != http.StatusBadRequest || a.Field != "query after" {
			t.Errorf("%s after x: %d %s", m.Name, a.status, a.body)
		}
		if a := r.do("GET", about(m, told), r.token(auth.Viewer, "other"), ""); a.status != http.StatusNotFound {
			t.Errorf("%s of another tenant: %d %s", m.Name, a.status, a.body)
		}
	}
}

// TestReadModelsTellTheTruth: what waits for a person is blocked and asked in
// each of them, and is not once it is answered.
// Guarantee: L21.
func TestReadModelsTellTheTruth(t *testing.T) {
	r, owner, told := asking(t)
	c, err := client.New(r.url, client.Options{Token: owner, HTTP: r.client})
	if err != nil {
		t.Fatal(err)
	}
	waiting := r.command("submit_turn", owner, `{"text":"and then","sessionId":"s1","turnId":"t2"}`).told(t)
	after := int64(waiting.Position)
	var queue read.QueueSnapshot
	var thread read.ThreadRead
	var allowed read.PermissionSandbox
	var tasks read.TaskSnapshot
	look := func() {
		t.Helper()
		queue, thread, allowed, tasks = read.QueueSnapshot{}, read.ThreadRead{}, read.PermissionSandbox{}, read.TaskSnapshot{}
		for _, err := range []error{
			c.ReadModel(t.Context(), client.QueueSnapshot, "s1", after, &queue), c.ReadModel(t.Context(), client.ThreadReadModel, string(told.Thread), after, &thread),
			c.ReadModel(t.Context(), client.PermissionSandboxSummary, "s1", after, &allowed), c.ReadModel(t.Context(), client.TaskSnapshot, "s1", after, &tasks),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	// A stream tells another one a moment later.
	lookUntil := func(known func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for st := r.opened[auth.DefaultTenant]; ctx.Err() == nil; {
			changed := st.Changed(ctx)
			if look(); known() {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
	lookUntil(func() bool { return len(queue.Threads) == 1 && len(queue.Threads[0].Queued) == 1 })
	if len(queue.Threads) != 1 || queue.Threads[0].Status != "blocked" || queue.Threads[0].Active != "t1" || len(queue.Threads[0].Queued) != 1 || queue.Threads[0].Queued[0].Turn != "t2" {
		t.Errorf("the queue: %+v", queue)
	}
	if thread.Thread.Status != "blocked" || len(thread.Thread.Pending) != 1 || len(thread.Thread.Turns) != 1 || len(thread.Tasks) != 2 {
		t.Errorf("the thread: %+v", thread.Thread)
	}
	if len(allowed.Pending) != 1 || allowed.Permission.Pending != 1 || allowed.Permission.Mode != belay.ModeDefault {
		t.Errorf("permissions: %+v", allowed)
	}
	if tasks.Summary.Total != 2 || len(tasks.Graph.Edges) != 0 {
		t.Errorf("tasks: %+v", tasks)
	}
	var answered app.Result
	if err := c.Command(t.Context(), "respond_action", "", map[string]string{"actionId": string(allowed.Pending[0].ActionID), "decision": "answer", "message": "blue"}, &answered); err != nil {
		t.Fatal(err)
	}
	after = int64(r.until(owner, waiting.Run, "ended").Position)
	over := func() int { return tasks.Summary.ByStatus["completed"] + tasks.Summary.ByStatus["failed"] }
	lookUntil(func() bool { return over() == 2 }) // they are told by their thread, and stale while nobody drives them to hear it
	if len(queue.Threads[0].Queued) != 0 || queue.Threads[0].Active != "" || len(allowed.Pending) != 0 || thread.Thread.Turns[0].TurnID != "t2" || over() != 2 {
		t.Errorf("afterwards: %+v %+v %+v %+v", queue, allowed, thread.Thread, tasks.Summary)
	}
}

// TestTheClientKnowsEveryReadModel reads each by its name.
func TestTheClientKnowsEveryReadModel(t *testing.T) {
	r, owner, told := asking(t)
	c, err := client.New(r.url, client.Options{Token: owner, HTTP: r.client})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range readModels() {
		id := string(told.Session)
		if m.Of == "threads" {
			id = string(told.Thread)
		}
		var out struct{ SessionID string }
		err := c.ReadModel(t.Context(), client.ReadModel(m.Name), id, 0, &out)
		if m.Later != "" && belay.CodeOf(err) != belay.CodeUnavailable || m.Later == "" && (err != nil || out.SessionID != "s1") {
			t.Errorf("%s: %+v %v", m.Name, out, err)
		}
		if !slices.Contains(client.ReadModels, client.ReadModel(m.Name)) {
			t.Errorf("the client doesn't name %s", m.Name)
		}
	}
	if len(client.ReadModels) != len(readModels()) {
		t.Errorf("the client names %v", client.ReadModels)
	}
}
