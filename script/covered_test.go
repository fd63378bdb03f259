package script

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/testkit/sample"
)

// door is a way to get more than the parent has.
type door struct {
	name string
	run  string // flags of the parent's turn
	call string // what spawn_agent is asked for; the task is added
	does string // the calls that the agent makes, if it starts; behind then, if there is something
	then string // commands about session $S that follow; the agent's question is $A
	fact string // what must be in the log
}

const (
	notCovered   = `"code":"NOT_COVERED"`
	unknownTool  = `"code":"UNKNOWN_TOOL"`
	outside      = `"code":"CAPABILITY"`
	noMore       = unknownTool + `,"message":"there is no tool [\\"]*mcp__grows__more`
	refusedSpawn = `"kind":"audit".*"command":"spawn_subagent".*`
	refusedStart = `"kind":"audit".*"command":"begin_task".*`
	denied       = `"type":"permission.evaluated".*"decision":"deny"`
	family       = "--tools read,list,group:agents"
	everything   = " --tools full --mode on_failure --allow exec --allow write --approvals deny "
	send         = `belay agents send --session $S part AGAIN; `
	resume       = `belay sessions resume $S`
	write        = `{tool: write, args: {path: b.txt, content: x}}`
	grow         = `{tool: mcp__grows__do, args: {}}` // the server says that it has mcp__grows__more now
	mcpWrite     = `{tool: mcp__own__write, args: {path: b.txt}}`
	shell        = `{tool: exec, args: {command: touch made}}`
)

