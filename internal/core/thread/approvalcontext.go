package thread

import (
	"slices"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/policy"
)

// Codes of a call that a person allowed and that wasn't run, because it would
// have been another one by then. This is no failure: the call is judged again
// without that answer, and asked about where the rules ask.
const (
	CodeFolderChanged      = "FOLDER_CHANGED"
	CodeProgramChanged     = "PROGRAM_CHANGED"
	CodeEnvironmentChanged = "ENVIRONMENT_CHANGED"
)

// codeBoundaryChanged is the same of a call that would get another boundary.
const codeBoundaryChanged = "BOUNDARY_CHANGED"

// standsNoMore reports whether a failure says that a call isn't any more what a
// person allowed.
func standsNoMore(code string) bool {
	return code == CodeFolderChanged || code == CodeProgramChanged || code == CodeEnvironmentChanged
}

// invalidateApproval folds that: what was decided about the call doesn't count any more.
func (c *Call) invalidateApproval(p event.Problem) {
	c.Again = &event.Again{Code: p.Code, Reason: event.CutText(p.Message, maxSaid)}
	c.Phase, c.Verdict, c.Reason, c.Hint, c.Checks = CallProposed, "", "", "", nil
	c.Ask, c.Stands, c.Bound, c.Least = nil, nil, nil, ""
}

// approvalContext folds what a verdict holds the call to, when a grant of exactly this
// call gave it, or its boundary.
func (gs *gateState) approvalContext(c *Call, p event.PermissionEvaluated) {
	if p.Decision != string(policy.Allow) {
		return
	}
	c.Again = nil
	if g := gs.granted(p.Grant); g != nil && g.Bound != "" {
		c.Stands = g.Stands
	} else if w := gs.widerFor(c); w != nil && p.BoundaryBy == "grant" {
		c.Stands = w.Stands
	}
}

// again is why a person is asked once more; nil the first time.
func (c *Call) again(v *policy.Verdict) *event.Again {
	if v.ReasonCode == codeBoundaryChanged {
		return &event.Again{Code: v.ReasonCode, Reason: event.CutText(v.Reason, maxSaid)}
	}
	return c.Again
}

// counts leaves out grants of exactly this call, if what it stood on is gone.
func (c *Call) counts(grants []policy.Grant) []policy.Grant {
	if c.Again == nil {
		return grants
	}
	return slices.DeleteFunc(slices.Clone(grants), func(g policy.Grant) bool { return g.Bound != "" })
}
