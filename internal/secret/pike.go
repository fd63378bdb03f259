package secret

import "regexp/syntax"

// program is a compiled expression that is matched at one place, a byte at a
// time, so that it can tell of a text that isn't whole whether more of it could
// still match. Its time is linear in the text.
type program struct {
	*syntax.Prog
	whole bool // it has no group: all of it is the value
	most  int  // bytes that it looks at
}

// progress is a match, or what is known of one while the text isn't whole.
type progress struct {
	from, to int  // of the value; to is 0 without a match
	end      int  // of what matched
	open     bool // more text could change it
	held     int  // where the value of an open one begins; the text's end when it hasn't
}

type state struct {
	pc       uint32
	from, to int // of the value; -1: not yet
}

// machine runs programs; it is used again for its memory.
type machine struct {
	now, next []state
	mark      []uint32
	round     uint32
	steps     int // bytes that were looked at
	seen      int // what was looked at ends here
}

// match matches at b[at:]. whole says that nothing follows b.
func (m *machine) match(p *program, b []byte, at int, whole bool) progress {
	if len(m.mark) < len(p.Inst) {
		m.mark = make([]uint32, len(p.Inst))
		m.round = 0
	}
	var found progress
	start := state{uint32(p.Start), -1, -1}
	if p.whole {
		start.from = at
	}
	m.next = append(m.next[:0], start)
	limit := at + p.most
	for i := at; len(m.next) > 0; i++ {
		if i == len(b) && !whole {
			return m.pending(found, b)
		}
		if i > limit {
			break
		}
		seeds := m.next
		m.next = nil
		m.round++
		m.steps++
		m.seen = max(m.seen, min(i+1, len(b)))
		m.now = m.now[:0]
		before, after := rune(-1), rune(-1)
		if i > 0 {
			before = rune(b[i-1])
		}
		if i < len(b) {
			after = rune(b[i])
		}
		around := syntax.EmptyOpContext(before, after)
		for _, s := range seeds {
			m.add(p, s, i, around)
		}
		m.next = seeds[:0]
		for _, s := range m.now {
			in := &p.Inst[s.pc]
			if in.Op == syntax.InstMatch {
				found = progress{from: s.from, to: s.to, end: i}
				if p.whole {
					found.to = i
				}
				break // what follows has less priority
			}
			if after >= 0 && in.MatchRune(after) {
				m.next = append(m.next, state{in.Out, s.from, s.to})
			}
		}
	}
	return found
}

// pending is what is known when the text ends before the match does.
func (m *machine) pending(found progress, b []byte) progress {
	found.open, found.held = true, len(b)
	if found.to > 0 {
		found.held = found.from
	}
	for _, s := range m.next {
		if s.from >= 0 {
			found.held = min(found.held, s.from)
		}
	}
	return found
}

// add follows what needs no text.
func (m *machine) add(p *program, s state, i int, around syntax.EmptyOp) {
	for {
		if m.mark[s.pc] == m.round {
			return
		}
		m.mark[s.pc] = m.round
		in := &p.Inst[s.pc]
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			m.add(p, state{in.Out, s.from, s.to}, i, around)
			s.pc = in.Arg
			continue
		case syntax.InstCapture:
			switch {
			case in.Arg >= 2 && in.Arg%2 == 0:
				s.from = i
			case in.Arg >= 2:
				s.to = i
			}
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^around != 0 {
				return
			}
		case syntax.InstNop:
		case syntax.InstFail:
			return
		default:
			m.now = append(m.now, s)
			return
		}
		s.pc = in.Out
	}
}