var doors = []door{
	{"a tool by its name", family, "tools: [exec]", "", "", notCovered},
	{"a tool beside one that is there", family, "tools: [read, exec]", "", "", notCovered},
	{"another spelling of a tool", family, "tools: [EXEC]", "", "", notCovered},
	{"a group that the parent has nothing of", family, `tools: ["group:runtime"]`, "", "", notCovered},
	{"a group that it has a part of", family, `tools: ["group:files"]`, write, "", unknownTool},
	{"a pattern that covers nothing", family, `tools: ["e*"]`, "", "", notCovered},
	{"a pattern that covers all", family, `tools: ["*"]`, shell, "", unknownTool},
	{"a set", family, "tools: [full]", "", "", notCovered},
	{"a denial that leaves the rest", family, `tools: ["-read"]`, "", "", notCovered},
	{"a tool of a server that there isn't", family, "tools: [mcp__files__write]", "", "", notCovered},
	{"a command of a manifest that the parent hasn't got", family, "tools: [deploy]", "", "", notCovered},
	{"a command of a manifest by its group", family, `tools: ["group:commands"]`, "", "", notCovered},
	{"no list of tools at all", family, "", shell, "", unknownTool},
	{"a command of a manifest, called unasked", family, "", `{tool: deploy, args: {}}`, "", unknownTool},
	{"a tool by tool_call", family, "", `{tool: tool_call, args: {name: exec, args: {command: touch made}}}`, "", unknownTool},
	{"a tool that its kind hasn't got", "--tools coding,group:agents", "agent: explore, tools: [edit]", "", "", notCovered},
	{"a tool that its kind hasn't got, unasked", "--tools coding,group:agents", "agent: plan", write, "", outside},
	{"a tool by the file of an agent", family, "agent: wide", shell, "", unknownTool},
	{"a tool that its file hasn't got, by the call", "--tools coding,group:agents", "agent: narrow, tools: [write]", "", "", notCovered},
	{"a tool that its file hasn't got, unasked", "--tools coding,group:agents", "agent: narrow", write, "", outside},
	{"a mode by the file of an agent", "--mode plan --tools coding,group:agents", "agent: bold", write, "", notCovered + ".*works in mode accept_edits"},
	{"a mode by the file of an agent, incomparable", "--mode on_request --tools coding,group:agents", "agent: auto", write, "", notCovered + ".*works in mode auto"},
	{"a provider by the file of an agent", "--tools coding,group:agents", "agent: elsewhere", "", "", notCovered + ".*no model of second"},
	{"a boundary by the file of an agent", "--boundary read-only --tools coding,group:agents", "agent: unbound", write, "", `"code":"(BAD_AGENT|NOT_COVERED)"`},
	{"the parent's mode", "--mode plan --tools coding,group:agents", "", write, "", denied},
	{"a capability by the file of an agent", "--tools coding,group:agents --allow exec", "agent: capable", shell, "", denied + `.*"reasonCode":"CAPABILITY"`},
	{"a program that its file forbids", "--tools coding,group:agents --allow exec", "agent: programs", shell, "", denied + `.*"reasonCode":"CAPABILITY"`},
	{"a call that would ask where no one can be asked", "--tools coding,group:agents", "", shell, "", `"type":"permission.evaluated".*"decision":"(deny|ask)"`},
	{"a host by a tool that the parent hasn't got", family, "", `{tool: web_fetch, args: {url: "http://127.0.0.1:1/"}}`, "", unknownTool},
	{"more steps", "--max-steps 30 " + family, "budget: {steps: 31}", "", "", notCovered},
	{"more tokens", "--max-tokens 900ktok " + family, "budget: {tokens: 900001}", "", "", notCovered},
	{"more tokens than the session has", "--budget 900ktok " + family, "budget: {tokens: 900001}", "", "", notCovered},
	{"more calls", "--max-calls 30 " + family, "budget: {calls: 31}", "", "", notCovered},
	{"more calls than the session has", "--budget 30calls " + family, "budget: {calls: 31}", "", "", notCovered},
	{"more time", "--max-time 10m " + family, "budget: {seconds: 601}", "", "", notCovered},
	{"a budget below nothing", family, "budget: {steps: -1}", "", "", `"code":"BAD_ARGUMENTS"`},
	{"one level more", "--agents-depth 1 " + family, "tools: [spawn_agent]", "", "", notCovered},
	{"one level more, unasked", "--agents-depth 1 " + family, "", `{tool: spawn_agent, args: {task: deeper}}`, "", unknownTool},
	{"depth where there is none", "--agents-depth 0 " + family, "", "", "", unknownTool},
	{"a tool in a worktree", family, "isolation: worktree", shell, "", unknownTool},
	{"a boundary by a call", "--boundary workspace-write --mode auto --tools coding,group:agents", "", `{tool: exec, args: {command: touch made, boundary: full}}`, "", denied + `.*it asks for boundary full`},
	{"a boundary of a file of rules by a call", "--boundary workspace-write --mode auto --tools coding,group:agents", "", `{tool: exec, args: {command: touch made, boundary: open}}`, "", denied + `.*it asks for boundary open`},
	{"a host that a rule keeps from the parent", "--mode auto --tools read,list,web_fetch,group:agents --allow web_fetch", "", `{tool: web_fetch, args: {url: "http://far.example/"}}`, "", denied + `.*no-far`},
	{"a tool of a live server by its name", family + " --allow mcp__own__write", "tools: [mcp__own__write]", "", "", notCovered},
	{"a tool of a live server, unasked", family + " --allow mcp__own__write", "", mcpWrite, "", unknownTool},
	{"a tool of a live server beside one that is there", family + ",mcp__own__echo --allow mcp__own__write", `tools: ["mcp__own__*"]`, mcpWrite, "", unknownTool},
	{"a tool that a server has later", family + ",mcp__own__echo", "name: part", `{tool: mcp__own__lookup7, args: {text: x}}`,
		"cp many.yaml $HOME/.config/belay/belay.yaml; belay mcp test own; belay run --session $S" + everything + "MORE; " + send + resume, unknownTool + `,"message":"there is no tool mcp__own__lookup7"`},
	{"a tool that a server gets while the agent works", family + ",mcp__grows__do --allow mcp__grows__do --allow mcp__grows__more", "", grow, "", noMore},
	{"a tool that a server gets, when the parent has it", family + ",mcp__grows__do --allow mcp__grows__do --allow mcp__grows__more", "name: part", grow,
		"belay run --session $S" + everything + "GROW; " + send + resume, noMore},
	{"a tool by input for one that has ended", family, "name: part", shell, send + resume, unknownTool},
	{"a tool by input, when the parent got more", family, "name: part", shell, "belay run --session $S" + everything + "MORE; " + send + resume, unknownTool},
	{"a tool by input of the parent that got more", family, "name: part", shell, "belay run --session $S" + everything + "SEND", unknownTool},
	{"a mode by input, when the parent got more", "--mode plan --tools coding,group:agents", "name: part", write, "belay run --session $S" + everything + "MORE; " + send + resume, denied},
	{"a tool behind a question, in another process", family + " --approvals ask", "name: part, tools: [read]", shell, "belay answer $A yes; " + resume + everything, unknownTool},
	{"a tool behind a pause", family + " --approvals ask", "name: part", shell,
		"belay agents pause --session $S part; belay answer $A yes; belay agents resume --session $S part; " + resume + everything, unknownTool},
	{"a boundary that the session no longer has, behind a question", "--mode on_failure --tools coding,group:agents --approvals ask", "name: part", shell,
		"belay answer $A yes; " + resume + " --boundary read-only", `"type":"permission.evaluated".*"decision":"allow".*"tool":"exec".*"boundary":"read-only"`},
	{"a tool by an agent that a person starts", family, "", shell, "belay agents spawn --session $S AGAIN; " + resume, unknownTool},
	{"a tool for an agent that a person starts", family, "", "", "belay agents spawn --session $S --tools exec AGAIN", refusedSpawn + `"code":"not_covered","message":"` + ".*exec"},
	{"a mode for an agent that a person starts", "--mode plan " + family, "", "", "belay agents spawn --session $S --agent bold AGAIN", refusedSpawn + `"code":"not_covered","message":"` + ".*accept_edits"},
	{"depth for an agent that a person starts", "--agents-depth 0 " + family, "", "", "belay agents spawn --session $S AGAIN", refusedSpawn + `"code":"agent_limit","message":"` + "agents-depth is 0"},
	{"more steps for an agent that a person starts", "--max-steps 30 " + family, "", "", "belay agents spawn --session $S --steps 31 AGAIN", refusedSpawn + `"code":"not_covered","message":"` + ".*budget.steps"},
	{"a tool for an agent that a program starts", family, "", "", `belay api spawn_subagent "{\"sessionId\": \"$S\", \"task\": \"AGAIN\", \"tools\": [\"exec\"]}"`, refusedSpawn + `"code":"not_covered","message":"` + ".*exec"},
	{"a tool for an agent that does a task", family, "", "", "belay tasks create --session $S --title part --assignee general --tools exec AGAIN; belay tasks start --session $S part", refusedStart + `"code":"not_covered","message":"` + ".*exec"},
	{"a tool by an agent that does a task", family, "", shell, "belay tasks create --session $S --title part --assignee general AGAIN; belay tasks start --session $S part; " + resume, unknownTool},
	{"a mode for an agent that does a task", "--mode plan " + family, "", "", "belay tasks create --session $S --title part --assignee bold AGAIN; belay tasks start --session $S part", refusedStart + `"code":"not_covered","message":"` + ".*accept_edits"},
	{"depth for an agent that does a task", "--agents-depth 0 " + family, "", "", "belay tasks create --session $S --title part --assignee general AGAIN; belay tasks start --session $S part", refusedStart + `"code":"agent_limit","message":"` + "agents-depth is 0"},
	{"a tool by an agent below one that has less", "--tools coding,group:agents", "tools: [read, list, spawn_agent]", `{tool: spawn_agent, args: {task: DEEP, tools: [exec]}}`, "", notCovered},
	{"a tool with the parent's conversation", family, "context: fork", shell, "", unknownTool},
}

