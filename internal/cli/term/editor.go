package term

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
)

// editor is the program that a person changes text with: $VISUAL, else $EDITOR,
// split at blanks. No shell reads it.
func (e *Env) editor() []string {
	if argv := strings.Fields(e.Getenv("VISUAL")); len(argv) > 0 {
		return argv
	}
	return strings.Fields(e.Getenv("EDITOR"))
}

// Edit lets a person change a call's arguments in their editor, in a file that
// only they can read and that is gone afterwards. What doesn't show itself is
// written as JSON escapes. Arguments that were left as they are, an editor that
// fails and a file that isn't JSON are errors: nothing is answered then.
func (e *Env) Edit(ctx context.Context, args []byte) (edited json.RawMessage, err error) {
	argv := e.editor()
	if len(argv) == 0 {
		return nil, belay.Errorf(belay.CodeUsage, "no editor is known").WithHint("set VISUAL or EDITOR, or give the arguments with --args")
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, args, "", "  "); err != nil {
		return nil, belay.Errorf(belay.CodeBadState, "the call's arguments aren't JSON, so they can't be edited").WithHint("give them with --args")
	}
	pretty.WriteByte('\n')
	before := safeJSON(pretty.Bytes())
	dir, err := os.MkdirTemp("", "belay-edit-") // made for this user alone
	name := filepath.Join(dir, "arguments.json")
	if err == nil {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		err = os.WriteFile(name, before, 0o600)
	}
	if err != nil {
		return nil, belay.Errorf(belay.CodeNotWritten, "no file can be made for the editor").WithHint("set TMPDIR to a folder with room, or say the arguments with --args").Wrap(err)
	}
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:len(argv):len(argv)], name)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Environ, e.In, e.Err, e.Err
	if err := cmd.Run(); err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "the editor %s failed, so nothing was answered", argv[0]).WithHint("set EDITOR to one that works, or say the arguments with --args").Wrap(err)
	}
	return readEdited(name, before)
}

// maxEdited is how much of an edited file is read: more than a call's arguments may
// have without their blanks.
const maxEdited = 4 << 20

// readEdited is what the editor left.
func readEdited(name string, before []byte) (json.RawMessage, error) {
	after, err := files.ReadUpTo(name, maxEdited)
	switch {
	case err != nil:
		return nil, belay.Errorf(belay.CodeUsage, "the edited arguments can't be read, so nothing was answered").WithHint("say them with --args").Wrap(err)
	case bytes.Equal(after, before):
		return nil, belay.Errorf(belay.CodeUsage, "nothing was changed, so nothing was answered").WithHint("without an edit: belay approve ID")
	}
	return ParseArgs(after)
}

// ParseArgs reads arguments that a person wrote, as one JSON object.
func ParseArgs(text []byte) (json.RawMessage, error) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal(text, &args); err != nil || args == nil {
		e := belay.Errorf(belay.CodeBadArguments, "the arguments aren't a JSON object, so nothing was answered")
		if err != nil {
			e = e.Wrap(err)
		}
		return nil, e.WithHint(`they look like {"path": "a.txt"}`)
	}
	var one bytes.Buffer
	err := json.Compact(&one, text)
	return one.Bytes(), err
}
