package client

import (
	"context"
	"net/url"
	"strconv"
)

// ReadModel is the name of one of the standard's read models.
type ReadModel string

// The read models, in the standard's order.
const (
	SessionSnapshot              ReadModel = "session_snapshot"
	ThreadReadModel              ReadModel = "thread_read_model" // of a thread; all others are of a session
	ToolInventorySnapshot        ReadModel = "tool_inventory_snapshot"
	QueueSnapshot                ReadModel = "queue_snapshot"
	TaskSnapshot                 ReadModel = "task_snapshot"
	ContextBoundarySnapshot      ReadModel = "context_boundary_snapshot"
	ArtifactCheckpointSummary    ReadModel = "artifact_checkpoint_summary"
	EvidenceSummary              ReadModel = "evidence_summary"
	PermissionSandboxSummary     ReadModel = "permission_sandbox_summary"
	ExecutionEnvironmentSnapshot ReadModel = "execution_environment_snapshot"
	RoutingLimitSummary          ReadModel = "routing_limit_summary"
	SubagentJobSummary           ReadModel = "subagent_job_summary"
	BenchmarkSummary             ReadModel = "benchmark_summary"
	ChannelSummary               ReadModel = "channel_summary"
)

// ReadModels lists them.
var ReadModels = []ReadModel{SessionSnapshot, ThreadReadModel, ToolInventorySnapshot, QueueSnapshot, TaskSnapshot, ContextBoundarySnapshot, ArtifactCheckpointSummary,
	EvidenceSummary, PermissionSandboxSummary, ExecutionEnvironmentSnapshot, RoutingLimitSummary, SubagentJobSummary, BenchmarkSummary, ChannelSummary}

// ReadModel reads one into out. id is the session's, or the thread's for
// ThreadReadModel. The answer has seen everything up to the position after, which
// a command told, or says that it is stale; 0 waits for nothing. One that the
// server's build has no facts for is belay.CodeUnavailable.
func (c *Client) ReadModel(ctx context.Context, m ReadModel, id string, after int64, out any) error {
	of := "sessions"
	if m == ThreadReadModel {
		of = "threads"
	}
	query := url.Values{}
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	return c.Get(ctx, "/v1/"+of+"/"+url.PathEscape(id)+"/read/"+url.PathEscape(string(m)), query, out)
}
