package shell

import "strings"

// effect does what an option's letter says with its argument.
func (s *optionReader) effect(o option, name string, w word) {
	switch o.effect {
	case 0:
	case 'W':
		s.raise(WriteWorkspace, "option "+name+" writes")
	case 'D':
		s.raise(Destructive, "option "+name+" removes, overwrites or changes the system")
	case 'N':
		s.raise(Network, "option "+name+" connects")
	case 'E':
		s.raise(EscapeAttempt, "option "+name+" reaches out of the boundary")
	case 'U':
		s.raise(Unparsable, "option "+name+" runs or loads what can't be judged")
	case 'v':
		s.version = true
	case 'm':
		s.mode += name + " "
	case 'i':
		s.inplace = true
		if strings.Contains(w.text, "/") || w.src != "" && !w.lit {
			s.raise(EscapeAttempt, "option "+name+" keeps what was there at another place")
		}
		s.raise(WriteWorkspace, "option "+name+" changes files in place")
	case 'r', 'w', 'T', 'd', 'C', 'F', 'G', 'P', '@', 'h':
		s.placeEffect(o.effect, w)
	default:
		s.codeEffect(o.effect, name, w)
	}
}

// placeEffect is that of options whose argument is a path or a host: it is read
// (r), written (w), written instead of the last operand (T), removed (d), gone
// to (C), an archive (F), a repository (G), read instead of the first operand
// (P), sent (@), connected to (h).
func (s *optionReader) placeEffect(letter byte, w word) {
	switch letter {
	case 'r':
		s.read(w)
	case 'T':
		s.target = true
		s.write(w)
	case 'w':
		s.write(w)
	case 'd':
		s.remove(w)
	case 'C':
		s.chdir(w)
	case 'F':
		s.archives = append(s.archives, w)
	case 'G':
		s.gitPlace(w)
	case 'P':
		s.pattern = true
		s.read(w)
	case '@':
		s.fromFile(w)
	case 'h':
		s.host(w)
	}
}

// codeEffect is that of options whose argument runs or says what runs: a source
// for a shell (x), a program (e), a file of code (f), code of the program's own
// language (s), what stands for the first operand (p), a module (M), a setting
// of git (g) or of ssh (o), a format of curl (O), words to be split (S), a mark to be replaced (I), the name
// of a variable (V); of a shell an option (q), that it runs a string (c) or its input (k).
func (s *optionReader) codeEffect(letter byte, name string, w word) {
	switch letter {
	case 'x':
		s.source(w, name)
	case 'e':
		s.helper(w, name)
	case 'f':
		s.scriptFile(w)
	case 's':
		s.pattern = true
		s.scriptOf(w)
	case 'p':
		s.pattern = true
	case 'M':
		s.pythonModule(w)
	case 'g':
		s.gitSetting(w)
	case 'o':
		s.sshOption(w)
	case 'O':
		if !w.lit || strings.Contains(w.text, "%output{") || strings.HasPrefix(w.text, "@") {
			s.raise(EscapeAttempt, "option "+name+" may write a file")
		}
	case 'S':
		s.splitString(w)
	case 'V':
		s.named(w)
	case 'c':
		s.string = true
	case 'k':
		s.stdin = true
	case 'q':
		s.shellOption(w)
	case 'I':
		if s.replace = "{}"; w.lit && w.text != "" {
			s.replace = w.text
		}
	default:
		s.raise(Unparsable, "option "+name+" has no meaning here")
	}
}

// chdir takes an option that names the directory the program works in.
func (s *optionReader) chdir(w word) {
	in := s.sc.inner()
	s.sc.through(&s.Command, w)
	if w.lit {
		in.dirs = in.dirs.to(w.text)
	} else {
		in.dirs = dirs{}
	}
	s.sc = in
}
