package policy

import (
	"slices"

	"github.com/belay-run/belay"
)

// The built-in rules by mode, in the order they are read.
var builtin = map[belay.Mode][]rule{
	belay.ModePlan: {
		{id: "complete", decision: Allow, code: "COMPLETION", reason: "ending the turn is always allowed", match: handled("complete")},
		{id: "plan-read", decision: Allow, code: "READ_ONLY", reason: "reading is allowed", match: readOnly},
		{id: "plan-ask-user", decision: Allow, code: "ASKS_PERSON", reason: "asking a person changes nothing", match: handled("ask")},
		{id: "plan-deny", decision: Deny, code: "MODE_PLAN", reason: "mode plan only reads", match: changes},
	},
	belay.ModeDefault:     asking(),
	belay.ModeNever:       asking(),
	belay.ModeAcceptEdits: append([]rule{{id: "accept-edits", decision: Allow, code: "EDIT_INSIDE", reason: "mode accept_edits allows edits inside the workspace", match: editInside}}, asking()...),
}

func asking() []rule {
	return []rule{
		{id: "complete", decision: Allow, code: "COMPLETION", reason: "ending the turn is always allowed", match: handled("complete")},
		{id: "ask-user", decision: Allow, code: "ASKS_PERSON", reason: "asking a person changes nothing", match: handled("ask")},
		{id: "read", decision: Allow, code: "READ_ONLY", reason: "reading is allowed", match: readOnly},
		{id: "lost-rerun", decision: Ask, code: "LOST_RERUN", reason: "the same call was lost before; running it again may do its work twice", fallback: true, match: func(r Request) bool { return r.Rerun }},
		{id: "ask", decision: Ask, code: "CHANGES_THINGS", reason: "it can change things", fallback: true, match: changes},
	}
}

func handled(how string) func(Request) bool {
	return func(r Request) bool { return r.Tool.Handled == how }
}

func readOnly(r Request) bool { return r.Tool.ReadOnly && r.Tool.Handled == "" && !r.Tool.Destructive }

func changes(r Request) bool { return !r.Tool.ReadOnly && r.Tool.Handled == "" }

func editInside(r Request) bool {
	return r.Tool.PathArg != "" && r.Tool.Access == belay.Write && !r.Tool.Destructive && inside(r.Paths) && !r.Rerun
}

// inside tells whether a call names files, and each of them in the workspace.
func inside(paths []string) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return !Inside(p) })
}
