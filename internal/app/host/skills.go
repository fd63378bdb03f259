package host

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/view"
)

// maxSkillList is how many bytes of names and descriptions of skills a model is told.
const maxSkillList = 8000

// skills adds to a turn's rules which skills there are, and returns what its model is told
// of them. Where there are none the turn has no tool that reads them.
func (h *Host) skills(ctx context.Context, p *app.Place, rules *thread.Rules) (string, error) {
	if _, has := rules.Tool(tool.SkillName); !has || rules.Settings.Provider == config.Direct {
		return "", nil
	}
	c, err := p.Skills(ctx)
	if err != nil {
		return "", err
	}
	all := slices.DeleteFunc(c.InForce(), func(s *agentfile.Skill) bool { return s.Hidden || s.Description == "" })
	if f := rules.AgentFile; f != nil && len(f.Skills) > 0 { // the others aren't for it
		all = slices.DeleteFunc(all, func(s *agentfile.Skill) bool {
			return !slices.ContainsFunc(f.Skills, func(name string) bool { own, err := c.Find(name); return err == nil && own == s })
		})
	}
	if len(all) == 0 {
		rules.Tools = slices.DeleteFunc(slices.Clone(rules.Tools), func(t belay.ToolSpec) bool { return t.Name == tool.SkillName })
		return "", nil
	}
	text, left, err := h.skillList(ctx, all)
	if err != nil {
		return "", err
	}
	if left > 0 {
		rules.LeftOut = append(rules.LeftOut, event.ContextOmission{Kind: "skill", Name: fmt.Sprintf("%d skills", left), Reason: "budget"})
	}
	if slices.ContainsFunc(all, func(s *agentfile.Skill) bool { return !s.Trusted }) { // a stranger's words
		rules.Context = append(rules.Context, event.ContextItem{Kind: "skill", Name: fmt.Sprintf("%d skills", len(all)-left), Tokens: tokens.Text(text)})
	}
	return text, nil
}

// maxOwnSkills bounds what an agent is given of skills at its start, in bytes.
const maxOwnSkills = 24 << 10

// ownSkills are the instructions of the skills that an agent's file names. What isn't there,
// or is too long, is said in the facts of the turn's context.
func (h *Host) ownSkills(ctx context.Context, p *app.Place, rules *thread.Rules, a *agentfile.Agent) (string, error) {
	if rules.AgentFile.Skills = a.Skills; len(a.Skills) == 0 {
		return "", nil
	}
	c, err := p.Skills(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range a.Skills {
		s, err := c.Find(name)
		if err != nil {
			rules.LeftOut = append(rules.LeftOut, event.ContextOmission{Kind: "skill", Name: name, Reason: "missing"})
			continue
		}
		text := "\n\n## Skill " + s.Title() + "\nfolder: " + filepath.Dir(s.Path) + "\n\n" + s.Instructions
		if b.Len()+len(text) > maxOwnSkills {
			rules.LeftOut = append(rules.LeftOut, event.ContextOmission{Kind: "skill", Name: name, Reason: "budget"})
			continue
		}
		b.WriteString(text)
		if !s.Trusted { // a stranger's words
			rules.Context = append(slices.Clip(rules.Context), event.ContextItem{Kind: "skill", Name: s.Title(), Tokens: tokens.Text(text)})
		}
	}
	return b.String(), nil
}

// skillList is the names and descriptions of skills. Of more than have room, those that
// were used least are left out.
func (h *Host) skillList(ctx context.Context, all []*agentfile.Skill) (text string, left int, err error) {
	line := func(s *agentfile.Skill) string { return "- " + s.Title() + ": " + s.Description + "\n" }
	size := 0
	for _, s := range all {
		size += len(line(s))
	}
	keep := all
	if size > maxSkillList {
		used, err := h.skillUse(ctx)
		if err != nil {
			return "", 0, err
		}
		keep = slices.Clone(all)
		slices.SortStableFunc(keep, func(a, b *agentfile.Skill) int { return cmp.Compare(used[b.Title()], used[a.Title()]) })
		n, room := 0, maxSkillList
		for ; n < len(keep) && len(line(keep[n])) <= room; n++ {
			room -= len(line(keep[n]))
		}
		left = len(keep) - n
		keep = keep[:n]
		slices.SortFunc(keep, func(a, b *agentfile.Skill) int { return cmp.Compare(a.Title(), b.Title()) })
	}
	var b strings.Builder
	b.WriteString("# Skills, which the tool skill reads\n")
	for _, s := range keep {
		b.WriteString(line(s))
	}
	if left > 0 {
		fmt.Fprintf(&b, "%d more that were used less are left out; belay skills list shows them\n", left)
	}
	return b.String(), left, nil
}

// skillUse is how often skills were read in the sessions of the store.
func (h *Host) skillUse(ctx context.Context) (map[string]int, error) {
	if err := view.Catchup(ctx, h.opened); err != nil {
		return nil, err
	}
	return view.SkillUse(ctx, h.opened)
}