const harmless = "{tool: list, args: {path: .}}"

// What the agent and its parent do, and what they do behind then.
const (
	doorScript = `steps:
  - when: {contains: PART}
    calls: [%s]
  - when: {error: true}
    calls: [{tool: complete_task, args: {summary: done}}]
  - when: {tool: mcp__grows__do}
    calls: [{tool: mcp__grows__more, args: {}}]
  - when: {tool: list}
    calls: [{tool: complete_task, args: {summary: done}}]
  - calls: [{tool: spawn_agent, args: {%s}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`
	behindScript = `steps:
  - when: {contains: AGAIN}
    calls: [%[1]s]
  - when: {tool: ask_user}
    calls: [%[1]s]
  - when: {contains: GROW}
    calls: [{tool: mcp__grows__do, args: {}}]
  - when: {tool: mcp__grows__do}
    calls: [{tool: mcp__grows__more, args: {}}]
  - when: {contains: SEND}
    calls: [{tool: send_input, args: {agent: part, text: AGAIN}}]
  - when: {tool: send_input}
    calls: [{tool: wait_agent, args: {agents: [part]}}]
  - {repeat: 9, calls: [{tool: complete_task, args: {summary: done}}]}
`
)

// TestNoDoorGivesAnAgentMore: whatever a call, a file or an agent asks for, what its parent
// lacks is refused, and the log says so.
// Guarantee: F24.
func TestNoDoorGivesAnAgentMore(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const config = "providers:\n  second: {protocol: openai-chat, base-url: \"http://127.0.0.1:1/v1\", key: \"env:SECOND\"}\n"
	const servers = config + "mcp-servers:\n  own: {command: ./mcpserver%s, trust-hints: true}\n"
	files := map[string]string{
		"home/.config/belay/agents/wide.yaml":      "name: wide\ninstructions: x\ntools: [full]\n",
		"home/.config/belay/agents/bold.yaml":      "name: bold\ninstructions: x\nmode: accept_edits\n",
		"home/.config/belay/agents/auto.yaml":      "name: auto\ninstructions: x\nmode: auto\n",
		"home/.config/belay/agents/elsewhere.yaml": "name: elsewhere\ninstructions: x\nmodel: second/small\n",
		"home/.config/belay/agents/unbound.yaml":   "name: unbound\ninstructions: x\nboundary: full\n",
		"home/.config/belay/agents/narrow.yaml":    "name: narrow\ninstructions: x\ntools: [read]\n",
		"home/.config/belay/agents/capable.yaml":   "name: capable\ninstructions: x\ncapabilities: [filesystem-read]\n",
		"home/.config/belay/agents/programs.md":    "---\nname: programs\ndescription: x\ntools: Bash(git diff:*)\n---\nx\n",
		"home/.config/belay/policy.yaml":           "version: 1\nboundaries:\n  open: {base: workspace-write, network: full}\nrules:\n  - {id: no-far, verdict: deny, when: {host: far.example}}\n",
		"project/a.txt":                            "a\n",
		"project/none.yaml":                        config,
		"project/good.yaml":                        fmt.Sprintf(servers, ""),
		"project/grows.yaml":                       config + "mcp-servers:\n  grows: {command: ./mcpserver, args: [grows], trust-hints: true}\n",
		"project/many.yaml":                        fmt.Sprintf(servers, ", args: [many]"),
	}
	for name, text := range files {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, err := os.Executable()
	if err == nil {
		err = os.Link(own, filepath.Join(work, "project", "mcpserver"))
	}
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + filepath.Join(work, "home"), "USER=tester", "SECOND=sk-second", "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	sh := func(command string, more ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Dir, cmd.Env, cmd.WaitDelay = filepath.Join(work, "project"), append(env, more...), time.Second
		out, err := cmd.CombinedOutput()
		if err != nil {
			return string(out) + err.Error()
		}
		return string(out)
	}
	sh("git init -q . && git add . && git -c user.name=t -c user.email=t@example.org commit -qm first")
	for _, d := range doors {
		if !sample.Has(d.name) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			config := "none.yaml"
			if strings.Contains(d.run+d.call, "mcp__own") {
				config = "good.yaml"
			}
			if d.does == grow {
				config = "grows.yaml"
			}
			said := sh("cp " + config + " $HOME/.config/belay/belay.yaml")
			if d.does == grow {
				said += sh("belay mcp test grows")
			}
			args := "task: PART"
			if d.call != "" {
				args += ", " + d.call
			}
			first := cmp.Or(d.does, harmless)
			if strings.Contains(d.then, "$A") {
				first = "{tool: ask_user, args: {question: What?}}"
			} else if d.then != "" {
				first = harmless
			}
			script := filepath.Join(work, "script.yaml")
			write := func(format string, args ...any) {
				if err := os.WriteFile(script, fmt.Appendf(nil, format, args...), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(doorScript, first, args)
			said += sh("belay run --script " + script + " " + d.run + " x")
			id := regexp.MustCompile(`sess_[0-9a-f-]{36}`).FindString(said)
			if d.then != "" {
				write(behindScript, cmp.Or(d.does, harmless))
				at := strings.LastIndex("; "+d.then, "; ") // the last one may be refused
				said += sh("set -e; "+d.then[:at]+"echo all of these; "+d.then[at:], "S="+id, "A="+regexp.MustCompile(`act_[0-9a-f-]{36}`).FindString(said))
				if !strings.Contains(said, "all of these") {
					t.Errorf("%s", said)
				}
			}
			log := sh("belay --json events " + id)
			if said += log; !regexp.MustCompile(d.fact).MatchString(log) {
				t.Errorf("no fact like %s in\n%s", d.fact, said)
			}
			for _, made := range []string{"made", "b.txt"} {
				if _, err := os.Stat(filepath.Join(work, "project", made)); err == nil {
					t.Errorf("%s was made", made)
				}
			}
			if strings.Contains(said, `"code":"INTERNAL"`) {
				t.Errorf("%s", said)
			}
		})
	}
}
