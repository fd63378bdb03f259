package shell

import (
	"slices"
	"strings"
)

// find judges find: where it looks, what it does with what it finds.
func find(s *start, p *program) {
	roots := slices.DeleteFunc(s.options(p, s.args), func(w word) bool { return w.lit && oneOf(w.text, "(", ")", "!", ",") })
	s.operands(p.args, roots)
	if s.pattern { // a file says where it looks
		roots = []word{opaque("{}")}
	}
	for _, words := range s.commands {
		findExec(s, words[1:], roots, strings.HasSuffix(words[0].text, "dir"))
	}
	if s.mode != "" {
		for _, w := range found(roots) {
			s.remove(w)
		}
	}
}

// findEnd is how many words stand before the end of the command behind -exec.
func findEnd(words []word) int {
	for i, w := range words {
		if w.lit && (w.text == ";" || w.text == "+" && i > 0 && words[i-1].src == "{}") {
			return i
		}
	}
	return len(words)
}

// found are the words that {} may become, as far as that is known: names below
// the roots, which never look like options because a root stands before them.
func found(roots []word) []word {
	if len(roots) == 0 {
		roots = []word{literal(".")}
	}
	out := make([]word, len(roots))
	for i, w := range roots {
		out[i] = word{src: "{}"}
		if w.lit && !strings.HasPrefix(w.text, "-") {
			out[i] = word{text: strings.TrimSuffix(w.text, "/") + "/*", src: "{}", glob: true, split: true}
		}
	}
	return out
}

// findExec judges the command behind -exec.
func findExec(s *start, words, roots []word, there bool) {
	end := findEnd(words)
	sc, names := s.within(), found(roots)
	one := names[0]
	if len(names) > 1 { // only whether it may be an option is known
		one = word{src: "{}", text: "/"}
		if slices.ContainsFunc(names, word.option) {
			one.text = ""
		}
	}
	if there {
		sc.dirs, one = dirs{}, word{src: "{}", text: "./"}
	}
	if one.split = end == len(words) || words[end].text == "+"; !one.glob {
		one.brace = one.split
	}
	command := make([]word, end)
	for i, w := range words[:end] {
		if command[i] = w; w.lit && w.text == "{}" && i > 0 {
			command[i] = one
		} else if w.lit && strings.Contains(w.text, "{}") {
			command[i] = word{text: w.text[:strings.Index(w.text, "{}")], src: w.text}
		}
	}
	if len(command) > 0 {
		s.r.run(command, sc, call{direct: true, wrapped: s.wrappedIn()})
	}
}
