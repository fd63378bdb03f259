package engine_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

const planScript = `
steps:
  - calls:
      - {tool: todo, args: {items: [{text: look, status: in_progress}, {text: fix}]}}
      - {tool: artifact_publish, args: {name: r.md, text: one}}
  - calls:
      - {tool: artifact_publish, args: {name: r.md, text: two}}
      - {tool: artifact_publish, args: {name: r.md, text: two}}
      - {tool: todo, args: {items: [{text: look, status: completed}, {text: fix, status: completed}]}}
  - calls:
      - {tool: complete_task, args: {summary: done}}
`

// TestPlanAndArtifactsSurviveACrashAtEveryPoint: the plan is what the model set
// last, and each content that was published is one version, however often the
// call had to be run.
// Guarantee: E30, E31.
func TestPlanAndArtifactsSurviveACrashAtEveryPoint(t *testing.T) {
	script, err := scripted.Parse("plan", []byte(planScript))
	if err != nil {
		t.Fatal(err)
	}
	var tools []tool.Tool
	for _, tl := range append([]tool.Tool{file.Publish()}, tool.TurnTools()...) {
		tools = append(tools, mortalOf(tl))
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for hit := true; hit; points++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.script, m.tools = script, set
			_, hit = m.run(points + 1)
			m.checkPlan(points + 1)
		})
	}
	if points < 30 {
		t.Errorf("only %d points", points)
	}
}

func (m *machine) checkPlan(at int) {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	s, err := loadThread(m.t.Context(), h)
	if err != nil {
		m.t.Fatal(err)
	}
	m.checkStream(m.t.Context(), h, thr.Stream(), at)
	if len(s.Plan) != 2 || slices.ContainsFunc(s.Plan, event.PlanItem.Open) || s.Recall {
		m.t.Errorf("crash %d: the plan is %+v", at, s.Plan)
	}
	if got, want := s.Published["r.md"], (belay.Published{Version: 2, Digest: belay.DigestOf([]byte("two"))}); got != want {
		m.t.Errorf("crash %d: published %+v, want %+v", at, got, want)
	}
	var versions []string
	for e, err := range h.Read(m.t.Context(), thr.Stream(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		if p, ok := e.Data.(event.ArtifactChanged); ok && p.Kind == "artifact" {
			versions = append(versions, p.Version)
			if content, err := h.Get(m.t.Context(), p.After.Digest); err != nil || len(content) != 3 || e.IDs.Artifact == "" {
				m.t.Errorf("crash %d: version %s of %q is %q, %v", at, p.Version, e.IDs.Artifact, content, err)
			}
		}
	}
	for i, v := range versions {
		if v != strconv.Itoa(i+1) || len(versions) != 2 {
			m.t.Errorf("crash %d: the versions are %v", at, versions)
			break
		}
	}
}

// An answer has at most 48 calls; the model is told how many more were dropped, and can
// make them then.
func TestCallsOfAnAnswerAreBounded(t *testing.T) {
	steps := "steps:\n  - calls:\n" + strings.Repeat("      - {tool: todo, args: {items: [{text: look}]}}\n", 60) +
		"  - when: {contains: 12 more calls of your answer were dropped}\n    calls: [{tool: complete_task, args: {summary: told}}]\n"
	script, err := scripted.Parse("many", []byte(steps))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		defer m.discard()
		m.script = script
		m.run()
		h := m.data.Open(memory.Options{})
		defer h.Close()
		var answers []event.ModelCompleted
		for e, err := range h.Read(t.Context(), thr.Stream(), 0) {
			if p, is := e.Data.(event.ModelCompleted); is && err == nil {
				answers = append(answers, p)
			}
		}
		if s, err := loadThread(t.Context(), h); err != nil || len(answers) != 2 || len(answers[0].Calls) != 48 || answers[0].Dropped != 12 || s.Prev.Outcome != belay.Completed {
			t.Errorf("%d answers, %+v, %v", len(answers), s.Prev, err)
		}
	})
}
