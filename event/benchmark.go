package event

import (
	"encoding/json"
	"strings"
)

// Promoted is what a fact says beside its payload as well: the standard wants
// these objects on the envelope. They are read from the payload; the copy is
// written, never read.
type Promoted struct {
	Benchmark  *Benchmark  `json:"benchmark,omitempty"`
	Trajectory *Trajectory `json:"trajectory,omitempty"`
	Reward     *Reward     `json:"reward,omitempty"`
	Comparison *Comparison `json:"comparison,omitempty"`
}

func (p Promoted) promoted() Promoted { return p }

// promoted is what a payload puts on the envelope. A newer version of a fact
// that this build can't read keeps its objects: they are part of the standard.
func promoted(p Payload) Promoted {
	switch v := p.(type) {
	case interface{ promoted() Promoted }:
		return v.promoted()
	case Unknown:
		var found Promoted
		if strings.HasPrefix(v.Type, "benchmark.") && json.Unmarshal(v.Raw, &found) == nil {
			return found
		}
	}
	return Promoted{}
}

// BenchmarkRole is the part a configuration plays in a comparison.
type BenchmarkRole string

// The parts of configurations.
const (
	RoleBaseline  BenchmarkRole = "baseline"
	RoleCandidate BenchmarkRole = "candidate"
	RoleControl   BenchmarkRole = "control"
)

// Benchmark says which data set, task, configuration and trial a fact is about.
type Benchmark struct {
	DatasetID       string        `json:"datasetId,omitempty"`
	DatasetVersion  string        `json:"datasetVersion,omitempty"`
	DatasetRef      string        `json:"datasetRef,omitempty"`
	TaskID          string        `json:"taskId,omitempty"` // in the data set
	TrialID         string        `json:"trialId,omitempty"`
	ConfigurationID string        `json:"configurationId,omitempty"`
	Role            BenchmarkRole `json:"role,omitempty"`
	HarborJobRef    string        `json:"harborJobRef,omitempty"`
	HarborTrialRef  string        `json:"harborTrialRef,omitempty"`
	ChangedVariable string        `json:"singleChangedVariable,omitempty"`
}

// ExportStatus says the outcome of a trajectory.
type ExportStatus string

// The outcomes of an export.
const (
	ExportPending      ExportStatus = "pending"
	ExportDone         ExportStatus = "exported"
	ExportFailed       ExportStatus = "failed"
	ExportRedacted     ExportStatus = "redacted"
	ExportNotSupported ExportStatus = "not-supported"
)

// Trajectory is the record of a trial in a form that graders read.
type Trajectory struct {
	Schema string            `json:"schema,omitempty"`
	Ref    string            `json:"ref,omitempty"`
	Status ExportStatus      `json:"exportStatus,omitempty"`
	Fields map[string]string `json:"requiredFieldStatus,omitempty"` // field → present, missing, not_applicable
}

// Reward is a grader's verdict on a trial.
type Reward struct {
	Value    float64  `json:"value"`
	Ref      string   `json:"ref,omitempty"`
	Details  string   `json:"detailsRef,omitempty"`
	Criteria []string `json:"criteria,omitempty"`
	Failure  string   `json:"failureCategory,omitempty"`
}

// Comparison is what sets two configurations apart.
type Comparison struct {
	RewardDelta  float64 `json:"meanRewardDelta"`
	TimeoutDelta float64 `json:"timeoutRateDelta"`
	Completeness float64 `json:"evidenceCompletenessRate"`
	Regressions  int     `json:"p0QcGateRegressionCount"`
	Decision     string  `json:"decision,omitempty"` // promote, revert, blocked, needs_review
}

// BenchmarkDatasetResolved fixes the data set.
type BenchmarkDatasetResolved struct {
	fact
	Promoted
	Selection string `json:"selection,omitempty"` // how tasks were chosen
	Tasks     int    `json:"tasks,omitempty"`
}

// BenchmarkConfigurationResolved fixes one of the configurations compared.
type BenchmarkConfigurationResolved struct {
	fact
	Promoted
	Agent    string `json:"agent,omitempty"`
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Prompt   string `json:"prompt,omitempty"` // digest or name
	Tools    string `json:"tools,omitempty"`  // name of the tool set
}

// BenchmarkTrialStarted begins a trial on a run of a task.
type BenchmarkTrialStarted struct {
	fact
	Promoted
	Attempt    int    `json:"attempt"`
	TimeoutSec int64  `json:"timeoutSec,omitempty"`
	Budget     int64  `json:"budget,omitempty"` // micro-USD
	Boundary   string `json:"boundary,omitempty"`
}

// BenchmarkTrialCompleted is a trial that ran to its end. How well it did is
// the reward's to say.
type BenchmarkTrialCompleted struct {
	fact
	Promoted
	Millis    int64    `json:"ms,omitempty"`
	Artifacts []string `json:"artifacts,omitempty"`
	Cleanup   string   `json:"cleanup,omitempty"`
}

// BenchmarkTrialFailed is a trial without a result.
type BenchmarkTrialFailed struct {
	fact
	Promoted
	Category string `json:"failureCategory"` // timeout, blocked, runtime, model, tool, environment, verifier
	Reason   string `json:"reason"`
	Millis   int64  `json:"ms,omitempty"`
}

// BenchmarkRewardRecorded is the verdict on a trial, as the grader gave it.
type BenchmarkRewardRecorded struct {
	fact
	Promoted
	Verifier string `json:"verifier,omitempty"`
	Drift    string `json:"drift,omitempty"` // what is odd about the grader itself
}

// BenchmarkComparisonCompleted sets two configurations side by side.
type BenchmarkComparisonCompleted struct {
	fact
	Promoted
	Baseline  string `json:"baseline"` // configuration ids
	Candidate string `json:"candidate"`
	Risk      string `json:"risk,omitempty"` // what stays uncertain
}
