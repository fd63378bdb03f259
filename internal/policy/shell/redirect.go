package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// touches reports whether a command does more than read its words.
func (t *Command) touches() bool {
	return t.Class != "" && t.Class != ReadOnly || len(t.Reads)+len(t.Writes)+len(t.Hosts) > 0
}

// record adds what a construct touches as a command, and reports whether there is any.
func (r *reader) record(t Command, name string) bool {
	if t.touches() {
		r.add(t.called(name))
	}
	return t.touches()
}

// raise makes it at least as strict as c.
func (t *Command) raise(c Class, reason string) {
	if t.Class == "" {
		t.Class = ReadOnly
	}
	if c.Rank() > t.Class.Rank() {
		t.Class, t.Reason = c, reason
	}
}

// escapes makes it an attempt to escape, if there is a reason.
func (t *Command) escapes(why string) {
	if why != "" {
		t.raise(EscapeAttempt, why)
	}
}

// called is the command under a name.
func (t *Command) called(name string) Command {
	c := *t
	if c.Name = name; c.Class == "" {
		c.Class = ReadOnly
	}
	return c
}

// redirects judges the redirections of a statement and finds the text that it
// reads, where that is written down.
func (r *reader) redirects(list []*syntax.Redirect, sc *scope, in *input) Command {
	var t Command
	for _, d := range list {
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			r.heredoc(d, sc, in)
			continue
		case syntax.WordHdoc:
			w := r.word(d.Word, sc)
			*in = input{w.text, w.lit}
			continue
		}
		w := r.word(d.Word, sc)
		if src := r.source(d.Word); (d.Op == syntax.DplIn || d.Op == syntax.DplOut) && len(src) > 1 && src[0] == '-' {
			t.raise(Unparsable, "bash closes the file and takes the rest for a word of its own")
		}
		switch d.Op {
		case syntax.RdrIn:
			r.reads(&t, w, sc)
			r.socket(&t, w)
			*in = input{}
		case syntax.DplIn:
			if !descriptor(w) {
				r.reads(&t, w, sc)
			}
			*in = input{}
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
			r.writes(&t, w, sc)
			r.socket(&t, w)
		case syntax.DplOut:
			if !descriptor(w) {
				if !w.lit || strings.ContainsAny(w.text, "$`\\'\"~*?[{<>(") {
					t.raise(Unparsable, "bash expands what stands behind >& twice")
				}
				r.writes(&t, w, sc)
			}
		default:
			t.raise(Unparsable, "a redirection that isn't known")
		}
	}
	return t
}

// heredoc reads a here-document: its substitutions run, and it may be a script.
func (r *reader) heredoc(d *syntax.Redirect, sc *scope, in *input) {
	*in = input{}
	if d.Hdoc == nil {
		*in = input{"", true}
		return
	}
	if s := d.Word.Lit(); s == "" || strings.Contains(s, "\\") { // its delimiter is quoted: it stands for itself
		*in = input{d.Hdoc.Lit(), true}
		r.spells(in.text)
		return
	}
	b := builder{r: r, sc: sc}
	for _, p := range d.Hdoc.Parts {
		b.quoted(p)
	}
	*in = input{b.text.String(), !b.open}
	r.spells(in.text)
}

// descriptor reports whether a word after >& or <& is the number of an open file.
func descriptor(w word) bool {
	if !w.lit {
		return false
	}
	return w.text == "-" || wholeNumber(strings.TrimSuffix(w.text, "-"))
}

// socket judges the names that bash itself makes connections of.
func (r *reader) socket(t *Command, w word) {
	for _, p := range [...]string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(w.text, p); ok {
			host, _, _ := strings.Cut(rest, "/")
			t.Hosts = append(t.Hosts, host)
			t.raise(Network, "the shell connects to "+clip(w.src))
		} else if !w.lit && !w.glob && strings.HasPrefix(p, w.text) {
			t.raise(Network, "what "+clip(w.src)+" names may be a connection")
		}
	}
}
