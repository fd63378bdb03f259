package tool

import "context"

// ProgramLister is a tool that starts programs and can say beforehand what a call would
// start: an answer of a person is held to that. Starts starts nothing.
type ProgramLister interface {
	// Starts tells where and with what the call's programs would run, and which
	// files its own program and those of other names are. An error is that of Run.
	Starts(ctx context.Context, c Call, names []string) (Start, error)
}

// Start is what a call would start.
type Start struct {
	Dir      string         // absolute
	Env      []string       // NAME=value, all of it
	Programs []FoundProgram // the call's own program first
}

// FoundProgram is a program by name. No path: there is none that can be run.
type FoundProgram struct{ Name, Path string }
