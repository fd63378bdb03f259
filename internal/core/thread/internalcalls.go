package thread

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// boundaryNone is the boundary of a call that the runtime answers itself. A policy may give
// that name to one of programs: such a call is bound.
const boundaryNone = "none"

func cleanPath(p string) string { return path.Clean(p) }

// answerInternally answers a call that no tool runs: the completion and the question.
func (d *decision) answerInternally(spec belay.ToolSpec, c *Call, args []byte) {
	switch {
	case spec.Handled == "complete":
		d.complete(c, args)
	case spec.Handled == handledSpawn:
		d.spawn(c)
	case spec.Handled == handledWait:
		d.waitFor(c, args)
	case spec.Handled == handledInput:
		d.sendInput(c, args)
	case spec.Handled == handledClose:
		d.closeAgent(c, args)
	case spec.Handled == handledList:
		d.listAgents(c)
	case c.Ask == nil && d.rules.headless():
		d.record(d.failed(c, event.Problem{Class: "denied", Code: "NO_PERSON", Message: "no person available", Hint: "go on without an answer, or complete and say what is open"}))
	case c.Ask == nil:
		d.askPerson(c, "", event.ActionRequired{Kind: "question", Prompt: belay.Content{Text: event.CutText(question(c, args), maxSaid), Ref: c.ArgsRef}})
	case c.Ask.Open:
	case c.Ask.Decision == "answer":
		d.record(core.Fact{IDs: d.callIDs(c), Data: event.ToolResult{
			Name: c.Name, Attempt: 1, Output: belay.Content{Text: c.Ask.Message}, Digest: belay.DigestOf([]byte(c.Ask.Message)),
		}})
	default:
		d.record(d.failed(c, event.Problem{Class: "denied", Code: "NO_ANSWER", Message: "the question was not answered", Hint: "go on without an answer, or complete and say what is open"}))
	}
}

func question(c *Call, args []byte) string {
	var in struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
	}
	if json.Unmarshal(args, &in) != nil || in.Question == "" {
		return preview(c)
	}
	if len(in.Options) > 0 {
		return in.Question + " (" + strings.Join(in.Options, " / ") + ")"
	}
	return in.Question
}

// completion is what complete_task says. It was held against the tool's schema.
type completion struct {
	Summary   string          `json:"summary"`
	Artifacts []string        `json:"artifacts,omitempty"`
	NextSteps string          `json:"nextSteps,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
}

// complete ends the turn well: the call's result and the end are one decision.
func (d *decision) complete(c *Call, args []byte) {
	ids := d.callIDs(c)
	var in completion
	if err := json.Unmarshal(args, &in); err != nil || strings.TrimSpace(in.Summary) == "" {
		d.record(d.failed(c, event.Problem{Class: "bad_arguments", Code: "BAD_ARGUMENTS", Message: "summary is missing"}))
		return
	}
	if p := d.busy(); p != nil {
		d.record(d.failed(c, *p))
		return
	}
	if !d.verified(c) {
		return
	}
	summary := short(strings.TrimSpace(in.Summary), c.ArgsRef)
	done := event.TurnCompleted{Summary: summary, Artifacts: tidy(in.Artifacts), NextSteps: event.CutText(strings.TrimSpace(in.NextSteps), maxSaid), Stats: d.Turn.stats(belay.Completed)}
	done.Stats.Calls++
	if len(in.Output) > 0 {
		out := short(string(in.Output), c.ArgsRef)
		done.Output = &out
	}
	const said = "accepted"
	if c.Attempt == 0 {
		d.record(core.Fact{IDs: ids, Data: event.ToolStarted{Name: c.Name, Attempt: 1, Effect: string(belay.Pure), ArgsHash: c.ArgsHash, Boundary: boundaryNone, ReadOnly: true}})
	}
	d.record(
		core.Fact{IDs: ids, Data: event.ToolResult{Name: c.Name, Attempt: 1, Output: belay.Content{Text: said}, Digest: belay.DigestOf([]byte(said))}},
		core.Fact{IDs: d.turnIDs(), Data: done})
	d.report(belay.AttemptEnd{Outcome: belay.Completed, Summary: summary, Output: done.Output, Artifacts: done.Artifacts})
}

// short is text that fits into an event; longer text is cut, and the blob of
// the arguments has the whole. Arguments that are in an event themselves have
// no blob: what comes of them may be longer, because text in text is escaped.
func short(text string, whole *belay.Ref) belay.Content {
	room := maxSaid
	if whole == nil {
		room = 2 * maxSaid
	}
	if event.TextLen(text) <= room {
		return belay.Content{Text: text}
	}
	return belay.Content{Text: event.CutText(text, room) + " …", Ref: whole}
}

// tidy trims names and drops blank and repeated ones, and those that don't fit
// into a fact; the call's arguments have them all.
func tidy(in []string) []string {
	var out []string
	room := 2 * maxSaid
	for _, a := range in {
		a = strings.TrimSpace(a)
		if a == "" || slices.Contains(out, a) {
			continue
		}
		if room -= event.TextLen(a) + 3; room < 0 {
			return out
		}
		out = append(out, a)
	}
	return out
}
