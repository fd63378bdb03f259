package secret

// trial is a place at which forms were matched, and where what they looked at ends. Both
// are places in the text that was given, before any escape was taken out.
type trial struct{ from, to int32 }

// trials are those of one reading of a text after the other: where a reading is what the
// one before was, it isn't matched again.
type trials struct {
	last, now []trial // of the reading before, of this one
	next      int     // in last
	at        []int32 // by place in this reading: place in the text; nil: the same
	off       bool    // this is no reading of the text
}

// begin says that a reading is looked at now.
func (t *trials) begin(at []int32) {
	t.last, t.now, t.next = t.now, t.last[:0], 0
	if at == nil {
		t.last = t.last[:0]
	}
	t.at = at
}

// known reports whether the forms were matched at b[i:] already, with the same text
// before and behind it.
func (t *trials) known(i int) bool {
	if t.off || t.at == nil {
		return false
	}
	for t.next < len(t.last) && t.last[t.next].from < t.at[i] {
		t.next++
	}
	if t.next == len(t.last) || t.last[t.next].from != t.at[i] {
		return false
	}
	was := t.last[t.next]
	from, to := max(0, i-around), i+int(was.to-was.from)
	if from == 0 && t.at[0] != 0 || to >= len(t.at) || int(t.at[to]-t.at[from]) != to-from {
		return false
	}
	t.now = append(t.now, was)
	return true
}

// add is a trial at b[i:] that looked at the text up to a place.
func (t *trials) add(i, to int) {
	switch {
	case t.off:
	case t.at == nil:
		t.now = append(t.now, trial{int32(i), int32(to)})
	default:
		t.now = append(t.now, trial{t.at[i], t.at[to]})
	}
}
