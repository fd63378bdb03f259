package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// touched is what a command reads and writes, and how strict that makes it.
type touched struct {
	class         Class
	reason        string
	reads, writes []string
	through       []string
	hosts         []string
	unsure        bool // it reads unknown files
	names         bool // it shows their names, not what is in them
}

func (t *touched) touched() bool {
	return t.class != "" && t.class != ReadOnly || len(t.reads)+len(t.writes)+len(t.hosts) > 0
}

// raise makes it at least as strict as c.
func (t *touched) raise(c Class, reason string) {
	if t.class == "" {
		t.class = ReadOnly
	}
	if c.Rank() > t.class.Rank() {
		t.class, t.reason = c, reason
	}
}

// escapes makes it an attempt to escape, if there is a reason.
func (t *touched) escapes(why string) {
	if why != "" {
		t.raise(EscapeAttempt, why)
	}
}

func (t *touched) command(name string) Command {
	if t.class == "" {
		t.class = ReadOnly
	}
	return Command{Name: name, Class: t.class, Reason: t.reason, Reads: t.reads, Writes: t.writes, Through: t.through, Hosts: t.hosts, unsure: t.unsure, names: t.names}
}

// redirects judges the redirections of a statement and finds the text that it
// reads, where that is written down.
func (r *reader) redirects(list []*syntax.Redirect, sc *scope, in *input) touched {
	var t touched
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
	if _, quoted := spelledPlain(d.Word); quoted {
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

// spelledPlain reports whether the delimiter of a here-document is quoted, so
// that the document stands for itself.
func spelledPlain(w *syntax.Word) (string, bool) {
	s := w.Lit()
	return s, s == "" || strings.Contains(s, "\\")
}

// descriptor reports whether a word after >& or <& is the number of an open file.
func descriptor(w word) bool {
	if !w.lit {
		return false
	}
	return w.text == "-" || wholeNumber(strings.TrimSuffix(w.text, "-"))
}

// socket judges the names that bash itself makes connections of.
func (r *reader) socket(t *touched, w word) {
	for _, p := range [...]string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(w.text, p); ok {
			host, _, _ := strings.Cut(rest, "/")
			t.hosts = append(t.hosts, host)
			t.raise(Network, "the shell connects to "+clip(w.src))
		} else if !w.lit && !w.glob && strings.HasPrefix(p, w.text) {
			t.raise(Network, "what "+clip(w.src)+" names may be a connection")
		}
	}
}
