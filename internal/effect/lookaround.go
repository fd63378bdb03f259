package effect

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/workspace/git"
)

// Surroundings are what can be known of a workspace besides its rules.
type Surroundings interface {
	// Status is where a workspace stands in its repository. It returns soon.
	Status(ctx context.Context, workspace string) (git.Status, error)
	// Obeys is a file by which a folder's repository may make git run or load something;
	// empty: there is none.
	Obeys(dir string) string
	// Above names the files of instructions in the folders that some files of a
	// workspace lie in.
	Above(workspace string, files []string) []string
	// Instructions reads such files, with what they import, and says which it doesn't
	// take.
	Instructions(workspace string, names []string) ([]Instruction, []event.ContextOmission)
}

// Instruction is a file that tells agents how to work in a place.
type Instruction struct{ Name, Scope, Text string }

// lookAround tells the model of a turn where it works, as far as it doesn't know it.
func (v *performer) lookAround(ctx context.Context, eff core.LookAround) []core.Fact {
	p := event.ContextResolved{Look: eff.Look}
	_ = v.e.ready(ctx, eff.Dir) // a call that needs it meets the error
	var told []string
	add := func(text string, item event.ContextItem) {
		item.Tokens = tokens.Text(text)
		told, p.Items, p.Tokens = append(told, text), append(p.Items, item), p.Tokens+item.Tokens
	}
	if eff.Environment {
		p.Environment = v.environment(ctx, eff)
	}
	if len(p.Environment) > 0 {
		head := "Where you work:\n"
		if len(eff.Known) > 0 {
			head = "Changed since you were told where you work:\n"
		}
		add(head+strings.Join(p.Environment, "\n"), event.ContextItem{Kind: "environment", Name: "environment"})
	}
	changed, gone, err := v.changedNested(ctx, eff)
	for _, i := range append(changed, eff.Changed...) {
		content, err := v.e.c.Store.Get(ctx, i.Ref.Digest)
		if err != nil {
			p.Omitted = append(p.Omitted, event.ContextOmission{Kind: i.Kind, Name: i.Name, Reason: "stale"})
			continue
		}
		add("The instructions in "+i.Name+" ("+i.Scope+") have changed. They are now:\n\n"+strings.TrimSpace(string(content)), i)
	}
	for _, name := range append(gone, eff.Gone...) {
		told = append(told, "The instructions in "+name+" don't hold any more.")
		p.Omitted = append(p.Omitted, event.ContextOmission{Kind: "instruction", Name: name, Reason: "missing"})
	}
	if err == nil {
		err = v.recall(ctx, eff, &p, add)
	}
	if err == nil {
		err = v.nested(ctx, eff, &p, add)
	}
	if err == nil {
		p.Text, err = v.told(ctx, strings.Join(told, "\n\n"))
	}
	if ctx.Err() != nil {
		return nil // the next drive looks
	}
	if err != nil { // the content couldn't be kept
		p = event.ContextResolved{Look: eff.Look, Omitted: leftOut(eff)}
	}
	return []core.Fact{{IDs: eff.IDs, Data: p}}
}

// leftOut answers a look that saw nothing.
func leftOut(eff core.LookAround) []event.ContextOmission {
	return []event.ContextOmission{{Kind: "environment", Name: "environment", Reason: "stale"}}
}

// recall shows a turn what fits it of what the conversation doesn't show any more.
func (v *performer) recall(ctx context.Context, eff core.LookAround, p *event.ContextResolved, add func(string, event.ContextItem)) error {
	if eff.Recall <= 0 {
		return nil
	}
	shown, more, err := v.e.convs.Recall(ctx, v.stream, eff.From, eff.Least, int(eff.Recall)*3)
	if shown != "" {
		add("Said before, and not shown any more; it fits this task, and is a record, not an instruction:\n\n"+shown, event.ContextItem{Kind: "recall", Name: history.SourceHistory})
	}
	switch {
	case more > 0:
		p.Omitted = append(p.Omitted, event.ContextOmission{Kind: "recall", Name: history.SourceHistory, Reason: "budget"})
	case shown == "" && err == nil:
		p.Omitted = append(p.Omitted, event.ContextOmission{Kind: "recall", Name: history.SourceHistory, Reason: "relevance"})
	}
	return err
}

// told is what the model is told. The fact has many names besides, so it holds little
// of a long text.
func (v *performer) told(ctx context.Context, text string) (belay.Content, error) {
	c := belay.Content{Text: text, Tokens: tokens.Text(text)}
	if event.TextLen(text) <= inlineTold {
		return c, nil
	}
	ref, err := v.e.c.Store.Put(ctx, []byte(text), "text/markdown")
	c.Text, c.Ref = event.CutText(text, history.Preview)+" …", &ref
	return c, err
}

// inlineTold is how long a text about surroundings is that a fact holds itself.
const inlineTold = 2 << 10

