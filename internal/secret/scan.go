package secret

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"sync"
)

// Known says which of the known forms are looked for. The zero value is all.
type Known struct {
	Off  []string         // forms that are not
	Keep []*regexp.Regexp // values that stay
}

// Forms are the names of the known forms.
func Forms() []string {
	var names []string
	for i := range forms {
		if !slices.Contains(names, forms[i].name) {
			names = append(names, forms[i].name)
		}
	}
	return names
}

// span is a value in a text.
type span struct {
	from, to int
	form     int // in the table
	key      int // where what says so begins
}

// looked is what is known of a text.
type looked struct {
	spans []span // in order, apart from each other
	open  int    // what could change begins not before it: the text's end when nothing can
	held  int    // what must not be shown yet begins not before it
	keep  int    // from where on the text is needed to look at what follows it
}

// scanner looks for values in known forms. It is used again for its memory.
type scanner struct {
	machine
	trials trials
	known  *Known
	reads  [1 + mostLevels]reading
	run    []byte  // of base64
	runAt  []int32 // by place in run: place in plain
	lines  []int   // where its lines begin
	meant  []byte  // by it
	out    looked
}

// reading is a text without escapes.
type reading struct {
	plain []byte
	at    []int32 // where its characters stand in what was given, and where it ends
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// look finds the values in b. whole says that nothing follows it; first says that
// nothing is before it.
func (k *Known) look(b []byte, first, whole bool) looked {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	return s.look(k, b, first, whole)
}

func (s *scanner) look(k *Known, b []byte, first, whole bool) looked {
	s.known = k
	s.out = looked{open: len(b), held: len(b)}
	skip := 1
	if first {
		skip = 0
	}
	read := reading{plain: b}
	next := s.unescape(0, read, whole)
	at := next.at
	s.trials.off = false
	s.trials.begin(nil)
	s.scan(b, skip, whole, given{at})
	for level := 1; next.at != nil && level <= mostLevels; level++ {
		read, at = next, next.at
		s.trials.begin(at)
		s.scan(read.plain, skip, whole, escaped{at})
		next = s.unescape(level, read, whole)
	}
	s.trials.off = true
	s.base64(read.plain, at, skip, whole)
	s.out.spans = joined(s.out.spans)
	for _, h := range s.out.spans {
		if h.to > s.out.held {
			s.out.held = min(s.out.held, h.from)
			s.out.open = min(s.out.open, h.key)
		}
	}
	s.out.keep = max(0, s.out.open-keepBefore)
	s.out.keep = given{at}.open(s.out.keep) // not within an escape
	return s.out
}

// keepBefore is how much of a text is needed before what may change: what a check
// looks at, with an escape for each character.
const keepBefore = 6 * around

// places leads from a reading of the text to the text.
type places interface {
	// span is where a value stands; shown says that it is its own key.
	span(from, to int, shown bool) (int, int)
	// held is where what must not be shown begins; from is where the value does, or
	// may do, also behind what is there.
	held(from int, shown bool) int
	// open is where what could change begins.
	open(at int) int
}

// mostLevels is how often a text is unescaped: JSON in JSON in JSON.
const mostLevels = 3

// given is the text itself: what is taken out of it begins and ends with escapes.
type given struct{ at []int32 } // where characters begin, escaped or not; nil: everywhere

func (g given) span(from, to int, _ bool) (int, int) {
	if g.at != nil {
		if i, found := slices.BinarySearch(g.at, int32(to)); !found && i < len(g.at) {
			to = int(g.at[i])
		}
	}
	return g.open(from), to
}
func (g given) held(from int, _ bool) int { return g.open(from) }
func (g given) open(at int) int {
	i, found := slices.BinarySearch(g.at, int32(at))
	if g.at == nil || found || i == 0 {
		return at
	}
	return int(g.at[i-1])
}

type escaped struct{ at []int32 }

func (e escaped) span(from, to int, _ bool) (int, int) { return int(e.at[from]), int(e.at[to]) }
func (e escaped) held(from int, _ bool) int            { return int(e.at[min(from, len(e.at)-1)]) }
func (e escaped) open(at int) int                      { return int(e.at[at]) }

// scan looks through one reading of the text.
func (s *scanner) scan(b []byte, skip int, whole bool, to places) {
	t := keysOf()
	h := uint16(0)
	for i := skip - 2; i+2 < len(b); i++ {
		h = (h<<5 | t.fold[b[i+2]]) & 0x7fff
		n := t.bucket[h]
		if n == 0 || i < skip || s.trials.known(i) {
			continue
		}
		s.seen = min(i+t.reach, len(b))
		for _, k := range t.keys[n] {
			got := begins(b[i:], k.text)
			if got == len(k.text) || got == len(b)-i && !whole {
				s.try(b, i, k, got < len(k.text), whole, to)
			}
		}
		s.trials.add(i, s.seen)
	}
	if whole {
		return
	}
	for i := max(skip, len(b)-2); i < len(b); i++ { // two characters may begin any key
		for _, keys := range t.keys[1:] {
			for _, k := range keys {
				if begins(b[i:], k.text) == len(b)-i {
					s.try(b, i, k, true, false, to)
				}
			}
		}
	}
}

// try matches a form at a place; begun says that not all of its key is there.
func (s *scanner) try(b []byte, i int, k key, begun, whole bool, to places) {
	f := &forms[k.form]
	if slices.Contains(s.known.Off, f.name) {
		return
	}
	from := i
	before := b[max(0, i-around):i]
	missing := len(k.text) - min(len(k.text), len(b)-i) // characters of the key
	if f.after {
		if begun {
			s.out.open, s.out.held = min(s.out.open, to.open(i)), min(s.out.held, to.held(len(b)+missing, false))
			return
		}
		from += len(k.text)
		if (whole || len(b)-from > signWithin) && !f.likely(before, b[from:]) {
			return
		}
	}
	p := s.match(f.compile(), b, from, whole)
	if begun && !p.open {
		return
	}
	if p.open {
		if p.held == len(b) { // no value begins before the key is whole
			p.held += missing
		}
		s.out.open = min(s.out.open, to.open(i))
		s.out.held = min(s.out.held, to.held(p.held, f.prog.whole))
		return
	}
	if p.to == 0 || inMark(before) || f.check != nil && !f.check(before, b[i:p.end], b[p.from:p.to]) {
		return
	}
	for _, keep := range s.known.Keep {
		if keep.Match(b[p.from:p.to]) {
			return
		}
	}
	start, end := to.span(p.from, p.to, f.prog.whole)
	if start < end {
		s.out.spans = append(s.out.spans, span{start, end, k.form, to.open(i)})
	}
}

// inMark reports whether a text ends within a mark.
func inMark(before []byte) bool {
	at := bytes.LastIndexByte(before, '[')
	return at >= 0 && bytes.HasPrefix(before[at:], []byte("[redacted:")) && bytes.IndexByte(before[at:], ']') < 0
}

// joined makes one of spans that overlap.
func joined(all []span) []span {
	slices.SortFunc(all, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.form, b.form))
	})
	n := 0
	for _, h := range all {
		if n > 0 && h.from < all[n-1].to {
			l := &all[n-1]
			l.to, l.form, l.key = max(l.to, h.to), min(l.form, h.form), min(l.key, h.key)
			continue
		}
		all[n] = h
		n++
	}
	return all[:n]
}

