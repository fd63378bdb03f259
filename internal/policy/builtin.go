package policy

import (
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
)

// Builtin is the set of a turn without rules of files.
func Builtin() *Set {
	return builtin.Get(func() *Set {
		s, err := prepare(Document{Version: FormatVersion, Rules: BuiltinRules()})
		if err == nil {
			err = s.tried()
		}
		if err != nil {
			panic("policy: " + err.Error()) // ours, and tested
		}
		return s
	})
}

var builtin match.Made[Set]

// Modes in groups that the built-in rules speak of.
var (
	asking   = without(belay.ModePlan) // modes in which a change can come of an ask
	editing  = []belay.Mode{belay.ModeAcceptEdits, belay.ModeAuto, belay.ModeOnRequest, belay.ModeOnFailure}
	confined = []belay.Mode{belay.ModeOnRequest, belay.ModeOnFailure}
)

func without(drop ...belay.Mode) []belay.Mode {
	return slices.DeleteFunc(slices.Clone(belay.Modes), func(m belay.Mode) bool { return slices.Contains(drop, m) })
}

// BuiltinRules are the rules of the default tier, which give every mode its
// meaning.
func BuiltinRules() []Rule {
	rules := slices.Concat(steering(), reading(), changing(), commands(), guarding())
	for i := range rules {
		rules[i].Tier = TierDefault
	}
	return rules
}

func steering() []Rule {
	return []Rule{
		{ID: "complete", Priority: 900, Match: Match{Does: []string{"completes"}, Mode: belay.Modes}, Verdict: Allow, Code: "COMPLETION", Reason: "ending the turn is always allowed"},
		{ID: "ask-user", Priority: 900, Match: Match{Does: []string{"asks"}, Mode: belay.Modes}, Verdict: Allow, Code: "ASKS_PERSON", Reason: "asking a person changes nothing"},
	}
}

func reading() []Rule {
	return []Rule{
		{ID: "read", Priority: 500, Match: Match{Does: []string{"reads"}, Mode: belay.Modes}, Verdict: Allow, Code: "READ_ONLY", Reason: "reading is allowed"},
		{ID: "ask-web", Priority: 510, Match: Match{Does: []string{"reads"}, Capability: []string{capNetwork}, Mode: without(belay.ModeBypass)}, Verdict: Ask, Code: "NETWORK", Reason: "it reaches the network"},
		{ID: "read-only-command", Priority: 500, Match: Match{Mode: belay.Modes, Command: &CommandMatch{Class: []string{string(ReadOnly)}}, Path: &PathMatch{Where: "inside"}},
			Verdict: Allow, Code: "READ_ONLY_COMMAND", Reason: "the command only reads, in the workspace", Boundary: belay.BoundaryReadOnly},
	}
}

func changing() []Rule {
	return []Rule{
		{ID: "plan-deny", Match: Match{Does: []string{"changes"}, Mode: []belay.Mode{belay.ModePlan}}, Verdict: Deny, Code: "MODE_PLAN", Reason: "mode plan only reads"},
		{ID: "untrusted", Match: Match{Does: []string{"changes"}, Mode: []belay.Mode{belay.ModeUntrusted}}, Verdict: Ask, Firm: true, Code: "MODE_UNTRUSTED", Reason: "mode untrusted asks before every change, whatever was allowed"},
		{ID: "lost-rerun", Priority: 400, Match: Match{Does: []string{"changes"}, Mode: asking, Rerun: true}, Verdict: Ask, Code: "LOST_RERUN", Reason: "the same call was lost before; running it again may do its work twice"},
		{ID: "accept-edits", Priority: 300, Match: Match{Does: []string{"edits"}, Mode: editing}, Verdict: Allow, Code: "EDIT_INSIDE", Reason: "the mode allows edits inside the workspace"},
		{ID: "ask", Match: Match{Does: []string{"changes"}, Mode: asking}, Verdict: Ask, Code: "CHANGES_THINGS", Reason: "it can change things"},
	}
}

