package shell

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Dialect is the language of the shell that runs a source.
type Dialect string

const (
	// Bash is bash as Belay starts it.
	Bash Dialect = "bash"
	// Sh is whatever /bin/sh is: dash, the ash of busybox, mksh, bash as sh. What
	// these may read in different ways is Unparsable. It is the dialect where
	// none is given.
	Sh Dialect = "sh"
)

// dialectOf is the dialect of a shell that is started by name.
func dialectOf(name string, args []word) Dialect {
	if oneOf(path.Base(name), "bash", "rbash") && !slices.ContainsFunc(args, func(w word) bool { return w.text == "--posix" }) {
		return Bash
	}
	return Sh
}

// onlyBash reports whether a builtin of bash is a program to other shells, or not
// there.
func onlyBash(builtin string) bool {
	return oneOf(builtin, "bind", "builtin", "caller", "compgen", "complete", "compopt", "declare", "dirs", "disown", "enable", "help", "history",
		"let", "local", "logout", "mapfile", "popd", "pushd", "readarray", "shopt", "source", "suspend", "typeset")
}

// parse reads a source in a dialect, or returns why that isn't possible.
func parse(src string, d Dialect) (f *syntax.File, why string) {
	f, err := parseAs(syntax.LangBash, src)
	if err != nil {
		return nil, "it can't be parsed: " + clip(err.Error())
	}
	if why := unclear(f, src, d); why != "" || d == Bash {
		return f, why
	}
	posix, err := parseAs(syntax.LangPOSIX, src)
	if err != nil {
		return nil, "sh can't read it: " + clip(err.Error())
	}
	other, _ := parseAs(syntax.LangBash, src)
	clausesAsCalls(other)
	if !reflect.DeepEqual(other, posix) {
		return nil, "shells read it in different ways, and it runs in sh"
	}
	return f, ""
}

// unclear says what in a source shells do in different ways although it looks the
// same to parsers, or nothing.
func unclear(f *syntax.File, src string, d Dialect) (why string) {
	c := checker{src: src, strict: d != Bash}
	quoted := []bool{false} // whether the nodes above stand in double quotes
	syntax.Walk(f, func(n syntax.Node) bool {
		inside := quoted[len(quoted)-1]
		switch n := n.(type) {
		case nil:
			quoted = quoted[:len(quoted)-1]
			return true
		case *syntax.DblQuoted:
			inside = true
		case *syntax.CmdSubst, *syntax.ArithmExp:
			inside = false
		case *syntax.Redirect:
			c.redirect(n)
		case *syntax.ParamExp:
			c.expansion(n, inside)
		case *syntax.Word:
			c.word(n)
		}
		quoted = append(quoted, inside)
		return true
	})
	return c.why
}

// checker looks for what is unclear.
type checker struct {
	src    string
	strict bool     // any shell may run it
	why    string   // the last thing found
	lines  []string // of src, once they are needed
	last   int      // the line that the newest here-document ended with
}

func (c *checker) source(n syntax.Node) string {
	return c.src[n.Pos().Offset():n.End().Offset()]
}

func (c *checker) redirect(n *syntax.Redirect) {
	if n.Op == syntax.Hdoc || n.Op == syntax.DashHdoc {
		c.document(n)
	}
	if !c.strict {
		return
	}
	if n.N != nil && len(n.N.Value) > 1 {
		c.why = "only some shells have the file " + clip(n.N.Value)
	}
	if s := n.Word.Lit(); (n.Op == syntax.DplIn || n.Op == syntax.DplOut) && s != "-" && (len(s) != 1 || (s[0] < '0' || s[0] > '9')) {
		c.why = "only some shells write to what stands behind >&"
	}
}

// expansion looks at ${name…}; quoted says that it stands in double quotes.
func (c *checker) expansion(n *syntax.ParamExp, quoted bool) {
	if !quoted || n.Exp == nil || n.Exp.Word == nil {
		return
	}
	signs := "'\\`{}"
	if c.strict {
		signs += `"`
	}
	if strings.ContainsAny(c.source(n.Exp.Word), signs) {
		c.why = "shells read quotes within an expansion that is quoted in different ways"
	}
}

func (c *checker) word(n *syntax.Word) {
	switch {
	case !c.strict:
	case braces(n):
		c.why = "only some shells expand braces"
	case n.Lit() == "[[": // to busybox a test begins there, whatever stands before it
		c.why = "some shells read [[ as the beginning of a test"
	}
}

