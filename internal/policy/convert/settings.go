package convert

import (
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay/internal/policy"
)

// setting is what becomes of settings of the source that are no rules.
type setting struct {
	name string // its place, as tools.exec.host; a * stands for anything
	kept Fidelity
	why  string
}

const (
	notRule = "a setting, not a rule: it isn't read"
	unknown = "nothing is known of it here: it may deny or ask"
)

// settings returns those that are known of a format. The first that fits counts;
// what none fits is lost, since it may be what keeps something from being allowed.
func settings(f Format) []setting {
	switch f {
	case Claude:
		return slices.Concat([]setting{
			{"allowManaged*=false", Left, "it restricts nothing"},
			{"allowManagedPermissionRulesOnly", Lost, "rules of other files count here as well"},
			{"hooks", Lost, "a hook may deny, and none runs here"},
			{"sandbox", Lost, "what it keeps from programs isn't kept from them here by a rule; docs/sandbox.md describes boundaries"},
			{"permissions.disableBypassPermissionsMode", Left, "mode bypass is off here until an administrator permits it"},
		}, left("$schema", "env", "model", "modelOverrides", "availableModels", "theme", "statusLine", "subagentStatusLine", "cleanupPeriodDays", "includeCoAuthoredBy", "includeGitInstructions", "outputStyle",
			"attribution", "language", "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper", "spinner*", "alwaysThinkingEnabled", "autoUpdatesChannel", "companyAnnouncements",
			"effortLevel", "feedbackSurvey*", "fastMode*", "show*", "terminalProgressBarEnabled", "prefersReducedMotion", "plansDirectory", "tui", "viewMode", "voiceEnabled", "autoMemory*", "fileSuggestion",
			"enableAllProjectMcpServers", "enabledMcpjsonServers", "extraKnownMarketplaces", "teammateMode", "worktree", "skipDangerousModePermissionPrompt", "disableAllHooks"))
	case OpenClaw:
		return slices.Concat([]setting{
			{"*.byProvider", Lost, "no rule here can ask for the provider"},
			{"*.toolsBySender", Lost, "no rule here can ask for the sender"},
			{"*.tools.sandbox", Lost, "no rule here can ask for the sandbox"},
			{"*.tools.subagents", Lost, "a rule asks for an agent by its name"},
			{"agents.*.sandbox", Lost, "where programs run is no rule; docs/sandbox.md describes boundaries"},
			{"channels.*.tools", Lost, "no rule here can ask for the channel"},
			{"gateway.*deny*", Lost, "no rule here can ask for the gateway"},
			{"cron.enabled=false", Lost, "a deny of its tools says it: tools.deny cron"},
		}, left("$schema", "meta", "wizard", "env", "logging", "diagnostics", "models", "auth", "ui", "update", "messages", "talk", "audio", "discovery", "bindings", "broadcast", "session", "hooks", "channels",
			"gateway", "browser", "commands", "skills", "cron", "agents.ownership"),
			leftOf("tools", "elevated", "codeMode", "github", "media", "links", "experimental", "loopDetection", "exec.safeBins", "exec.safeBinTrustedDirs", "exec.backgroundMs", "exec.timeoutSec*", "exec.cleanupMs",
				"exec.notifyOnExit*", "exec.approvalRunningNoticeMs", "exec.commandHighlighting", "exec.grantExpiryDays", "exec.node", "exec.pathPrepend"),
			leftOf("agents", "name", "default", "workspace", "agentDir", "cwd", "repoRoot", "model", "models", "imageModel", "utilityModel", "mediaModels", "pdfModel", "params", "thinkingDefault", "reasoningDefault",
				"fastModeDefault", "verboseDefault", "elevatedDefault", "timeoutSeconds", "mediaMaxMb", "maxConcurrent", "identity", "groupChat", "heartbeat", "memorySearch", "humanDelay", "contextInjection",
				"bootstrap*", "contextLimits", "contextPruning", "compaction", "skipBootstrap", "userTimezone", "typing*", "skills"))
	case Cowork:
		return left("$schema", "name", "description", "rules.*.description")
	}
	return nil
}

func left(names ...string) (out []setting) {
	for _, n := range names {
		out = append(out, setting{n, Left, notRule})
	}
	return out
}

// leftOf are settings of every layer of a part.
func leftOf(part string, names ...string) (out []setting) {
	for _, n := range names {
		if part == "agents" {
			out = append(out, left("agents.defaults."+n, "agents.list.*."+n, "agents.entries.*."+n)...)
		} else {
			out = append(out, left("tools."+n, "agents.*.tools."+n)...)
		}
	}
	return out
}

// known is what is known of a setting, or nil.
func (d *draft) known(name string, v *node) *setting {
	for i, s := range d.settings {
		want, value, valued := strings.Cut(s.name, "=")
		if policy.Like(want, name) && (!valued || v.kind == boolean && strconv.FormatBool(v.yes) == value) {
			return &d.settings[i]
		}
	}
	return nil
}

// unread names whatever of the source nothing here has read. Within a setting
// that was named already that is only what is known to be lost.
func (d *draft) unread(n *node, name string, named bool) {
	for i, v := range n.items {
		at, isMember, within := name+"."+strconv.Itoa(i), n.kind == object, named
		if isMember {
			at = strings.TrimPrefix(name+"."+n.names[i], ".")
		}
		if isMember && !v.read {
			s := d.known(at, v)
			if s == nil && !named {
				s = &setting{kept: Lost, why: unknown}
			}
			if s != nil && (s.kept == Lost || !named) {
				d.setting(at, v.line, s.kept, s.why)
			}
			if s != nil && s.kept == Lost {
				continue
			}
			within = true
		}
		d.unread(v, at, within)
	}
}
