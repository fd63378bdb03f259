package shell

import "strings"

// wrapper is a program that starts the command that its operands are.
type wrapper struct{ *start }

// judge takes the wrapper's options and judges what it starts.
func (s wrapper) judge(p *program, words []word) {
	if p.class != "" {
		s.raise(p.class, p.why)
	}
	rest := s.options(p, words)
	is := func(what string) bool { return names(p.starts, what) }
	if is("shell") {
		s.shell(rest)
		return
	}
	if rest = append(s.split, rest...); is("env") {
		rest = s.environment(rest)
	}
	if is("skip") && len(rest) > 0 {
		if p.name == "ssh" {
			s.host(rest[0])
		}
		if is("locks") && !(rest[0].lit && wholeNumber(rest[0].text)) {
			s.write(rest[0])
		}
		rest = rest[1:]
	}
	if hasWord(rest[:min(1, len(rest))], "--") {
		rest = rest[1:]
	}
	s.certain(words[:max(0, len(words)-len(rest))])
	if is("away") {
		in := s.sc.inner()
		in.dirs = dirs{}
		s.sc = in
	}
	if len(rest) > 0 && strings.HasPrefix(p.name, "uv ") && strings.Contains(rest[0].text, "://") {
		s.raise(Destructive, "it downloads "+clip(rest[0].src)+", and nothing is known about what it runs")
	}
	switch {
	case len(rest) == 0:
		s.finish()
	case is("locks") && hasWord(rest[:1], "-c", "--command") && len(rest) > 1:
		s.joined(rest[1:2])
	case is("joins"):
		s.joined(rest)
	case is("input") && s.replace != "":
		s.r.run(replaced(rest, s.replace), s.within(), s.inner())
	case is("input"):
		s.r.run(append(rest[:len(rest):len(rest)], opaque("{}")), s.within(), s.inner())
	default:
		s.r.run(rest, s.within(), s.inner())
	}
}

// certain judges the words before the command that a wrapper starts: one that
// may be an option, or several words, moves where the command begins.
func (s wrapper) certain(words []word) {
	for i, w := range words {
		taken := i > 0 && words[i-1].lit && words[i-1].option() && !w.split
		if !w.lit && (w.split || w.option() && !taken) {
			s.raise(Unparsable, clip(w.src)+" decides where the command begins, and only shows when it runs")
		}
	}
}

// inner is how a command inside this one is reached.
func (s wrapper) inner() call {
	return call{direct: true, in: s.call.in, paths: s.Command, wrapped: s.wrappedIn()}
}

// replaced makes words open in which a mark stands for what isn't known.
func replaced(words []word, mark string) []word {
	out := make([]word, len(words))
	for i, w := range words {
		if at := strings.Index(w.text, mark); w.lit && at >= 0 {
			w = word{text: w.text[:at], src: w.text}
		}
		out[i] = w
	}
	return out
}

// joined judges words that a wrapper joins into a source for a shell.
func (s wrapper) joined(words []word) {
	list, ok := texts(words)
	if !ok {
		s.raise(Unparsable, s.name+" hands a shell what only shows when it runs")
	}
	if s.finish(); ok {
		s.source(literal(strings.Join(list, " ")), s.name)
	}
}

// environment takes NAME=value before a command.
func (s wrapper) environment(words []word) []word {
	for len(words) > 0 {
		name, value, ok := strings.Cut(words[0].text, "=")
		if !ok || words[0].option() && words[0].lit {
			break
		}
		v := literal(value)
		if !words[0].lit {
			v = words[0].from(len(name) + 1)
		}
		s.r.variable(&s.Command, name, v, s.sc, true)
		words = words[1:]
	}
	return words
}

// splitString takes env -S, which splits its argument much as a shell does.
func (s *optionReader) splitString(w word) {
	if !w.lit || strings.ContainsAny(w.text, "\\$#'\"`") {
		s.raise(Unparsable, "env -S splits its words by rules of its own")
		return
	}
	for f := range strings.FieldsSeq(w.text) {
		s.split = append(s.split, literal(f))
	}
}

// sshOption judges ssh -o NAME=value, where some names hold commands.
func (s *optionReader) sshOption(w word) {
	name, value, _ := strings.Cut(w.text, "=")
	switch {
	case !w.lit:
		s.raise(Unparsable, "an option of ssh that only shows when it runs may hold a command")
	case oneOf(strings.ToLower(name), "proxycommand", "localcommand", "knownhostscommand"):
		s.source(literal(value), "ssh -o "+name)
	case !oneOf(strings.ToLower(name), "stricthostkeychecking", "userknownhostsfile", "batchmode", "connecttimeout", "loglevel", "port", "user", "identitiesonly", "serveraliveinterval", "serveralivecountmax", "connectionattempts", "preferredauthentications", "passwordauthentication", "compression"):
		s.raise(Unparsable, "ssh -o "+clip(name)+" isn't known")
	}
}

// shell judges a shell that is started by name: it reads a string, a file, or its
// input.
func (s wrapper) shell(rest []word) {
	if hasWord(rest[:min(1, len(rest))], "-") {
		rest = rest[1:]
	}
	switch {
	case strings.HasSuffix(s.name, "zsh"):
		s.unknown("zsh reads a source by rules of its own")
	case s.odd:
		s.unknown("an option changes how the shell reads")
	case s.version && len(s.args) == 1:
		s.finish()
	case len(rest) > 0 && strings.HasPrefix(rest[0].text, "+"):
		s.unknown("option " + clip(rest[0].src) + " changes how the shell reads")
	case s.string && len(rest) == 0:
		s.finish()
	case s.string && !rest[0].lit:
		s.unknown("it runs " + clip(rest[0].src) + ", which only shows when it runs")
	case s.string:
		s.code(rest[0].text)
	case len(rest) > 0 && !s.stdin:
		s.runsFile(rest[0])
		s.finish()
	case s.call.in.known:
		s.code(s.call.in.text)
	default:
		s.unknown("it runs what it reads, which only shows then")
	}
}

// code judges what a shell runs, and records the shell itself only if nothing
// else of it is.
func (s wrapper) code(src string) {
	s.finishTouched()
	before := len(s.r.commands)
	s.r.script(src, dialectOf(s.name, s.args), s.within(), s.wrappedIn())
	if len(s.r.commands) == before {
		s.finish()
	}
}

// finishTouched records a wrapper of its own only if it does something itself.
func (s *start) finishTouched() {
	if s.touches() {
		s.finish()
	}
}

// unknown records a command that starts an unknown program.
func (s wrapper) unknown(why string) {
	s.raise(Unparsable, why)
	s.finish()
}
