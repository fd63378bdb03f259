package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish."`
}

func (c *completionCmd) Run(_ context.Context, a *command.Program) (int, error) {
	nodes := commandsOf(a.Kong.Model.Node, "")
	var script string
	switch c.Shell {
	case "bash":
		script = bashCompletion(nodes)
	case "zsh":
		script = zshCompletion(nodes)
	case "fish":
		script = fishCompletion(nodes)
	default:
		return 0, belay.Errorf(belay.CodeUsage, "%q is none of bash, zsh, fish", c.Shell).At("SHELL").WithHint("belay completion bash")
	}
	fmt.Fprint(a.Out, script)
	return belay.ExitOK, nil
}

// completions is what can follow a command.
type completions struct {
	path  string // "", "run", "sessions list"
	names []entry
	flags []entry
}

type entry struct {
	name, help string
	value      bool // a flag that wants a value
}

// commandsOf lists the commands of the grammar, the root first.
func commandsOf(n *kong.Node, path string) []completions {
	c := completions{path: path}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			c.flags = append(c.flags, entry{"--" + f.Name, f.Help, !f.IsBool()})
		}
	}
	var below []completions
	for _, child := range n.Children {
		c.names = append(c.names, entry{child.Name, child.Help, false})
		below = append(below, commandsOf(child, strings.TrimSpace(path+" "+child.Name))...)
	}
	return append([]completions{c}, below...)
}

func words(es []entry) string {
	var w []string
	for _, e := range es {
		w = append(w, e.name)
	}
	return strings.Join(w, " ")
}

func bashCompletion(nodes []completions) string {
	var b strings.Builder
	b.WriteString("# bash completion of belay: source <(belay completion bash)\n_belay() {\n" +
		"  local cur=${COMP_WORDS[COMP_CWORD]} path= w\n" +
		"  for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" +
		"    case \"$path${path:+ }$w\" in\n")
	for _, n := range nodes[1:] {
		fmt.Fprintf(&b, "      %q) path=%q ;;\n", n.path, n.path)
	}
	b.WriteString("    esac\n  done\n  case \"$path\" in\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "    %q) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", n.path, strings.TrimSpace(words(n.names)+" "+words(n.flags)))
	}
	b.WriteString("  esac\n  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -o filenames -F _belay belay\n")
	return b.String()
}

func zshCompletion(nodes []completions) string {
	var b strings.Builder
	b.WriteString("#compdef belay\n# zsh completion of belay: source <(belay completion zsh)\n_belay() {\n" +
		"  local p= w\n  local -a found\n" +
		"  for w in \"${(@)words[2,CURRENT-1]}\"; do\n    case \"$p${p:+ }$w\" in\n")
	for _, n := range nodes[1:] {
		fmt.Fprintf(&b, "      %s) p=%s ;;\n", term.QuoteShell(n.path), term.QuoteShell(n.path))
	}
	b.WriteString("    esac\n  done\n  case \"$p\" in\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "    %s) found=(", term.QuoteShell(n.path))
		for _, e := range append(append([]entry(nil), n.names...), n.flags...) {
			fmt.Fprintf(&b, "%s ", term.QuoteShell(strings.ReplaceAll(e.name, ":", `\:`)+":"+e.help))
		}
		b.WriteString(") ;;\n")
	}
	b.WriteString("  esac\n  _describe belay found || _files\n}\n(( $+functions[compdef] )) && compdef _belay belay\n")
	return b.String()
}

func fishCompletion(nodes []completions) string {
	var b strings.Builder
	b.WriteString("# fish completion of belay: belay completion fish | source\n")
	for _, n := range nodes {
		when := "__fish_use_subcommand"
		if n.path != "" {
			var conds []string
			for p := range strings.FieldsSeq(n.path) {
				conds = append(conds, "__fish_seen_subcommand_from "+p)
			}
			when = strings.Join(conds, "; and ")
		}
		for _, e := range n.names {
			fmt.Fprintf(&b, "complete -c belay -f -n %s -a %s -d %s\n", fishQuote(when), fishQuote(e.name), fishQuote(e.help))
		}
		for _, e := range n.flags {
			more := ""
			if e.value {
				more = " -r"
			}
			fmt.Fprintf(&b, "complete -c belay -n %s -l %s%s -d %s\n", fishQuote(when), fishQuote(strings.TrimPrefix(e.name, "--")), more, fishQuote(e.help))
		}
	}
	return b.String()
}

// fishQuote is a word for fish.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
