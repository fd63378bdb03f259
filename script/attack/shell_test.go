//go:build linux

package attack

import "testing"

// TestDialects: what the classifier parses is what the session's shell runs.
func TestDialects(t *testing.T) {
	play(t, expectation{decided: true, outside: true}, []attack{
		{name: "double parenthesis", command: `((1>MARK))`, shell: "dash"},
	})
}

// TestControls: the harness notices what happens.
func TestControls(t *testing.T) {
	play(t, expectation{}, []attack{
		{name: "touch", command: "touch MARK", control: true},
		{name: "a script that was allowed", files: map[string]string{"job.sh": "echo done >MARK"}, command: "sh job.sh", flags: []string{"--allow", "exec"}, control: true},
	})
}
