package auth

import (
	"testing"

	"github.com/belay-run/belay"
)

func TestARoleMayWhatItsLineSays(t *testing.T) {
	table := map[Role][]Scope{
		Owner:    {Read, Work, Answer, Reply, Own, Admin},
		Operator: {Read, Work, Reply},
		Approver: {Read, Answer, Reply},
		Viewer:   {Read},
		"":       nil,
		"root":   nil,
	}
	for role, has := range table {
		for _, s := range append(Scopes, "", "other") {
			want := false
			for _, h := range has {
				want = want || h == s
			}
			if got := role.May(s); got != want {
				t.Errorf("role %q, scope %q: %v, want %v", role, s, got, want)
			}
		}
	}
}

func TestWithoutAPrincipalNothingIsAllowed(t *testing.T) {
	for _, s := range Scopes {
		if got := belay.CodeOf(Check(t.Context(), s)); got != belay.CodeUnauthorized {
			t.Errorf("scope %s without a principal: %s", s, got)
		}
	}
	ctx := With(t.Context(), Principal{Tenant: "default", Role: Viewer, TokenID: "tok_1"})
	if err := Check(ctx, Read); err != nil {
		t.Errorf("a viewer reads: %v", err)
	}
	if got := belay.CodeOf(Check(ctx, Answer)); got != belay.CodeForbidden {
		t.Errorf("a viewer answers: %s", got)
	}
}