// digest tells values apart for whoever has the key.
func digest(value, key []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write(value)
	return hex.EncodeToString(m.Sum(nil)[:8])
}

// unescape is a text without escapes of URLs, JSON and terminals; its places are nil
// when there are none. An escape that isn't whole is held back.
func (s *scanner) unescape(level int, r reading, whole bool) reading {
	if !escapes(r.plain, whole) {
		return reading{}
	}
	b, plain, at := r.plain, s.reads[level].plain[:0], s.reads[level].at[:0]
	place := func(i int) int32 {
		if r.at != nil {
			return r.at[i]
		}
		return int32(i)
	}
	i := 0
	for i < len(b) {
		j := nextEscape(b, i)
		plain = append(plain, b[i:j]...)
		if r.at != nil {
			at = append(at, r.at[i:j]...)
		} else {
			for k := i; k < j; k++ {
				at = append(at, int32(k))
			}
		}
		if i = j; i == len(b) {
			break
		}
		c, n, shows := unescaped(b[i:])
		if n == 0 {
			if !whole {
				s.out.open, s.out.held = min(s.out.open, int(place(i))), min(s.out.held, int(place(i)))
				break
			}
			c, n, shows = b[i], 1, true
		}
		if shows {
			plain, at = append(plain, c), append(at, place(i))
		}
		i += n
	}
	s.reads[level] = reading{plain, append(at, place(i))}
	return s.reads[level]
}

