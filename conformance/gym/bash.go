package gym

import (
	"context"
	"encoding/json"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
)

// defaultTimeout bounds a command of the gym that says nothing.
const defaultTimeout = 30 * time.Second

// execute is bash:execute: our exec behind the gym's checks.
func execute() tool.Tool {
	return wrapped{tool.Spec{Name: toolName("bash:execute"), Doc: "Runs a command: command, cwd, timeout in milliseconds.", Input: json.RawMessage(anything),
		Effect: belay.AtMostOnce, Destructive: true, Access: belay.Write, Capabilities: []string{tool.CapProcess}}, bash}
}

func bash(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	command, _ := a["command"].(string)
	if command = strings.TrimSpace(command); command == "" {
		return tool.Result{}, tool.Failf(tool.BadArguments, codeArguments, "Command must be a non-empty string.")
	}
	if pattern := dangerous(command); pattern != "" {
		return tool.Result{}, tool.Failf(tool.Denied, codeDenied, "Command contains potentially dangerous pattern: %s", pattern)
	}
	if op := operator(command); op != "" {
		return tool.Result{}, tool.Failf(tool.Denied, codeDenied, "Command contains unsafe shell operator: %s", op)
	}
	dir, err := folder(c, a)
	if err != nil {
		return tool.Result{}, err
	}
	limit := defaultTimeout
	if ms, ok := a["timeout"].(float64); ok && ms > 0 && ms < float64(limit.Milliseconds()) {
		limit = time.Duration(ms * float64(time.Millisecond))
	}
	w := &watched{Sink: c.Sink}
	c.Sink = w
	r, err := ask(ctx, exec.Exec(exec.Config{}), c, toRun{command, dir, limit.Seconds()})
	if err != nil {
		if e, ok := err.(*tool.Error); ok && e.Code == exec.CodeTimeout {
			out := tool.Failf(tool.Timeout, codeTimeout, "Command timed out after %dms", limit.Milliseconds())
			out.Text, out.Output = e.Text, e.Output
			return tool.Result{}, out
		}
		return tool.Result{}, translated(err, "run the command", dir)
	}
	if w.exit != 0 {
		out := tool.Failf(tool.Internal, codeFailed, "Command exited with code %d", w.exit)
		out.Text, out.Output = r.Text, r.Output
		return tool.Result{}, out
	}
	return r, nil
}

// watched sees how a program ended.
type watched struct {
	tool.Sink
	exit int
}

func (w *watched) Fact(p event.Payload) {
	if end, ok := p.(event.ProcessCompleted); ok {
		w.exit = end.Exit
	}
	w.Sink.Fact(p)
}

// folder is where a command runs: below the workspace.
func folder(c tool.Call, a args) (string, error) {
	cwd, _ := a["cwd"].(string)
	if cwd = strings.TrimSpace(cwd); cwd == "" {
		return ".", nil
	}
	if rest, ok := strings.CutPrefix(path.Clean(cwd)+"/", c.Dir+"/"); ok {
		cwd = "./" + rest
	}
	cwd = path.Clean(cwd)
	if path.IsAbs(cwd) || cwd == ".." || strings.HasPrefix(cwd, "../") {
		return "", tool.Failf(tool.Denied, codeDenied, "Working directory is outside sandbox root")
	}
	return cwd, nil
}

// patterns are compiled when the first command is looked at: every start of the
// program would pay for them.
var patterns = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?i)rm\s+-rf\s+[/~]`),
		regexp.MustCompile(`(?i)mkfs`),
		regexp.MustCompile(`(?i)dd\s+if=`),
		regexp.MustCompile(`(?i)>\s*/dev/`),
		regexp.MustCompile(`(?i)chmod\s+777`),
		regexp.MustCompile(`:\(\)\{ :\|:& \};:`),
	}
})

// dangerous is the first of the patterns that a command has, wherever it stands.
func dangerous(command string) string {
	for _, p := range patterns() {
		if p.MatchString(command) {
			return p.String()
		}
	}
	return ""
}

// operators are looked for in this order at each place of a command, the long
// ones first.
var operators = [...]string{"&&", "||", "|&", ">>", ">&", "<&", ";", "|", "&", ">", "<", "`"}

// separators end a line in some shell or editor, also between quotes.
var separators = map[rune]string{'\n': "a newline", '\r': "a carriage return", '\u0085': "U+0085", '\u2028': "U+2028", '\u2029': "U+2029"}

// operator is the first operator of a command that isn't quoted.
// Single quotes hide everything but the ends of lines; double quotes don't hide
// $( either; a backslash hides the next character, but not between single quotes.
func operator(command string) string {
	var single, double, escaped bool
	for i, c := range command {
		switch {
		case escaped:
			escaped = false
			continue
		case c == '\\' && !single:
			escaped = true
			continue
		case c == '"' && !single:
			double = !double
			continue
		case c == '\'' && !double:
			single = !single
			continue
		}
		if name := separators[c]; name != "" {
			return name
		}
		rest := command[i:]
		if !single && strings.HasPrefix(rest, "$(") {
			return "$("
		}
		if single || double {
			continue
		}
		for _, op := range operators {
			if strings.HasPrefix(rest, op) {
				return op
			}
		}
	}
	return ""
}
