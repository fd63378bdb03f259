package policy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
)

// verdictOf is Evaluate for calls that are written where they are judged.
func verdictOf(s *Set, r Request) Verdict { return Evaluate(s, &r) }

var decisions = []Decision{"", Allow, Ask, Deny}

// The verdicts form a join semilattice, so the order in which rules, hooks and
// people speak doesn't matter.
// Guarantee: G1.
func TestJoinIsALattice(t *testing.T) {
	for _, a := range decisions {
		if Join(a, a) != a || Join(a, "") != a || Join(a, Deny) != Deny {
			t.Errorf("join of %q: idempotent, neutral or absorbing element broken", a)
		}
		for _, b := range decisions {
			if Join(a, b) != Join(b, a) {
				t.Errorf("join(%q, %q) isn't commutative", a, b)
			}
			for _, c := range decisions {
				if Join(a, Join(b, c)) != Join(Join(a, b), c) {
					t.Errorf("join(%q, %q, %q) isn't associative", a, b, c)
				}
			}
		}
	}
}

func anyTool(t *rapid.T) belay.ToolSpec {
	return belay.ToolSpec{
		Name:        rapid.SampledFrom([]string{"read", "edit", "exec"}).Draw(t, "name"),
		ReadOnly:    rapid.Bool().Draw(t, "readOnly"),
		Destructive: rapid.Bool().Draw(t, "destructive"),
		PathArg:     rapid.SampledFrom([]string{"", "path"}).Draw(t, "pathArg"),
		Access:      rapid.SampledFrom([]belay.Access{"", belay.Read, belay.Write}).Draw(t, "access"),
		Handled:     rapid.SampledFrom([]string{"", "", "", "ask", "complete"}).Draw(t, "handled"),
	}
}

func anyRequest(t *rapid.T) Request {
	r := Request{
		Tool: anyTool(t), Paths: rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b/c", "../a", "/etc/x", "a/../../b"}), 0, 3).Draw(t, "paths"),
		Mode:     rapid.SampledFrom(append(slices.Clone(belay.Modes), "")).Draw(t, "mode"),
		Headless: rapid.Bool().Draw(t, "headless"), Rerun: rapid.Bool().Draw(t, "rerun"),
	}
	if rapid.Bool().Draw(t, "granted") {
		r.Grants = []Grant{{Tool: "exec", Tier: TierUser, Kind: rapid.SampledFrom([]string{"rule", "answer"}).Draw(t, "kind")}}
	}
	return r
}

// Guarantee: G2.
func TestEveryVerdictExplainsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRequest(t)
		v := verdictOf(Builtin(), r)
		if rank(v.Decision) == 0 || v.Rule == "" || v.Tier == "" || v.ReasonCode == "" || v.Reason == "" || v.Source == "" {
			t.Fatalf("%+v: verdict %+v leaves something out", r, v)
		}
	})
}

// Guarantee: G6.
func TestAsksAreDeniedWhenHeadless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRequest(t)
		v := verdictOf(Builtin(), r)
		if v.Decision == Ask && (r.Headless || r.Mode == belay.ModeNever) {
			t.Fatalf("%+v asks", r)
		}
		if v.Source == "headless" && v.Hint == "" {
			t.Fatalf("%+v: a headless denial must say what would allow it", r)
		}
	})
}

// Guarantee: G4.
func TestPlanNeverAllowsAChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRequest(t)
		r.Mode = belay.ModePlan
		if v := verdictOf(Builtin(), r); v.Decision == Allow && !r.Tool.ReadOnly && r.Tool.Handled == "" {
			t.Fatalf("%+v: plan allowed a change by %s", r, v.Rule)
		}
	})
}

// A call that names several files needs a person for all of them if one lies
// outside, and also when nobody can tell which they are.
// Guarantee: G5.
func TestEachFileOfACallIsJudged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRequest(t)
		r.Mode, r.Grants = belay.ModeAcceptEdits, nil
		v := verdictOf(Builtin(), r)
		if v.ReasonCode == "EDIT_INSIDE" && (len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, func(p string) bool { return !Inside(p) })) {
			t.Fatalf("%+v is allowed as an edit inside the workspace", r)
		}
	})
	edit := Request{Tool: belay.ToolSpec{Name: "patch", PathArg: "patch", PathForm: "patch", Access: belay.Write}, Mode: belay.ModeAcceptEdits}
	for _, c := range []struct {
		paths []string
		want  Decision
	}{{[]string{"a", "b/c"}, Allow}, {[]string{"a", "../b"}, Ask}, {[]string{"/a"}, Ask}, {nil, Ask}} {
		edit.Paths = c.paths
		if v := verdictOf(Builtin(), edit); v.Decision != c.want {
			t.Errorf("%v: got %s (%s), want %s", c.paths, v.Decision, v.Rule, c.want)
		}
	}
}

// Guarantee: E21.
func TestAReaderChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRequest(t)
		without := verdictOf(Builtin(), r)
		r.Use = belay.WorkspaceUse{Use: belay.UseReader, Writer: "sess_w", Path: "/ws"}
		v := verdictOf(Builtin(), r)
		switch {
		case r.Tool.ReadOnly || r.Tool.Handled != "":
			if !reflect.DeepEqual(v, without) {
				t.Fatalf("%+v: a reader gets %+v for what changes nothing, others %+v", r, v, without)
			}
		case v.Decision != Deny || v.ReasonCode != "OTHER_WRITER" || !strings.Contains(v.Reason, "sess_w") || !strings.Contains(v.Hint, "--worktree") || !strings.Contains(v.Hint, "--share"):
			t.Fatalf("%+v: %+v", r, v)
		}
	})
}

// Guarantee: G3.
func TestAnUnknownModeDenies(t *testing.T) {
	r := Request{Tool: belay.ToolSpec{Name: "read", ReadOnly: true}, Mode: "bypass"}
	if v := verdictOf(Builtin(), r); v.Decision != Deny || v.ReasonCode != "NO_POLICY" {
		t.Errorf("got %+v", v)
	}
}

// Guarantee: E4.
func TestALostCallRunsAgainOnlyByARule(t *testing.T) {
	r := Request{Tool: belay.ToolSpec{Name: "exec"}, Mode: belay.ModeDefault, Rerun: true}
	for kind, want := range map[string]Decision{"rule": Allow, "answer": Ask} {
		r.Grants = []Grant{{Tool: "exec", Tier: TierUser, Kind: kind}}
		if v := verdictOf(Builtin(), r); v.Decision != want {
			t.Errorf("with a grant by %s: got %s (%s), want %s", kind, v.Decision, v.Rule, want)
		}
	}
}

// Guarantee: G5.
func TestInside(t *testing.T) {
	for p, want := range map[string]bool{
		"a": true, "a/b": true, "./a": true, "a/../b": true, "..a": true,
		"": false, "..": false, "../a": false, "/a": false, "a/../../b": false, "a\x00": false,
	} {
		if got := Inside(p); got != want {
			t.Errorf("Inside(%q) = %v, want %v", p, got, want)
		}
	}
}
