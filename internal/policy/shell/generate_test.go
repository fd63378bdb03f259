package shell

import (
	"math/rand/v2"
	"strings"
)

// generator makes shell sources: correct ones for the most part, then damaged
// ones, so that this parser and bash may come to differ.
type generator struct {
	*rand.Rand
	left  int  // constructs that may still nest
	plain bool // this source is to have little that POSIX doesn't
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 5))}
}

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// source is one text.
func (g *generator) source() string {
	g.left, g.plain = 3+g.IntN(9), g.IntN(2) == 0
	s := g.list()
	for g.IntN(3+3*bit(g.plain)) == 0 {
		s = g.damaged(s)
	}
	return s
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// damaged is a text with a piece put in, taken out, doubled or moved.
func (g *generator) damaged(s string) string {
	if s == "" {
		return s
	}
	i := g.IntN(len(s))
	j := min(len(s), i+1+g.IntN(4))
	switch g.IntN(5) {
	case 0:
		return s[:i] + s[j:]
	case 1:
		return s[:i] + s[i:j] + s[i:]
	case 2:
		k := g.IntN(len(s))
		return s[:k] + s[i:j] + s[k:]
	}
	return s[:i] + pick(g, "'", "\"", "\\", "$", "`", "(", ")", "{", "}", ";", "&", "|", "<", ">", "#", " ", "\n", "\t", "=", "!", "*", "?", "[", "]", "~", "$(", "${", "$((", "((", "))", "<<", "<<E\n", "\nE\n", "<(", ">(", "&&", "||", "|&", "&>", ">|", ";;", "\\\n", "$'", "$\"", ",", "..", "@(", "do ", "done ", "fi ", "then ", "in ", "esac ", "time ", "! ", "function ", "coproc ", "2>", "<<<", "{fd}>", "[[ ", " ]]", "%", ":=", "@P", ":-", ";& ", "let ", "select ", "&>>", ">&", "\\\nE\n", "=~ ") + s[i:]
}

func (g *generator) list() string {
	var b strings.Builder
	for i := range 1 + g.IntN(3) {
		if i > 0 {
			b.WriteString(pick(g, "; ", " && ", " || ", " | ", " |& ", " & ", "\n", ";", "|", "&&", " &&\n", " # note\n"))
		}
		b.WriteString(g.command())
	}
	return b.String()
}

func (g *generator) command() string {
	if g.left--; g.left < 0 || g.IntN(3) > 0 {
		return g.simple()
	}
	if g.plain {
		return g.posix()
	}
	switch g.IntN(21) {
	case 0:
		return "(" + g.list() + ")" + g.redirect()
	case 1:
		return "{ " + g.list() + "; }" + g.redirect()
	case 2:
		return "if " + g.list() + "; then " + g.list() + pick(g, "", "; else "+g.list(), "; elif "+g.simple()+"; then "+g.simple()) + "; fi"
	case 3:
		return pick(g, "while false", "until true", "until "+g.simple()) + "; do " + g.list() + "; break; done" + g.redirect()
	case 4:
		return "for v in " + g.words() + "; do " + g.list() + "; done"
	case 5:
		return "for ((i=0;i<2;i++)); do " + g.list() + "; done"
	case 6:
		return "case " + g.word() + " in " + pick(g, "*", g.word(), "(a", "a|b") + ") " + g.list() + pick(g, ";; ", ";& ", ";;& ") + "x) " + g.simple() + " ;; esac"
	case 7:
		return pick(g, "f", "g") + "() { " + g.list() + "; }; " + pick(g, "f", "g", "f a")
	case 8:
		return "function h { " + g.list() + "; }; h"
	case 9, 16, 17:
		return "[[ " + pick(g, "-n "+g.word(), g.word()+" == "+g.word(), "! -f x", "a && "+g.word(), g.word()+" =~ "+g.regexp(), g.arith()+" -eq 1", "-v "+g.word(), "a || "+g.word(),
			"a > "+g.word(), "a < "+g.word(), "( a )", g.word()+" == "+pick(g, "@(a|ls)", "!(ls)", "*(a|b)"), "a -nt "+g.word()) + pick(g, " ]]", "]]", " ]", " ]] ", "\n]]")
	case 10:
		return "(( " + g.arith() + " ))"
	case 11:
		return pick(g, "! ", "time ", "time -p ", "coproc ") + g.simple()
	case 18:
		return "select v in " + g.words() + "; do " + g.list() + "; break; done" + g.redirect()
	case 19:
		return pick(g, "function h", "function h()", "coproc", "coproc X", "time -p", "let", "((1>2));", "((a));", "((1)) ||", "for v; do") + " " + pick(g, "{ "+g.list()+"; }", "("+g.list()+")", g.simple(), "i=1")
	case 20, 15:
		return g.document()
	case 12:
		return g.simple() + " <<" + pick(g, "E\n"+g.word()+" $("+g.simple()+")\nE", "'E'\n$("+g.simple()+")\nE", "-E\n\t`"+g.simple()+"`\n\tE", "\"E\"\n`a`\nE", "\\E\n$(a)\nE") + "\n"
	case 13:
		return pick(g, "eval ", "eval -- ", "builtin eval ") + quoted(g.list())
	case 14:
		return "trap " + quoted(g.simple()) + " EXIT"
	}
	return pick(g, "bash -c ", "sh -c ", "env bash -c ") + quoted(g.list())
}

// posix is a construct that every shell has.
func (g *generator) posix() string {
	switch g.IntN(12) {
	case 0:
		return "(" + g.list() + ")" + g.redirect()
	case 1:
		return "{ " + g.list() + "; }" + g.redirect()
	case 2:
		return "if " + g.list() + "; then " + g.list() + pick(g, "", "; else "+g.list(), "; elif "+g.simple()+"; then "+g.simple()) + "; fi"
	case 3:
		return pick(g, "while false", "until true", "until "+g.simple()) + "; do " + g.list() + "; break; done" + g.redirect()
	case 4:
		return "for v in " + g.words() + "; do " + g.list() + "; done"
	case 5:
		return "case " + g.word() + " in " + pick(g, "*", g.word(), "(a", "a|b") + ") " + g.list() + ";; x) " + g.simple() + " ;; esac"
	case 6:
		return pick(g, "f", "g") + "() { " + g.list() + "; }; " + pick(g, "f", "g", "f a")
	case 7:
		return pick(g, "! ", "export A=", "readonly B=", "A=b ") + g.simple()
	case 8:
		return pick(g, "eval ", "eval ", "sh -c ") + quoted(g.list())
	case 9:
		return "trap " + quoted(g.simple()) + " EXIT"
	}
	return g.document()
}

// document is a command with a here-document, its delimiter in every quoting.
func (g *generator) document() string {
	d := pick(g, "E", "'E'", "\"E\"", "\\E", "E", "'E'", "$'E'", "$\"E\"", "E''", "'E'F", "$E", "${E}", "`E`", "$(E)", "'E F'", "\"$E\"", "E\\\nF", "E*", "E{a,b}", "'E\nF'", "\"E\\\"\"", "'$E'", "\"\"", "$'E\\x41'", "~", "E#", "<(a)")
	end := pick(g, "E", "E", "E", "E", "$E", "EF", "E F", "", "\tE", "E ", "E)", "`E`", "EA", "\\E", "'E'")
	body := pick(g, "a", "$("+g.simple()+")", "`"+g.simple()+"`", "${x:-$("+g.simple()+")}", "\\$(alpha)", "\\\\$(alpha)", "a \\", "E\\", "$((1+1))", g.command(), "'", "\"", "E \nE", "$x")
	s := g.simple() + pick(g, " <<", " <<", " <<-", " 3<<", "<<") + pick(g, "", "", " ") + d + pick(g, "", "", " a", " | "+g.simple(), "; "+g.simple(), " && "+g.simple(), " <<F", " $(\nalpha\n)", " \\\n", " # note", " &")
	s += "\n" + body + "\n" + end + "\n" + pick(g, "", g.simple()+"\nE\n", g.simple(), "F\n", "E\n"+g.simple())
	return pick(g, s, s, s, s, "echo $("+s+")", "echo \"$("+s+")\"", "{ "+s+"\n}", "("+s+")", "echo `"+s+"`")
}

// regexp is the right side of =~.
func (g *generator) regexp() string {
	return pick(g, "a.*", "b|alpha", "b|touch${IFS}P", "(a|beta)", "(a b)", "^a$", "[a b]", "a;alpha", "a&alpha", "a&&b", "a|(b|$(gamma))", "$x", "\"a|b\"", "a\\ b", "[[:alpha:]]", "a>o", "a<b", "(a", "a)", "{1,2}", "'a b'|alpha", "`beta`", "a #b", "(a;alpha)", "(a&alpha)", "$(id)", "!(a)", "a|\nalpha", g.word())
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// programs are names that only the shims of the test have, or that everybody
// knows.
var programs = []string{"ls", "cat", "grep", "rm", "cp", "sed", "awk", "find", "sort", "git", "curl", "wc", "true-x", "nproc", "id", "tr", "head", "alpha", "beta", "gamma", "tee", "xargs", "env", "nice", "sudo", "timeout", "python3"}

func (g *generator) name() string {
	n := pick(g, programs...)
	switch g.IntN(14) {
	case 0:
		return n[:1] + "''" + n[1:]
	case 1:
		return `\` + n
	case 2:
		return `"` + n + `"`
	case 3:
		return "'" + n + "'"
	case 4:
		return n[:1] + "\\\n" + n[1:]
	case 5:
		return "$'" + n + "'"
	case 6:
		return "/usr/bin/" + n
	case 7:
		return pick(g, "$X", "$N", "$(cat)", "${N:-"+n+"}", "{"+n+",b}", n+"$N", "~/"+n, "./"+n, "/usr/bin/"+n[:1]+"*", "$@", "\"$@\"", "`id`")
	case 8:
		return pick(g, "command ", "exec ", "builtin ", "command -p ", "exec -a x ", "command -v ", "\\command ", "! ", "time ") + n
	case 9:
		return pick(g, "echo", "printf", ":", "test", "[", "cd", "pwd", "read", "export", "set", "unset", "shift", "return", "declare", "local", "let", "true", "false", "alias", "source", ".", "type", "hash", "wait", "kill", "mapfile", "getopts", "shopt")
	}
	return n
}

func (g *generator) simple() string {
	var b strings.Builder
	for g.IntN(8) == 0 {
		b.WriteString(pick(g, "A", "N", "PATH", "IFS", "a[1]", "B", "LC_ALL") + pick(g, "=", "+=") + pick(g, g.word(), "", "(a "+g.word()+")", "1") + " ")
	}
	if b.Len() > 0 && g.IntN(4) == 0 {
		return b.String()
	}
	b.WriteString(g.name())
	if g.IntN(4) > 0 {
		b.WriteString(" " + g.words())
	}
	b.WriteString(g.redirect())
	return b.String()
}

func (g *generator) words() string {
	var list []string
	for range 1 + g.IntN(3) {
		list = append(list, g.word())
	}
	return strings.Join(list, pick(g, " ", "  ", "\t", " \\\n"))
}

func (g *generator) redirect() string {
	if g.IntN(6) > 0 {
		return ""
	}
	return " " + pick(g, ">o", ">>o", "2>&1", ">&2", "&>o", "<o", "<&-", ">|o", "<>o", "<<<"+g.word(), "> "+g.word(), "< "+g.word(), "3>o", "{fd}>o", "< <("+g.simple()+")", "> >("+g.simple()+")")
}

func (g *generator) arith() string {
	return pick(g, "1", "1+1", "i", "x", "i=1", "i++", "a[0]", "a[$(beta)]", "$X", "${#X}", "$(wc -l)", "$(nproc)", "$(id)", "RANDOM", "'a[$(beta)]'", "Z", "$Z", "n")
}

func (g *generator) word() string {
	if g.left--; g.left < 0 {
		return pick(g, "a", "b", "-n", "x1")
	}
	switch g.IntN(34) {
	case 0:
		return "$(" + g.list() + ")"
	case 1:
		return "`" + g.simple() + "`"
	case 2:
		return `"` + g.word() + ` $(` + g.simple() + `)"`
	case 3:
		return "<(" + g.simple() + ")"
	case 4:
		return "$((" + g.arith() + "))"
	case 5:
		return "${X" + pick(g, ":-", "-", ":+", "+", ":=", "=", ":?", "#", "%%", "/a/", "//b/", "^", ",,", ":") + g.word() + "}"
	case 6:
		return pick(g, "${x@P}", "${Z@P}", "${!N}", "${N@Q}", "${#X}", "${!N*}", "${a[@]}", "${a["+g.arith()+"]}", "${X:"+g.arith()+":1}", "$[1+1]", "$["+g.arith()+"]")
	case 7:
		return "'" + g.list2() + "'"
	case 8:
		return pick(g, "$X", "\"$X\"", "$N", "$1", "$@", "$*", "$?", "$$", "$HOME", "~", "~/x", "$Z")
	case 9:
		return pick(g, "*", "?", "[a-z]*", "{a,b}", "{1..3}", "a{b,c}d", "\\*", "x=~", "{a", "a}", "[", "]]", "!", "@(a)", "!(b)", "a#b", "#a")
	case 10:
		return pick(g, `\ `, `\$(alpha)`, `\`+"`", `"\$(alpha)"`, `"\`+"`alpha\\`"+`"`, `'\'`, `$'a\nb'`, `$'\x41'`, `$'\''`, `$"a"`, `"'"`, `'"'`, `a\
b`, `"a\
b"`)
	case 11:
		return g.word() + g.word()
	case 12:
		return pick(g, "if", "then", "do", "done", "{", "}", "in", "case", "esac", "time", "[[", "function", "select")
	case 13:
		return pick(g, "-o", "-e", "--", "-exec", "-c", "-v", "a[$(beta)]", "'a[$(beta)]'", "-i", "a=b", "1", "0")
	}
	return pick(g, "a", "b", "file", "-n", "x1", "src/a.go", "-la", "1")
}

// list2 is a text without quotes.
func (g *generator) list2() string { return strings.ReplaceAll(g.simple(), "'", "") }
