package thread

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// maxArtifacts bounds the names under which a thread publishes: the state
// remembers the newest version of each.
const maxArtifacts = 100

// applyArtifact folds what a call changed that isn't a file: the thread's plan
// and what it published.
func (s *State) applyArtifact(e event.Envelope, p event.ArtifactChanged) {
	switch p.Kind {
	case "snapshot":
		s.kept(e, p)
	case "plan":
		s.Plan, s.PlanAt, s.Recall = p.Plan, e.Seq, false
	case "artifact":
		version, err := strconv.Atoi(p.Version)
		_, known := s.Published[p.Name]
		if err != nil || p.After == nil || !known && len(s.Published) >= maxArtifacts {
			return
		}
		if s.Published == nil {
			s.Published = map[string]belay.Published{}
		}
		s.Published[p.Name] = belay.Published{Version: version, Digest: p.After.Digest}
	}
}

// recall makes the next step remind the model of its plan, if something of it
// is left: it was written before a crash or by a turn that is over.
func (f *fileState) recall() {
	f.Recall = slices.ContainsFunc(f.Plan, event.PlanItem.Open)
}

// planNote is the reminder.
func (f *fileState) planNote() string {
	if !f.Recall {
		return ""
	}
	return "The plan as you left it; go on with it, or replace it if it no longer fits:\n" + event.PlanText(f.Plan)
}

// knows is what a publishing tool gets. A copy: effects outlive the state.
func (f *fileState) knows(spec belay.ToolSpec) map[string]belay.Published {
	if len(f.Published) == 0 || !slices.Contains(spec.Capabilities, capPublish) {
		return nil
	}
	return maps.Clone(f.Published)
}

// capPublish is the capability of tools that publish (tool.CapPublish).
const capPublish = "publish"

// joinNotes joins the notes at the end of a request.
func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "\n\n")
}
