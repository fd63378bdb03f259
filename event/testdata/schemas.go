// Package testdata holds the schemas of the standard for tests to read.
package testdata

import "embed"

// AgentRuntime is the directory agentruntime-0.4.0, unchanged.
//
//go:embed agentruntime-0.4.0/*.json
var AgentRuntime embed.FS