// commands are the rules for command lines, by the class of each simple command.
func commands() []Rule {
	class := func(c ...Class) *CommandMatch { return &CommandMatch{Class: words(c)} }
	rules := []Rule{
		{ID: "auto-command", Priority: 300, Match: Match{Mode: []belay.Mode{belay.ModeAuto}, Command: class(WriteWorkspace), Path: &PathMatch{Where: "inside"}}, Verdict: Allow,
			Code: "WORKSPACE_COMMAND", Reason: "mode auto runs commands that stay in the workspace, as far as their text tells"},
		{ID: "confined-command", Priority: 300, Match: Match{Mode: confined, Level: "L2", Command: class(WriteWorkspace), Path: &PathMatch{Where: "inside"}}, Verdict: Allow,
			Code: "CONFINED", Reason: "the boundary confines it", Boundary: belay.BoundaryWorkspace},
		{ID: "on-failure", Priority: 300, Match: Match{Mode: []belay.Mode{belay.ModeOnFailure}, Level: "L2", Command: class(ReadOnly, WriteWorkspace, Network, Destructive)}, Verdict: Allow,
			Code: "CONFINED", Reason: "the boundary confines it; what it stops is asked about", Boundary: belay.BoundaryWorkspace},
		{ID: "on-failure-inside", Priority: 300, Match: Match{Mode: []belay.Mode{belay.ModeOnFailure}, Level: "L3", Command: class(EscapeAttempt, Unparsable)}, Verdict: Allow,
			Code: "CONFINED", Reason: "whatever the command does, the boundary confines it", Boundary: belay.BoundaryWorkspace},
		{ID: "ask-outside", Priority: 5, Match: Match{Does: []string{"runs"}, Mode: belay.Modes, Command: class(ReadOnly)}, Verdict: Ask, Code: "READS_OUTSIDE", Reason: "the command reads outside the workspace"},
	}
	for _, c := range []struct {
		id, code, reason string
		class            Class
	}{
		{"ask-network", "NETWORK", "the command can reach the network", Network},
		{"ask-destructive", "DESTRUCTIVE", "the command can destroy something", Destructive},
		{"ask-escape", "ESCAPE_ATTEMPT", "the command could leave its boundary", EscapeAttempt},
		{"ask-unparsable", "UNPARSABLE", "nobody can tell from its text what the command does", Unparsable},
	} {
		rules = append(rules, Rule{ID: c.id, Priority: 10, Match: Match{Does: []string{"runs"}, Mode: asking, Command: class(c.class)}, Verdict: Ask, Code: c.code, Reason: c.reason})
	}
	return rules
}

// protectedRule asks before a protected name is written. What it says is which.
const protectedRule = "protected-name"

// secretFile is the flow of a file tool that names a file which usually holds a
// secret, and the rule that asks about it. Commands that do have a class for it.
const secretFile = "secret-file"

// guarding are rules that no other allow silences.
func guarding() []Rule {
	return []Rule{
		{ID: protectedRule, Match: Match{Mode: without(belay.ModeBypass), Flow: []string{"protected"}}, Verdict: Ask, Firm: true,
			Code: "PROTECTED_NAME", Reason: "it writes what something else runs or obeys"},
		{ID: "tainted-egress", Priority: 600, Match: Match{Mode: belay.Modes, Flow: []string{"egress"}, Taint: []string{"any"}}, Verdict: Ask,
			Code: codeEgress, Reason: "content from outside is " + inConversation + ", and the call can send data out", Tags: []string{TagTaint}},
		{ID: "tainted-secret", Priority: 600, Match: Match{Mode: belay.Modes, Flow: []string{"secret"}, Taint: []string{"any", TaintWorkspace}}, Verdict: Ask,
			Code: codeSecret, Reason: "content of others is " + inConversation + ", and the call reads a secret", Tags: []string{TagTaint}},
		{ID: secretFile, Priority: 590, Match: Match{Mode: belay.Modes, Flow: []string{secretFile}}, Verdict: Ask,
			Code: "SECRET_FILE", Reason: "it names a file that usually holds a secret"},
		{ID: "tainted-leak", Match: Match{Mode: belay.Modes, Flow: []string{"egress"}, Taint: []string{"secret"}}, Verdict: Ask, Firm: true,
			Code: codeLeak, Reason: "a secret was read and content of others is " + inConversation + ": what the call sends could be that secret", Tags: []string{TagTaint}},
	}
}
