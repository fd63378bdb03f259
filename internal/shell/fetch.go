package shell

import (
	"slices"
	"strings"
)

// fetch judges curl and wget, which may write where they run.
func (s *start) fetch(p *program) {
	s.judge(p, s.args)
	here := strings.HasPrefix(p.name, "wget") && !slices.ContainsFunc(s.args, func(w word) bool { return w.lit && w.text == "--spider" })
	for _, w := range s.args {
		here = here || w.lit && (oneOf(w.text, "--remote-name", "--remote-name-all") || strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "O"))
	}
	if here && !s.version && len(s.touched.writes) == 0 {
		s.worksHere()
	}
}

// fromFile takes the argument of options such as curl's -d, where @ names a
// file that is sent.
func (s *start) fromFile(w word) {
	if strings.HasPrefix(w.text, "@") {
		s.r.reads(&s.touched, w.from(1), s.sc)
		return
	}
	for _, sign := range [...]string{"=@", "=<", "@"} { // a form's file, its text, --data-urlencode NAME@FILE
		if _, file, ok := strings.Cut(w.text, sign); ok {
			file, _, _ = strings.Cut(file, ";")
			s.r.reads(&s.touched, literal(file), s.sc)
			return
		}
	}
}