// document looks for where a here-document begins and ends by lines alone. Shells
// agree where its delimiter is one plain word, quoted as a whole or not at all,
// and it begins on the line below.
func (c *checker) document(n *syntax.Redirect) {
	written := c.source(n.Word)
	name, quoted := delimiter(written)
	if name == "" {
		c.why = "shells read the delimiter " + clip(written) + " in different ways"
		return
	}
	if c.lines == nil {
		c.lines = strings.Split(c.src, "\n")
	}
	first := max(c.last, int(n.OpPos.Line())) // counted from 1: the line below
	for c.last = first; c.last < len(c.lines) && c.ending(n, c.lines[c.last]) != name; c.last++ {
		line := c.lines[c.last]
		rest, begins := strings.CutPrefix(strings.TrimLeft(line, "\t"), name)
		switch {
		case begins && strings.ContainsAny(rest, ")`"): // bash takes it for the end within a substitution
			c.why = "a here-document has a line that may be its end"
		case !quoted && strings.HasSuffix(line, "\\") && (n.Hdoc != nil && n.Hdoc.Lit() == "" || c.joins(name)): // within a substitution quotes don't keep it
			c.why = "a line of a here-document ends in a backslash where its end may be"
		}
	}
	if h := n.Hdoc; h == nil && c.last != first || h != nil && (int(h.Pos().Line()) != first+1 || int(h.End().Line()) != c.last+1) {
		c.why = "shells may look for the end of a here-document in different places"
	}
	c.last++
}

// ending is a line as it is held against the delimiter.
func (c *checker) ending(n *syntax.Redirect, line string) string {
	if n.Op == syntax.DashHdoc {
		return strings.TrimLeft(line, "\t")
	}
	return line
}

// joins reports whether the line that is looked at, with those that its backslash
// joins to it, has to do with the end of a here-document.
func (c *checker) joins(name string) bool {
	joined := ""
	for _, line := range c.lines[c.last:] {
		if strings.TrimLeft(line, "\t") == name {
			return true
		}
		rest, goesOn := strings.CutSuffix(line, "\\")
		if joined += rest; !goesOn {
			break
		}
	}
	return strings.TrimLeft(joined, "\t") == name
}

// delimiter is the name that ends a here-document, and whether it is quoted, which
// keeps the document as it stands. No name: not everybody reads it that way.
func delimiter(written string) (name string, quoted bool) {
	name = strings.Trim(written, `'"`)
	switch {
	case strings.HasPrefix(written, `\`):
		name, quoted = written[1:], true
	case written == "'"+name+"'", written == `"`+name+`"`:
		quoted = true
	case written != name:
		return "", false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return "", false
		}
	}
	return name, quoted
}

// braces reports whether some shell may make several words of one with braces.
func braces(w *syntax.Word) bool {
	open := false
	for _, p := range w.Parts {
		l, ok := p.(*syntax.Lit)
		if !ok {
			continue
		}
		for i := 0; i < len(l.Value); i++ {
			switch c := l.Value[i]; {
			case c == '\\':
				i++
			case c == '{':
				open = true
			case open && (c == ',' || c == '.' && strings.HasPrefix(l.Value[i:], "..")):
				return true
			}
		}
	}
	return false
}

func parseAs(lang syntax.LangVariant, src string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(src), "")
}

// clausesAsCalls makes of export and readonly, which the parser takes for clauses
// of bash, the simple commands that they are in POSIX.
func clausesAsCalls(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		s, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		if c, ok := s.Cmd.(*syntax.DeclClause); ok && oneOf(c.Variant.Value, "export", "readonly") {
			call := &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{c.Variant}}}}
			for _, as := range c.Args {
				call.Args = append(call.Args, asWord(as))
			}
			s.Cmd = call
		}
		return true
	})
}

// asWord is NAME=value as the one word that it is to a simple command.
func asWord(as *syntax.Assign) *syntax.Word {
	if as.Name == nil && as.Value != nil {
		return as.Value
	}
	if as.Name == nil || as.Index != nil || as.Array != nil || as.Append {
		return &syntax.Word{} // POSIX has none of these: it is like nothing there
	}
	if as.Naked {
		return &syntax.Word{Parts: []syntax.WordPart{as.Name}}
	}
	name, rest := *as.Name, []syntax.WordPart(nil)
	end := name.ValueEnd
	name.Value, name.ValueEnd = name.Value+"=", syntax.NewPos(end.Offset()+1, end.Line(), end.Col()+1)
	if as.Value != nil {
		rest = as.Value.Parts
	}
	if len(rest) > 0 {
		if l, ok := rest[0].(*syntax.Lit); ok {
			name.Value, name.ValueEnd, rest = name.Value+l.Value, l.ValueEnd, rest[1:]
		}
	}
	return &syntax.Word{Parts: append([]syntax.WordPart{&name}, rest...)}
}
