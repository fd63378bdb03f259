package event

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay"
)

// ArtifactChanged reports that content changed: a file, a memory, a
// definition, a plan, a published artifact.
type ArtifactChanged struct {
	fact
	Kind    string       `json:"kind"` // file, memory, rules, snapshot, flow, agent, skill, playbook, schedule, plan, artifact
	Path    string       `json:"path,omitempty"`
	Op      string       `json:"op,omitempty"`     // file: created, changed, removed; memory: stored, updated, forgotten, quarantined, confirmed; definition: defined, edited, refused, removed; agent besides: paused, resumed, stopped, trial, checked; plan: changed; artifact: published; skill: used; snapshot: taken, failed
	Before  *belay.Ref   `json:"before,omitempty"` // kept content
	After   *belay.Ref   `json:"after,omitempty"`
	Kept    bool         `json:"kept,omitempty"`    // the content before can be restored
	Mode    string       `json:"mode,omitempty"`    // permission bits of the file before, in octal
	Name    string       `json:"name,omitempty"`    // of a memory, a definition, a skill or an artifact
	Version string       `json:"version,omitempty"` // of a definition; of an artifact a number from 1
	Digest  belay.Digest `json:"digest,omitempty"`  // of a definition, or of a memory
	Scope   string       `json:"scope,omitempty"`   // of a memory: session, workspace, user
	Origin  string       `json:"origin,omitempty"`  // where a memory or a definition comes from
	Note    string       `json:"note,omitempty"`
	By      string       `json:"by,omitempty"`   // of an agent: the principal that paused, stopped or resumed it
	Now     bool         `json:"now,omitempty"`  // with it: what it did was cancelled
	Turn    belay.TurnID `json:"turn,omitempty"` // of an agent's trial
	Plan    []PlanItem   `json:"plan,omitempty"` // the whole plan
}

// PlanItem is one thing to do.
type PlanItem struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Status string `json:"status"` // pending, in_progress, completed, cancelled
}

// Statuses of a plan's item.
const (
	PlanPending    = "pending"
	PlanInProgress = "in_progress"
	PlanCompleted  = "completed"
	PlanCancelled  = "cancelled"
)

// Open reports whether something is left to do about the item.
func (i PlanItem) Open() bool { return i.Status == PlanPending || i.Status == PlanInProgress }

// EvidenceChanged says that proof was exported, or why there is none.
type EvidenceChanged struct {
	fact
	Kind   string     `json:"kind"`   // pack, replay, review
	Status string     `json:"status"` // exported, not_applicable, unsupported, missing_correlation
	Pack   *belay.Ref `json:"pack,omitempty"`
	Gaps   []string   `json:"gaps,omitempty"` // what applies and is not in it
}

// PlanText is a plan as people and models read it, an item a line.
func PlanText(items []PlanItem) string {
	var b strings.Builder
	done := 0
	for _, i := range items {
		mark := map[string]string{PlanInProgress: ">", PlanCompleted: "x", PlanCancelled: "-"}[i.Status]
		if mark == "" {
			mark = " "
		}
		if !i.Open() {
			done++
		}
		fmt.Fprintf(&b, "[%s] %s. %s\n", mark, i.ID, i.Text)
	}
	fmt.Fprintf(&b, "%d of %d done", done, len(items))
	return b.String()
}