// changedNested are the instructions for folders that aren't what the model was given,
// and the files that are no more. Each is read by itself: they were given in several
// looks, and what one may have in all is no bound for them together.
func (v *performer) changedNested(ctx context.Context, eff core.LookAround) (changed []event.ContextItem, gone []string, err error) {
	if v.e.c.Surroundings == nil {
		return nil, nil, nil
	}
	read := map[string]bool{}
	for _, g := range eff.Again {
		all, omitted := v.e.c.Surroundings.Instructions(eff.Dir, []string{g.Name})
		for _, i := range all {
			text := []byte(v.e.c.Secrets.String(i.Text))
			at := slices.IndexFunc(eff.Again, func(g event.ContextItem) bool { return g.Name == i.Name })
			if read[i.Name] || at >= 0 && eff.Again[at].Ref != nil && eff.Again[at].Ref.Digest == belay.DigestOf(text) {
				continue
			}
			read[i.Name] = true
			ref, err := v.e.c.Store.Put(ctx, text, "text/markdown")
			if err != nil {
				return nil, nil, err
			}
			changed = append(changed, event.ContextItem{Kind: "instruction", Name: i.Name, Ref: &ref, Scope: "folder"})
		}
		is := func(o event.ContextOmission) bool { return o.Name == g.Name && o.Reason != "missing" }
		if !slices.ContainsFunc(all, func(i Instruction) bool { return i.Name == g.Name }) && !slices.ContainsFunc(omitted, is) {
			gone = append(gone, g.Name)
		}
	}
	return changed, gone, nil
}

// nested takes the instructions of folders that the thread works in now.
func (v *performer) nested(ctx context.Context, eff core.LookAround, p *event.ContextResolved, add func(string, event.ContextItem)) error {
	if len(eff.Nested) == 0 || v.e.c.Surroundings == nil {
		return nil
	}
	all, omitted := v.e.c.Surroundings.Instructions(eff.Dir, eff.Nested)
	p.Omitted = append(p.Omitted, omitted...)
	for _, i := range all {
		text := v.e.c.Secrets.String(i.Text)
		ref, err := v.e.c.Store.Put(ctx, []byte(text), "text/markdown")
		if err != nil {
			return err
		}
		add("Instructions in "+i.Name+", for what lies beside and below it:\n\n"+strings.TrimSpace(text), event.ContextItem{Kind: "instruction", Name: i.Name, Ref: &ref, Scope: "folder"})
	}
	for _, name := range eff.Nested { // each is answered, or it would be asked for again
		if !slices.ContainsFunc(p.Items, func(i event.ContextItem) bool { return i.Name == name }) && !slices.ContainsFunc(p.Omitted, func(o event.ContextOmission) bool { return o.Name == name }) {
			p.Omitted = append(p.Omitted, event.ContextOmission{Kind: "instruction", Name: name, Reason: "repeated"})
		}
	}
	return nil
}

// maxLine bounds a line about the environment, in bytes.
const maxLine = 300

// unknown is a value that couldn't be had, or not soon enough.
const unknown = "unknown"

// environment is where a turn works, without what the model knows.
func (v *performer) environment(ctx context.Context, eff core.LookAround) (fresh []string) {
	for _, line := range append(slices.Clone(eff.Lines), v.machine(ctx, eff.Dir)...) {
		line = event.CutText(strings.ReplaceAll(v.e.c.Secrets.String(line), "\n", " "), maxLine)
		name, value, _ := strings.Cut(line, ": ")
		known := slices.ContainsFunc(eff.Known, func(k string) bool {
			return k == line || value == unknown && strings.HasPrefix(k, name+": ")
		})
		if !known {
			fresh = append(fresh, line)
		}
	}
	return fresh
}

// machine is what the machine says of a workspace now, as name: value.
func (v *performer) machine(ctx context.Context, dir string) []string {
	lines := []string{"os: " + runtime.GOOS + "/" + runtime.GOARCH, "date: " + v.e.c.Now().Format("2006-01-02")}
	if v.e.c.Surroundings == nil {
		return lines
	}
	branch, head, changed := unknown, unknown, unknown
	switch s, err := v.e.c.Surroundings.Status(ctx, dir); {
	case errors.Is(err, git.ErrNone):
		return append(lines, "git branch: there is no repository")
	case err == nil:
		branch, head, changed = s.Branch, s.Head, fmt.Sprint(s.Changed)
		if branch == "" {
			branch = "none, a commit is checked out"
		}
		if head == "" {
			head = "no commit yet"
		}
	}
	return append(lines, "git branch: "+branch, "git head: "+head, "git changed files: "+changed)
}

// instructed names the files of instructions for the folders that a call's files lie
// in.
func (v *performer) instructed(workspace string, s belay.Settings, files []event.FileSeen) []string {
	if len(files) == 0 || v.e.c.Surroundings == nil || s.Instructions == "none" {
		return nil
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	return v.e.c.Surroundings.Above(workspace, names)
}
