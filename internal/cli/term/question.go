package term

import (
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
)

// AnswerCommands are the commands that answer a question. Those that allow a call are
// bound to what was shown of it; version is empty for whatever it is now.
func AnswerCommands(id belay.ActionID, kind, version string) []string {
	approve, deny := "belay approve "+string(id), "belay deny "+string(id)
	switch kind {
	case "question":
		return []string{"belay answer " + string(id) + " TEXT", deny}
	case "form":
		return []string{"belay answer " + string(id) + " '{…}'", deny}
	case "budget":
		return []string{approve, approve + " --budget +AMOUNT", deny}
	case "permission":
		if version != "" {
			approve += " --version " + version
		}
	}
	return []string{approve, deny}
}

// ShowQuestion prints a question, whole, and the commands that answer it.
func (e *Env) ShowQuestion(p *block.Preview) {
	for _, l := range p.Lines(e.Look(e.Err)) {
		fmt.Fprintln(e.Err, l)
	}
	for _, c := range AnswerCommands(p.ID, p.Kind, p.Version) {
		fmt.Fprintf(e.Err, "  %s%s\n", c, e.StoreFlag)
	}
}

// ShowAsked prints a call that a person allows, before they do: nothing of it is left out.
func (e *Env) ShowAsked(p *block.Preview) {
	if e.JSON || p.Kind != "permission" {
		return
	}
	for _, l := range p.Lines(e.Look(e.Err)) {
		fmt.Fprintln(e.Err, l)
	}
	fmt.Fprintf(e.Err, "  version %s\n", p.Version)
}
