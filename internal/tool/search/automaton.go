//go:build unix

package search

import (
	"bytes"
	"encoding/binary"
	"regexp/syntax"
	"slices"
)

// maxStates bounds the memory of an automaton; when it is used up it begins anew.
const maxStates = 1000

// automaton finds lines that match where no text is known that must stand in
// them. It knows characters of ASCII only: a line with others is left to the
// regular expression. Its states are made when they are first needed. One
// goroutine owns it.
type automaton struct {
	prog   *syntax.Prog
	states map[string]*dstate
	start  *dstate // at the beginning of a line
	found  *dstate // a match lies behind
	seen   []int   // of each instruction, the round in which it was visited
	round  int
	key    []byte
}

// dstate is where the expression may be after some characters of a line: the
// instructions that come next, not yet followed, since what follows depends on
// the next character.
type dstate struct {
	next  [0x80]*dstate // by character; nil isn't known yet
	end   *dstate       // by the end of the line
	at    []uint32
	first bool // nothing stands before
	word  bool // a letter, digit or _ stands before
}

func newAutomaton(prog *syntax.Prog) *automaton {
	a := &automaton{prog: prog, seen: make([]int, len(prog.Inst)), found: &dstate{}}
	a.reset()
	return a
}

func (a *automaton) reset() {
	a.states = map[string]*dstate{}
	a.start = a.state([]uint32{uint32(a.prog.Start)}, true, false)
}

// seek finds the next line that may match, from the beginning of one. It tells
// where it begins, and whether it does match for sure.
func (a *automaton) seek(text []byte, from int) (begin int, sure bool) {
	for from < len(text) {
		s, i := a.start, from
		for i < len(text) {
			c := text[i]
			if c >= 0x80 {
				return from, false
			}
			if c == '\n' || c == '\r' && (i+1 == len(text) || text[i+1] == '\n') {
				break
			}
			n := s.next[c]
			if n == nil {
				n = a.step(s, rune(c))
			}
			if n == a.found {
				return from, true
			}
			s, i = n, i+1
		}
		if s.end == nil {
			s.end = a.step(s, -1)
		}
		if s.end == a.found {
			return from, true
		}
		n := bytes.IndexByte(text[i:], '\n')
		if n < 0 {
			break
		}
		from = i + n + 1
	}
	return len(text), false
}

// step is the state after a character; -1 is the end of the line.
func (a *automaton) step(s *dstate, c rune) *dstate {
	a.round++
	word := c >= 0 && syntax.IsWordChar(c)
	holds := syntax.EmptyNoWordBoundary
	if word != s.word {
		holds = syntax.EmptyWordBoundary
	}
	if s.first {
		holds |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	if c < 0 {
		holds |= syntax.EmptyEndText | syntax.EmptyEndLine
	}
	var at []uint32
	todo := slices.Clone(s.at)
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if a.seen[pc] == a.round {
			continue
		}
		a.seen[pc] = a.round
		in := &a.prog.Inst[pc]
		switch in.Op {
		case syntax.InstMatch:
			return a.remember(s, c, a.found)
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^holds == 0 {
				todo = append(todo, in.Out)
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if c >= 0 && matches(in, c) {
				at = append(at, in.Out)
			}
		}
	}
	if c < 0 {
		return a.start // anything but found
	}
	at = append(at, uint32(a.prog.Start)) // a match may begin at any character
	slices.Sort(at)
	return a.remember(s, c, a.state(slices.Compact(at), false, word))
}

func matches(in *syntax.Inst, c rune) bool {
	if in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL {
		return true
	}
	return in.MatchRune(c)
}

func (a *automaton) remember(s *dstate, c rune, next *dstate) *dstate {
	if c >= 0 {
		s.next[c] = next
	}
	return next
}

// state is the state of some instructions, made if there is none yet.
func (a *automaton) state(at []uint32, first, word bool) *dstate {
	a.key = append(a.key[:0], 0)
	if first {
		a.key[0] |= 1
	}
	if word {
		a.key[0] |= 2
	}
	for _, pc := range at {
		a.key = binary.AppendUvarint(a.key, uint64(pc))
	}
	if s := a.states[string(a.key)]; s != nil {
		return s
	}
	if len(a.states) >= maxStates {
		key := slices.Clone(a.key)
		a.reset()
		a.key = key
	}
	s := &dstate{at: at, first: first, word: word}
	a.states[string(a.key)] = s
	return s
}
