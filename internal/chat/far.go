package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/block"
)

// farAnswer is what a server answers in place of a command of this program.
type farAnswer struct {
	read    string // of the table of reads
	command string // or of the table of commands, about this session
	thread  bool   // it is about the thread
}

// farAnswers are those commands, by their names.
var farAnswers = map[string]farAnswer{
	"context":       {read: "getThreadContext", thread: true},
	"sessions list": {read: "read_sessions"},
	"budget show":   {read: "getSessionBudget"},
	"mcp list":      {read: "listMcpServers"},
	"why":           {read: "why"},
	"agents ps":     {command: "list_subagents"},
	"tasks list":    {command: "list_tasks"},
	"grants list":   {command: "list_grants"},
	"queue list":    {command: "get_thread_read"},
}

// printsFar prints what the server answers in place of a command of this program; false:
// there is no such answer.
func (c slash) printsFar(args []string) bool {
	words := args[:min(2, len(args))]
	a, ok := farAnswers[strings.Join(words, " ")]
	if !ok {
		words = args[:1]
		a, ok = farAnswers[words[0]]
	}
	if !ok {
		return false
	}
	id := strings.Join(args[len(words):], " ")
	if a.thread {
		id = string(c.conv.thread)
	}
	session := c.conv.session
	c.jobs.start(func(ctx context.Context) func() {
		var answer json.RawMessage
		var err error
		switch {
		case a.read != "":
			err = c.Runtime.Read(ctx, a.read, Query{ID: id}, &answer)
		case session == "":
			err = c.Runtime.Do(ctx, a.command, nil, &answer)
		default:
			err = c.Runtime.Do(ctx, a.command, map[string]any{"sessionId": session}, &answer)
		}
		return func() {
			if c.failed(err); err == nil {
				c.printText(strings.Join(written(answer), "\n"))
			}
		}
	})
	return true
}

// unsaid are the names of what says how new an answer is.
var unsaid = []string{"position", "stale", "behind"}

// written is an answer in lines: a name and its value in each, what belongs to it below.
func written(answer json.RawMessage) []string {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return values("", "", v)
}

func values(indent, name string, v any) (all []string) {
	head := indent + name
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		if name != "" {
			all, indent = append(all, head), indent+"  "
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(unsaid, name) {
				all = append(all, values(indent, name, v[name])...)
			}
		}
		return all
	case []any:
		for i, one := range v {
			all = append(all, values(indent, fmt.Sprintf("%s %d", name, i+1), one)...)
		}
		return all
	}
	for i, line := range strings.Split(strings.TrimRight(block.Text(fmt.Sprint(v)), "\n"), "\n") {
		if i == 0 {
			line = fmt.Sprintf("%-22s %s", head, line)
		} else {
			line = indent + "  " + line
		}
		all = append(all, line)
	}
	return all
}
