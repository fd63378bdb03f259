package gym

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// anything is the schema of tools that judge their arguments themselves, so that
// a mistake in them has the gym's code.
const anything = `{"type":"object","additionalProperties":true}`

// Tools are the gym's tools. Those for files and programs are ours behind the
// gym's names, arguments, rules and codes.
func Tools() []tool.Tool {
	return append(fileTools(), execute(), layoutScan(), visualDiff())
}

// names are the names of the tools, which a scenario may all use.
func names() (all []string) {
	for _, t := range Tools() {
		all = append(all, t.Spec().Name)
	}
	return all
}

func fileTools() []tool.Tool {
	reading := func(name, doc string) tool.Spec {
		return tool.Spec{Name: toolName(name), Doc: doc, Input: json.RawMessage(anything), Effect: belay.Pure, ReadOnly: true, PathArg: "path", Access: belay.Read}
	}
	writing := func(name, doc string) tool.Spec {
		return tool.Spec{Name: toolName(name), Doc: doc, Input: json.RawMessage(anything), Effect: belay.AtMostOnce, PathArg: "path", Access: belay.Write}
	}
	return []tool.Tool{
		wrapped{reading("file:read", "Reads a file: path."), readFile},
		wrapped{reading("file:list", "Lists a folder: path."), listFolder},
		wrapped{reading("file:info", "Tells about a file or folder: path."), info},
		wrapped{writing("file:write", "Writes a file: path, content, createDirs."), writeFile},
		wrapped{writing("file:delete", "Deletes a file: path."), deleteFile},
	}
}

// wrapped is a tool of the gym.
type wrapped struct {
	spec tool.Spec
	run  func(ctx context.Context, c tool.Call, a args) (tool.Result, error)
}

func (w wrapped) Spec() tool.Spec { return w.spec }

func (w wrapped) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	var a args
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Result{}, tool.Failf(tool.BadArguments, codeArguments, "the arguments are no object")
	}
	return w.run(ctx, c, a)
}

// args are the arguments of a call as they came, of any shape: the gym checks
// each where it is used.
type args map[string]any

func (a args) text(name string) (string, error) {
	s, ok := a[name].(string)
	if !ok {
		return "", tool.Failf(tool.BadArguments, codeArguments, "%s must be a string", name)
	}
	return s, nil
}

