package agentfile

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// foreign is what other programs call tools, in lower case, with our name; empty is one
// that Belay hasn't got.
var foreign = map[string]string{
	// Claude Code
	"read": "read", "notebookread": "read", "write": "write", "edit": "edit", "multiedit": "edit", "notebookedit": "notebook_edit", "ls": "list", "glob": "glob",
	"grep": "grep", "bash": "exec", "bashoutput": "process", "killshell": "process", "killbash": "process", "taskoutput": "process", "taskstop": "process",
	"webfetch": "web_fetch", "websearch": "web_search",
	"todowrite": "todo", "todoread": "todo", "task": "spawn_agent", "agent": "spawn_agent", "askuserquestion": "ask_user", "toolsearch": "tool_search",
	"exitplanmode": "", "enterplanmode": "", "slashcommand": "", "skill": "", "lsp": "", "sendmessage": "", "listmcpresourcestool": "", "readmcpresourcetool": "",
	// Gemini CLI
	"read_file": "read", "read_many_files": "read", "write_file": "write", "replace": "edit", "list_directory": "list", "search_file_content": "grep",
	"grep_search": "grep", "run_shell_command": "exec", "google_web_search": "web_search", "write_todos": "todo", "save_memory": "memory_store", "activate_skill": "",
}

// tool is our term for a tool's name in a Markdown file. programs are those that a
// pattern such as Bash(git diff:*) narrows exec to.
func toolTerm(word string) (term string, programs []string, known bool) {
	name, pattern, narrowed := strings.Cut(strings.TrimSuffix(word, ")"), "(")
	name = strings.TrimSpace(name)
	switch {
	case name == "*":
		return "*", nil, true
	case strings.HasPrefix(name, "mcp__") && !narrowed:
		if server, all := strings.CutSuffix(name, "__*"); all || strings.Count(name, "__") == 1 {
			return server + "__*", nil, true
		}
		return name, nil, true
	case strings.HasPrefix(name, "mcp_") && !narrowed: // Gemini's mcp_SERVER_TOOL, mcp_*
		server, tool, ok := strings.Cut(strings.TrimPrefix(name, "mcp_"), "_")
		if !ok {
			return "mcp__" + strings.TrimSuffix(server, "*") + "*", nil, true
		}
		return "mcp__" + server + "__" + tool, nil, true
	}
	our, ok := foreign[strings.ToLower(name)]
	if !ok {
		our = strings.ToLower(name) // perhaps one of ours; who knows the tools says if it isn't
		if !plain.Match(our) || slices.ContainsFunc(tool.ToolSets(), func(t tool.ToolSet) bool { return t.Name == our }) {
			return "", nil, false
		}
	}
	if our == "" {
		return "", nil, false
	}
	if !narrowed || strings.Trim(pattern, "*: ") == "" {
		return our, nil, true
	}
	if our != "exec" {
		return our, nil, true // a path or a domain: the rules judge those
	}
	program, _, _ := strings.Cut(strings.TrimLeft(pattern, " "), " ")
	program, _, _ = strings.Cut(program, ":")
	if program == "" || strings.ContainsAny(program, "*?[") {
		return "", nil, false
	}
	return our, []string{program}, true
}

// foreignTools reads the tools of a Markdown file into terms.
func (a *Agent) foreignTools(words []string, where string) {
	var programs []string
	whole := false
	for _, w := range words {
		term, some, known := toolTerm(w)
		if !known {
			a.Absent = append(a.Absent, short(w, 80))
			a.find(Warning, CodeUnknownTool, where, "take it out, or name another", "Belay has no tool %s: the agent goes without it", short(w, 80))
			continue
		}
		if term == "exec" {
			whole = whole || len(some) == 0
			programs = append(programs, some...)
		}
		if !slices.Contains(a.Tools, term) {
			a.Tools = append(a.Tools, term)
		}
	}
	a.NoTools = len(a.Tools) == 0
	if len(programs) > 0 && !whole {
		slices.Sort(programs)
		a.Programs = slices.Compact(programs)
		a.find(Note, CodeNotTaken, where, "rules of policy.yaml can judge arguments", "of commands it may only run %s, with any arguments that the rules allow", strings.Join(a.Programs, ", "))
	}
}

// CheckRules has the rules of agents read. A mistake in them is one of the file.
func (c *Catalog) CheckRules(read func(a *Agent) error) {
	for _, a := range c.All {
		if a.Rules == nil {
			continue
		}
		if err := read(a); err != nil {
			hint := "docs/policy.md describes rules"
			if e, ok := errors.AsType[*belay.Error](err); ok {
				hint = cmp.Or(e.Hint, hint)
				err = errors.New(e.Message)
			}
			a.find(Error, CodeBadRules, a.places["rules"], hint, "its rules can't be used: %v", err)
		}
	}
}

// Needs looks for what agents need besides tools and each other: a model that they name, by
// what it lacks, and the programs that their commands may run.
func (c *Catalog) Needs(lacks func(provider, model string) string, there func(program string) bool) {
	for _, a := range c.All {
		if provider, name, ok := strings.Cut(a.Model, "/"); ok && a.Trusted {
			switch lacks(provider, name) {
			case "":
			case "credential":
				a.find(Warning, CodeModel, a.places["model"], "belay login "+provider, "%s has no key here: the agent works with the model of who starts it", short(provider, 40))
			default:
				a.find(Warning, CodeModel, a.places["model"], "belay models list", "no provider has the model %s: the agent works with that of who starts it", short(a.Model, 80))
			}
		}
		for _, p := range a.Programs {
			if !there(p) {
				a.find(Warning, CodeNoProgram, a.places["tools"], "install it", "the program %s isn't on this machine", short(p, 80))
			}
		}
	}
}

// HoldSkills finds skills that agents name and that aren't there. read reads those there are.
func (c *Catalog) HoldSkills(read func() (*Skills, error)) {
	var all *Skills
	for _, a := range c.All {
		for _, name := range a.Skills {
			if all == nil {
				var err error
				if all, err = read(); err != nil {
					return
				}
			}
			if _, err := all.Find(name); err != nil {
				a.find(Warning, CodeMissing, "", "belay skills list", "the agent goes without a skill: %v", err)
			}
		}
	}
}

// HoldAgainst finds what agents name and a workspace with these tools hasn't got.
func (c *Catalog) HoldAgainst(specs []belay.ToolSpec) {
	for _, a := range c.All {
		for _, s := range a.Servers {
			if !slices.ContainsFunc(specs, func(t belay.ToolSpec) bool { return strings.HasPrefix(t.Name, "mcp__"+s+"__") }) {
				a.find(Warning, CodeUnknownTool, "", "belay mcp list shows the servers", "there is no tool of a server %s here: the agent goes without it", short(s, 80))
			}
		}
		for _, t := range a.Tools {
			if strings.HasPrefix(t, "mcp__") && len(tool.Expand(t, specs)) > 0 || !strings.HasPrefix(t, "mcp__") && tool.CheckTerms([]string{t}, specs) == nil {
				continue
			}
			a.Absent = append(a.Absent, t)
			a.find(Warning, CodeUnknownTool, a.places["tools"], "belay tool list shows those there are", "there is no tool %s here: the agent goes without it", short(t, 80))
		}
	}
}
