package effect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// call checks a call's form and keeps its arguments, here or in a blob.
func (a *answer) call(ctx context.Context, c model.Call, budget *int) (event.ModelCall, error) {
	// Secrets go first: what is cut, quoted or escaped afterwards holds none.
	c.Name = a.v.e.c.Secrets.String(strings.ToValidUTF8(c.Name, "\uFFFD"))
	c.Args = string(a.v.e.c.Secrets.Args([]byte(strings.ToValidUTF8(c.Args, "\uFFFD")), a.v.e.c.ArgsKey))
	via := ""
	if _, offered := a.rules.Tool(c.Name); offered && c.Name == tool.CallName {
		if name, args, ok := tool.Unwrapped(c.Args); ok {
			via, c.Name, c.Args = c.Name, name, args
		}
	}
	mc := event.ModelCall{ProviderID: c.ID, Name: event.CutText(c.Name, 128), Via: via}
	args, hash, problem := a.v.tools(ctx, a.eff.IDs.Turn, a.rules).Check(c.Name, c.Args)
	if problem == nil {
		problem = a.checkOutput(c.Name, args)
	}
	mc.Problem, mc.ArgsHash = problem, hash
	if len(args) == 0 { // not JSON: kept as a JSON string so that it can be shown
		args, _ = json.Marshal(c.Args)
		mc.ArgsHash = belay.DigestOf(args)
	}
	if spec, ok := a.rules.Tool(c.Name); ok && problem == nil {
		paths := tool.Paths(spec, args)
		a.named(&mc, spec, paths, budget)
		a.linked(&mc, spec, args, paths, budget)
	}
	if len(args) <= inlineArgs && len(args) <= *budget {
		*budget -= len(args)
		mc.Args = args
		return mc, nil
	}
	ref, err := a.v.e.c.Store.Put(ctx, args, "application/json")
	mc.ArgsRef = &ref
	return mc, err
}

// checkOutput holds the completion's output against the schema the turn asks for.
func (a *answer) checkOutput(name string, args []byte) *event.Problem {
	spec, ok := a.rules.Tool(name)
	if !ok || spec.Handled != "complete" || len(a.rules.Output) == 0 {
		return nil
	}
	return checkOutput(a.rules.Output, args)
}

// named puts the files that a call names into its fact. A call whose files don't
// fit isn't run: nothing could be judged by them.
func (a *answer) named(mc *event.ModelCall, spec belay.ToolSpec, paths []string, budget *int) {
	size := 0
	for i, p := range paths {
		p = file.Within(a.rules.Workspace, p) // a file has one name, or it isn't known again
		paths[i] = p
		size += event.TextLen(p) + 3
	}
	switch {
	case len(paths) == 0:
	case size > *budget && spec.PathForm != "":
		mc.Problem = &event.Problem{Class: tool.BadArguments, Code: "TOO_MANY_FILES", Message: fmt.Sprintf("%s names %d files, which is too much for one answer", spec.Name, len(paths)), Hint: "split it into several calls, one answer each"}
	case size > *budget:
	case spec.PathForm == "":
		*budget -= size
		mc.Path = paths[0]
	default:
		*budget -= size
		mc.Paths = paths
	}
}