// blocked are paths that the gym never touches.
var blocked = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?i)(^|/)\.(ssh|gnupg|aws|config)`),
		regexp.MustCompile(`(?i)^/(etc|proc|sys|dev)/`),
		regexp.MustCompile(`(?i)node_modules`),
	}
})

// path is the file a call names, which must lie in the workspace.
func (a args) path(c tool.Call) (string, error) {
	p, err := a.text("path")
	if err != nil {
		return "", err
	}
	if rest, ok := strings.CutPrefix(p, c.Dir+"/"); ok {
		p = rest
	}
	p = path.Clean(p)
	for _, b := range blocked() {
		if b.MatchString(p) {
			return "", tool.Failf(tool.Denied, codeDenied, "Path matches blocked pattern: %s", b)
		}
	}
	if path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") {
		return "", tool.Failf(tool.Denied, codeDenied, "Path is outside allowed directories")
	}
	return p, nil
}

// Arguments of the tools of ours that are asked.
type (
	onPath struct {
		Path string `json:"path"`
	}
	written struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	toRun struct {
		Command string  `json:"command"`
		Dir     string  `json:"dir"`
		Timeout float64 `json:"timeout_seconds"`
	}
)

// ask runs a tool of ours with other arguments.
func ask(ctx context.Context, t tool.Tool, c tool.Call, a any) (tool.Result, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return tool.Result{}, err
	}
	c.Args = b
	return t.Run(ctx, c)
}

// translated is a failure of ours in the gym's words. doing says what failed.
func translated(err error, doing, p string) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	out := *e
	switch e.Class {
	case tool.NotFound:
		out.Code, out.Message = codeMissing, "File not found: "+p
	case tool.Denied:
		out.Code = codeDenied
	case tool.BadArguments:
		out.Code = codeArguments
	case tool.Conflict:
		out.Code = codeConflict
	case tool.Timeout:
		out.Code = codeTimeout
	default:
		out.Code, out.Message = codeFailed, "Failed to "+doing+": "+e.Message
	}
	return &out
}

func readFile(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	p, err := a.path(c)
	if err != nil {
		return tool.Result{}, err
	}
	r, err := ask(ctx, file.Read(), c, onPath{p})
	return r, translated(err, "read file", p)
}

func listFolder(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	p, err := a.path(c)
	if err != nil {
		return tool.Result{}, err
	}
	r, err := ask(ctx, file.List(), c, onPath{p})
	return r, failedWhole(err, "list directory")
}

// failedWhole is for what has only one code in the gym, whatever went wrong.
func failedWhole(err error, doing string) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Class == tool.Denied {
		return translated(err, doing, "")
	}
	return tool.Failf(tool.Internal, codeFailed, "Failed to %s: %s", doing, e.Message)
}

func info(_ context.Context, c tool.Call, a args) (tool.Result, error) {
	p, err := a.path(c)
	if err != nil {
		return tool.Result{}, err
	}
	fi, err := c.Root.Stat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tool.Result{Text: "Path does not exist: " + p}, nil
	case err != nil:
		return tool.Result{}, tool.Failf(tool.Internal, codeFailed, "Failed to get info: %v", err)
	}
	kind := "File"
	if fi.IsDir() {
		kind = "Directory"
	}
	return tool.Result{Text: fmt.Sprintf("Path: %s\nType: %s\nSize: %d B", p, kind, fi.Size())}, nil
}

// writeFile replaces whatever is there. Our tool writes over a file only if the
// thread has seen it, so it is looked at first.
func writeFile(ctx context.Context, c tool.Call, a args) (tool.Result, error) {
	p, err := a.path(c)
	if err != nil {
		return tool.Result{}, err
	}
	content, err := a.text("content")
	if err != nil {
		return tool.Result{}, err
	}
	if dirs, _ := a["createDirs"].(bool); !dirs {
		if _, err := c.Root.Stat(path.Dir(p)); err != nil {
			return tool.Result{}, tool.Failf(tool.Internal, codeFailed, "Failed to write file: there is no folder %s", path.Dir(p))
		}
	}
	c.Expect = maps.Clone(c.Expect)
	if c.Expect == nil {
		c.Expect = map[string]string{}
	}
	for _, seen := range seenNow(ctx, c, p) {
		c.Expect[seen.Path] = seen.Digest
	}
	r, err := ask(ctx, file.Write(), c, written{p, content})
	if err != nil {
		return tool.Result{}, failedWhole(err, "write file")
	}
	r.Text = fmt.Sprintf("Successfully wrote %d bytes to %s", len(content), p)
	return r, nil
}

// seenNow is what a file is just now.
func seenNow(ctx context.Context, c tool.Call, p string) []event.FileSeen {
	r, err := ask(ctx, file.Read(), c, onPath{p})
	if e, ok := errors.AsType[*tool.Error](err); ok && len(e.Files) > 0 {
		return e.Files
	}
	if len(r.Files) > 0 {
		return r.Files
	}
	if b, err := c.Root.ReadFile(p); err == nil { // read shows no binary file
		return []event.FileSeen{{Path: p, Digest: string(belay.DigestOf(b))}}
	}
	return nil
}

func deleteFile(_ context.Context, c tool.Call, a args) (tool.Result, error) {
	p, err := a.path(c)
	if err != nil {
		return tool.Result{}, err
	}
	if fi, err := c.Root.Lstat(p); err == nil && fi.IsDir() {
		return tool.Result{}, tool.Failf(tool.Internal, codeFailed, "Failed to delete file: %s is a folder", p)
	}
	switch err := c.Root.Remove(p); {
	case errors.Is(err, fs.ErrNotExist):
		return tool.Result{}, tool.Failf(tool.NotFound, codeMissing, "File not found: %s", p)
	case err != nil:
		return tool.Result{}, tool.Failf(tool.Internal, codeFailed, "Failed to delete file: %v", err)
	}
	return tool.Result{Text: "Successfully deleted " + p, Files: []event.FileSeen{{Path: p, Digest: file.Absent}}}, nil
}