// escapes reports whether a text has an escape, or may have one when more of it comes.
func escapes(b []byte, whole bool) bool {
	for i := nextEscape(b, 0); i < len(b); i = nextEscape(b, i+1) {
		if _, n, shows := unescaped(b[i:]); n > 1 || n == 1 && !shows || n == 0 && !whole {
			return true
		}
	}
	return false
}

// nextEscape is where an escape may begin, from a place on; the text's end when none does.
func nextEscape(b []byte, i int) int {
	for i < len(b) && b[i] != '\\' && b[i] != '%' && b[i] != 0x1b {
		i++
	}
	return i
}

// mostEscape bounds a code of a terminal.
const mostEscape = 48

// unescaped is what an escape stands for and how long it is; n is 0 when more of
// it has to come. A code of a terminal stands for nothing.
func unescaped(b []byte) (c byte, n int, shows bool) {
	switch {
	case b[0] == 0x1b:
		return code(b, 1)
	case len(b) == 1:
		return 0, 0, false
	case b[0] == '%':
		if !isDigit(b[1]) && !isLower(small(b[1])) {
			return '%', 1, true
		}
		if len(b) == 2 {
			return 0, 0, false
		}
		if v, err := hex.DecodeString(string(b[1:3])); err == nil {
			return v[0], 3, true
		}
		return '%', 1, true
	}
	switch b[1] {
	case 'n':
		return '\n', 2, true
	case 't':
		return '\t', 2, true
	case 'r':
		return '\r', 2, true
	case '"', '\\', '/', '\'':
		return b[1], 2, true
	case 'u', 'x', 'e', '0':
		return coded(b)
	}
	return '\\', 1, true
}

// coded is a character by its number; a terminal's escape begins its code.
func coded(b []byte) (c byte, n int, shows bool) {
	digits := map[byte]int{'u': 4, 'x': 2, 'e': 0, '0': 2}[b[1]]
	if len(b) < 2+digits {
		return 0, 0, false
	}
	text := string(b[2 : 2+digits])
	switch {
	case b[1] == 'e', b[1] == '0' && text == "33":
		return code(b, 2+digits)
	case b[1] == '0':
		return '\\', 1, true
	case b[1] == 'u' && text[:2] == "00":
		text = text[2:]
	}
	v, err := hex.DecodeString(text)
	switch {
	case err != nil || len(v) != 1:
		return '\\', 1, true
	case v[0] == 0x1b:
		return code(b, 2+digits)
	}
	return v[0], 2 + digits, true
}

// code is a code of a terminal, after its escape.
func code(b []byte, n int) (byte, int, bool) {
	if len(b) == n {
		return 0, 0, false
	}
	if b[n] != '[' {
		return b[0], 1, true
	}
	for i := n + 1; i < len(b) && i < mostEscape; i++ {
		if b[i] >= 0x40 && b[i] <= 0x7e {
			return 0, i + 1, false
		}
	}
	if len(b) < mostEscape {
		return 0, 0, false
	}
	return b[0], 1, true
}

// encoded leads from what a run of base64 means to the text.
type encoded struct {
	run []int32 // by character of the run: place in plain
	at  []int32 // by place in plain: place in the text; nil: the same
}

// place is where a character of the run stands in the text.
func (e encoded) place(n int) int { return e.text(int(e.run[min(n, len(e.run)-1)])) }

func (e encoded) text(plain int) int {
	if e.at != nil {
		return int(e.at[plain])
	}
	return plain
}

