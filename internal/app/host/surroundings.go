package host

import (
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/workspace/git"
)

// surroundings is what models are told of workspaces besides their rules.
type surroundings struct{ git.Git }

var _ effect.Surroundings = surroundings{}

// Above names the files of instructions in the folders that some files lie in.
func (surroundings) Above(ws string, files []string) []string {
	return config.InstructionsAbove(ws, files)
}

// Instructions reads such files.
func (surroundings) Instructions(ws string, names []string) (all []effect.Instruction, left []event.ContextOmission) {
	found, omitted := config.ReadInstructions(ws, names)
	for _, i := range found {
		all = append(all, effect.Instruction(i))
	}
	return all, omissions(omitted)
}

func omissions(all []config.Omission) (left []event.ContextOmission) {
	for _, o := range all {
		left = append(left, event.ContextOmission{Kind: "instruction", Name: o.Name, Reason: o.Reason})
	}
	return left
}

// instruct keeps what a place tells models for rules, which say what it is and what was
// left out: its skills, and, if they are wanted, its instructions.
func (h *Host) instruct(ctx context.Context, p *app.Place, rules *thread.Rules, wanted bool) error {
	skills, err := h.skills(ctx, p, rules)
	if err != nil {
		return err
	}
	var all []config.Instruction
	var omitted []config.Omission
	if wanted {
		all, omitted = p.Instructions()
	}
	rules.LeftOut = append(rules.LeftOut, omissions(omitted)...)
	var text strings.Builder
	for _, i := range all {
		clean := h.c.Models.Secrets.Bytes([]byte(i.Text))
		ref, err := h.opened.Put(ctx, clean, "text/markdown")
		if err != nil {
			return err
		}
		i.Text = string(clean)
		text.WriteString(i.String())
		rules.Context = append(rules.Context, event.ContextItem{Kind: "instruction", Name: i.Name, Ref: &ref, Scope: i.Scope, Tokens: tokens.Text(i.Text)})
	}
	whole := h.c.Models.Secrets.String(skills)
	if text.Len() > 0 {
		whole = "# Instructions of this place\n" + text.String() + whole
	}
	if whole == "" {
		return nil
	}
	ref, err := h.opened.Put(ctx, []byte(whole), "text/markdown")
	rules.Instructions = &belay.Content{Ref: &ref, Tokens: tokens.Text(whole)}
	return err
}
