package tool

import (
	"context"
	_ "embed"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// SkillName is the tool that reads skills.
const SkillName = "skill"

//go:embed skill.md
var skillDoc string

type skillArgs struct {
	Name string `json:"name"`
	File string `json:"file,omitempty" jsonschema:"of its folder; none: its SKILL.md"`
}

// SkillTool reads skills with read: a file of one, or its SKILL.md. read also returns the
// fact that the skill was used.
func SkillTool(read func(ctx context.Context, name, file string) (string, event.ArtifactChanged, error)) Tool {
	spec := Spec{Name: SkillName, Doc: strings.TrimSpace(skillDoc), Effect: belay.Pure, ReadOnly: true, Access: belay.Read, OutputLimit: 48 << 10}
	return New(spec, func(ctx context.Context, c Call, in skillArgs) (Result, error) {
		text, used, err := read(ctx, strings.TrimSpace(in.Name), in.File)
		if err != nil {
			return Result{}, err
		}
		return Result{Text: text}, c.Sink.Durable(used)
	})
}
