package shell

import (
	"slices"
	"strings"
)

// findPrimaries is find's expression language: a word, how many arguments it
// takes, and an effect as in an option table.
const findPrimaries = "( ) ! -not -a -and -o -or , -true -false -depth -d -follow -daystart -mount -xdev -noleaf -ignore_readdir_race -noignore_readdir_race -warn -nowarn -empty -executable -readable -writable -nouser -nogroup -print -print0 -ls -prune -quit -X -x -s -E -H -L -P " +
	"-name= -iname= -path= -ipath= -wholename= -iwholename= -lname= -ilname= -regex= -iregex= -regextype= -type= -xtype= -size= -mtime= -atime= -ctime= -mmin= -amin= -cmin= -newer=r -anewer=r -cnewer=r -newermt= -newerat= -newerct= -newermm=r -samefile=r -perm= -user= -group= -uid= -gid= -links= -inum= -fstype= -used= -context= -maxdepth= -mindepth= -printf= -files0-from=r " +
	"-delete:D -fprint=w -fprint0=w -fls=w -fprintf=w"

var findTable lazy[table]

// find judges find: where it looks, what it does with what it finds.
func (s *start) find() {
	t := findTable.get(func() *table { return readTable(findPrimaries) })
	words := s.args
	for len(words) > 0 && words[0].lit && (oneOf(words[0].text, "-H", "-L", "-P") || strings.HasPrefix(words[0].text, "-O") || words[0].text == "-D") {
		if words[0].text == "-D" {
			words = words[1:]
		}
		words = words[min(1, len(words)):]
	}
	var roots []word
	for len(words) > 0 && !words[0].option() && !(words[0].lit && oneOf(words[0].text, "(", "!", ")")) {
		s.r.reads(&s.touched, words[0], s.sc)
		roots = append(roots, words[0])
		words = words[1:]
	}
	deletes := false
	if slices.ContainsFunc(words, func(w word) bool { return w.lit && strings.HasPrefix(w.text, "-files0-from") }) {
		roots = []word{opaque("{}")} // a file says where it looks
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w.lit && oneOf(w.text, "-exec", "-execdir", "-ok", "-okdir") {
			i += s.findExec(words[i+1:], roots, strings.HasSuffix(w.text, "dir"))
			continue
		}
		o, ok := t.options[w.text]
		if !w.lit || !ok {
			s.raise(Destructive, clip(w.src)+" isn't known to find, or may be anything")
			continue
		}
		deletes = deletes || w.text == "-delete"
		if o.arg == 0 {
			s.effect(o, w.text, word{})
			continue
		}
		if i++; i < len(words) {
			if v := words[i]; v.several() && v.option() && !(v.glob && strings.Contains(v.text, ".")) { // no primary has a dot
				s.raise(Destructive, clip(v.src)+" may become any primary of find")
			}
			s.effect(o, w.text, words[i])
		}
		if w.text == "-fprintf" {
			i++
		}
	}
	if deletes {
		for _, w := range s.found(roots) {
			s.r.removes(&s.touched, w, s.sc)
		}
	}
}

// found are the words that {} may become, as far as that is known: names below
// the roots, which never look like options because a root stands before them.
func (s *start) found(roots []word) []word {
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

// findExec judges the command behind -exec; it returns how many words it has.
func (s *start) findExec(words, roots []word, there bool) int {
	end := 0
	for end < len(words) && !(words[end].lit && (words[end].text == ";" || words[end].text == "+" && end > 0 && words[end-1].src == "{}")) {
		end++
	}
	sc, found := s.within(), s.found(roots)
	one := found[0]
	if len(found) > 1 { // only whether it may be an option is known
		one = word{src: "{}", text: "/"}
		if slices.ContainsFunc(found, word.option) {
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
	return end + 1
}