// begin is the group with which a value begins. Of one that is its own key the
// first three characters are shown: before they are there nothing is known of it.
func begin(from int, shown bool) int {
	if shown {
		return (from + 5) / 3
	}
	return from / 3
}

func (e encoded) span(from, to int, shown bool) (int, int) {
	last := min((to+2)/3*4, len(e.run)-1) - 1
	return e.place(4 * begin(from, shown)), e.text(int(e.run[last]) + 1)
}
func (e encoded) held(from int, shown bool) int { return e.place(4 * begin(from, shown)) }
func (e encoded) open(int) int                  { return e.place(0) }

const (
	leastRun = 16 // characters of base64 in which a value fits
	// leastLine is how long the lines of wrapped base64 are at least.
	leastLine = 60
	// mostRun is how much of a run that continues is scanned again.
	mostRun = 4 << 10
)

// base64 looks into runs of base64, also those that are wrapped.
func (s *scanner) base64(plain []byte, at []int32, skip int, whole bool) {
	for i := 0; i < len(plain); i++ {
		if digits[plain[i]] != 0 {
			i = s.oneRun(plain, at, i, skip, whole)
		}
	}
}

// oneRun looks into the run that begins at a place, and returns where it ends.
func (s *scanner) oneRun(plain []byte, at []int32, from, skip int, whole bool) int {
	if (plain[from] == '+' || plain[from] == '-') && (from == 0 && skip == 0 || from > 0 && plain[from-1] == '\n') {
		from++ // the sign of a line in a diff
	}
	if i := runEnd(plain, from); i-from < leastRun && i < len(plain) && plain[i] != '\n' && plain[i] != '\r' {
		return i
	}
	s.run, s.runAt, s.lines = s.run[:0], s.runAt[:0], append(s.lines[:0], 0)
	i := from
	for ; i < len(plain); i++ {
		if c := digits[plain[i]]; c != 0 {
			s.run, s.runAt = append(s.run, c), append(s.runAt, int32(i))
			continue
		}
		line := s.lines[len(s.lines)-1]
		n := len(s.run) - line
		if plain[i] != '\n' && plain[i] != '\r' || n%4 != 0 || n < leastLine && (n > 0 || line == 0) {
			break
		}
		if n > 0 {
			s.lines = append(s.lines, len(s.run))
		}
	}
	goes := i == len(plain) && !whole
	if len(s.run) < leastRun && !goes {
		return i
	}
	s.runAt = append(s.runAt, int32(i))
	e := encoded{s.runAt, at}
	s.meant = slices.Grow(s.meant[:0], base64.RawStdEncoding.DecodedLen(len(s.run)))
	meant := s.meant[:cap(s.meant)]
	n, _ := base64.RawStdEncoding.Decode(meant, s.run[:len(s.run)&^3])
	if rest := len(s.run) & 3; !goes && rest > 1 {
		k, _ := base64.RawStdEncoding.Decode(meant[n:], s.run[len(s.run)&^3:])
		n += k
	}
	if from > 0 {
		skip = 0
	}
	s.scan(meant[:n], skip, !goes, e)
	if goes {
		s.out.open = min(s.out.open, e.place(s.again()))
	}
	return i
}

// runEnd is where the characters of base64 end.
func runEnd(plain []byte, i int) int {
	for i < len(plain) && digits[plain[i]] != 0 {
		i++
	}
	return i
}

// again is the offset from which a run that continues is scanned again: not all of a
// long run, but whole lines, so that it is read as before.
func (s *scanner) again() int {
	from := max(0, len(s.run)-mostRun) &^ 3
	if len(s.lines) == 1 {
		return from
	}
	i, _ := slices.BinarySearch(s.lines, from+1)
	return s.lines[i-1]
}

// digits are the characters of base64, those for URLs as the others.
var digits = func() (d [256]byte) {
	for c := range 256 {
		switch b := byte(c); {
		case isDigit(b), isLower(b), isUpper(b), b == '+', b == '/':
			d[c] = b
		case b == '-':
			d[c] = '+'
		case b == '_':
			d[c] = '/'
		}
	}
	return d
}()
