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

// editor is the program that a person changes text with: $VISUAL, $EDITOR, else vi,
// split at blanks. No shell reads it.
func (e *Env) editor() []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if argv := strings.Fields(e.Getenv(name)); len(argv) > 0 {
			return argv
		}
	}
	return []string{"vi"}
}

// EditText lets a person change a text in their editor, in a file of the name that
// only they can read and that is gone afterwards.
func (e *Env) EditText(ctx context.Context, name string, text []byte) (edited []byte, err error) {
	dir, err := os.MkdirTemp("", "belay-edit-") // made for this user alone
	file := filepath.Join(dir, name)
	if err == nil {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return nil, belay.Errorf(belay.CodeNotWritten, "no file can be made for the editor").WithHint("set TMPDIR to a folder with room").Wrap(err)
	}
	argv := e.editor()
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:len(argv):len(argv)], file)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Environ, e.In, e.Err, e.Err
	if err := cmd.Run(); err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "the editor %s failed", argv[0]).WithHint("set EDITOR to one that works").Wrap(err)
	}
	edited, err = files.ReadUpTo(file, maxEdited)
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "the edited text can't be read").WithHint("save it in less than 4 MiB").Wrap(err)
	}
	return edited, nil
}

// Edit lets a person change a call's arguments in their editor. What doesn't show
// itself is written as JSON escapes. Arguments that were left as they are, an editor
// that fails and a file that isn't JSON are errors: nothing is answered then.
func (e *Env) Edit(ctx context.Context, args []byte) (json.RawMessage, error) {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, args, "", "  "); err != nil {
		return nil, belay.Errorf(belay.CodeBadState, "the call's arguments aren't JSON, so they can't be edited").WithHint("give them with --args")
	}
	pretty.WriteByte('\n')
	before := safeJSON(pretty.Bytes())
	after, err := e.EditText(ctx, "arguments.json", before)
	if e, ok := errors.AsType[*belay.Error](err); ok {
		e.Message += ", so nothing was answered"
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	if bytes.Equal(after, before) {
		return nil, belay.Errorf(belay.CodeUsage, "nothing was changed, so nothing was answered").WithHint("without an edit: belay approve ID")
	}
	return ParseArgs(after)
}

// maxEdited is how much of an edited file is read: more than a call's arguments may
// have without their blanks.
const maxEdited = 4 << 20

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
