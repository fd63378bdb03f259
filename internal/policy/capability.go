package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// capabilityOf returns what an agent with a capability may use. A word that
// names no tool is about what a boundary or a rule grants.
type capabilityOf struct {
	tools    []string
	programs []string // of exec
}

// capabilityWords are the words in which agents declare what they need. Source:
// the agent files of Toka and the table of its capability validator.
var capabilityWords = map[string]capabilityOf{
	"filesystem-read":           {tools: []string{"read", "list", "glob", "grep"}, programs: []string{"cat", "ls", "find", "grep", "head", "tail", "wc", "stat", "file", "rg", "sort", "uniq", "diff"}},
	"filesystem-write":          {tools: []string{"write", "edit", "patch"}, programs: []string{"touch", "mkdir", "mv", "cp", "rm", "echo", "tee", "sed"}},
	"cargo-execution":           {programs: []string{"cargo", "rustc", "rustfmt", "clippy-driver"}},
	"cargo-test-execution":      {programs: []string{"cargo"}},
	"git-access":                {programs: []string{"git"}},
	"network-access":            {tools: []string{"web_search", "web_fetch"}, programs: []string{"curl", "wget"}},
	"database-access":           {programs: []string{"sqlite3", "psql"}},
	"test-execution":            {programs: []string{"make", "cmake", "ninja", "go", "cargo", "npm", "pnpm", "yarn", "pytest", "python", "python3", "node"}},
	"build-tools":               {programs: []string{"make", "cmake", "ninja", "go", "cargo", "npm", "pnpm", "yarn", "node"}},
	"security-tools":            {programs: []string{"openssl", "gpg"}},
	"script-execution":          {tools: []string{"exec"}},
	"process-spawning":          {tools: []string{"exec"}},
	"document-analysis":         {tools: []string{"read", "list", "glob", "grep"}},
	"link-validation":           {tools: []string{"read", "grep", "web_fetch"}, programs: []string{"curl"}},
	"system-time-access":        {programs: []string{"date"}},
	"system-metrics":            {programs: []string{"uptime", "free", "df", "du", "ps", "nproc", "uname"}},
	"network-metrics":           {programs: []string{"ss", "netstat", "ip"}},
	"performance-monitoring":    {programs: []string{"time", "ps", "uptime", "free", "perf"}},
	"ci-cd-integration":         {programs: []string{"gh", "git", "make"}},
	"workflow-management":       {programs: []string{"gh"}},
	"repository-administration": {programs: []string{"gh", "git"}},
	"deployment-automation":     {programs: []string{"docker", "kubectl", "helm", "terraform"}},
	"security-scanning":         {programs: []string{"cargo", "npm", "govulncheck", "trivy", "gitleaks"}},
}

// sameCapability are words that mean another one.
var sameCapability = map[string]string{
	"file-system-read": "filesystem-read", "file-system-write": "filesystem-write", "network-access-limited": "network-access",
	"network-access-llm-providers": "", "api-key-storage": "", "credential-validation": "", "secure-configuration": "filesystem-write",
	"environment-variable-management": "", "kernel-modification": "filesystem-write", "storage-modification": "filesystem-write", "security-modification": "filesystem-write",
	"event-bus-access": "", "audit-access": "filesystem-read", "crypto-operations": "security-tools", "analysis": "document-analysis",
}

// CapabilityRules narrow whoever declares capabilities to them: what none of
// them covers is denied; what they cover is judged as without them. A word that
// nothing is known of names the tool of the same name, and command-NAME a
// program. Tools that steer the turn always stay.
func CapabilityRules(tier Tier, words []string) ([]Rule, error) {
	var tools, programs []string
	for _, w := range words {
		w = strings.ToLower(strings.TrimSpace(w))
		if name, ok := strings.CutPrefix(w, "command-"); ok && name != "" {
			programs = append(programs, name)
			continue
		}
		if same, ok := sameCapability[w]; ok {
			if w = same; w == "" { // the runtime's own business: no tool has it
				continue
			}
		}
		c, known := capabilityWords[w]
		switch {
		case w == "" || strings.ContainsAny(w, " *\x00"):
			return nil, fmt.Errorf("%q is no capability; the words are %s, command-NAME, or a tool's name", short(w), strings.Join(slices.Sorted(maps.Keys(capabilityWords)), ", "))
		case !known:
			tools = append(tools, w)
		default:
			tools, programs = append(tools, c.tools...), append(programs, c.programs...)
		}
	}
	whole := slices.Contains(tools, "exec")
	if len(programs) > 0 {
		tools = append(tools, "exec")
	}
	slices.Sort(tools)
	tools = slices.Compact(tools)
	slices.Sort(programs)
	programs = slices.Compact(programs)
	reason := "the agent's capabilities don't cover it"
	rules := []Rule{{ID: "capabilities", Tier: tier, Match: Match{NotTool: tools}, Verdict: Deny, Code: "CAPABILITY", Reason: reason, Tags: []string{"capability"}}}
	if len(programs) > 0 && !whole {
		rules = append(rules, Rule{ID: "capability-programs", Tier: tier, Match: Match{Tool: []string{"exec"}, Command: &CommandMatch{NotProgram: programs}}, Verdict: Deny, Code: "CAPABILITY", Reason: reason, Tags: []string{"capability"}})
	}
	return rules, nil
}

// IsCapability reports whether a word is one that more is known of than a name.
func IsCapability(w string) bool {
	w = strings.ToLower(strings.TrimSpace(w))
	_, known := capabilityWords[w]
	_, same := sameCapability[w]
	return known || same || strings.HasPrefix(w, "command-")
}
