package jcs

import (
	"bytes"
	"strconv"
	"strings"
)

// decimal is a number as its digits say it: 0.DIGITS times ten to the point.
// The digits have no zero at either end; none at all is zero.
type decimal struct {
	neg    bool
	digits string
	point  int
}

// maxExponent bounds an exponent; no real number needs a larger one.
const maxExponent = 1_000_000

// number is the spelling of a number; it has none with an exponent beyond reason.
func number(text string) (spelling []byte, ok bool) {
	text, neg := strings.CutPrefix(text, "-")
	mantissa, exp := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		exp, _ = strconv.Atoi(text[i+1:]) // out of range it is the largest
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+frac, "0")
	d := decimal{neg: neg, digits: strings.TrimRight(all, "0"), point: len(all) - len(frac)}
	if d.digits == "" {
		return []byte{'0'}, true // also -0 and 0e9: RFC 8785 has one zero
	}
	if exp > maxExponent || exp < -maxExponent {
		return nil, false
	}
	d.point += exp
	return d.canonical().append(nil), true
}

// canonical is the shortest decimal of the float64 nearest to d, if d survives
// that; else d. A fraction of up to 17 digits survives: that is all a float64
// ever needs, and RFC 8785 rounds the last of them. A whole number survives only
// with exactly its own digits, because an id of 19 digits is not to become its
// neighbour; so does what has more digits, or is too small for full precision.
func (d decimal) canonical() decimal {
	n := len(d.digits)
	f, err := strconv.ParseFloat("0."+d.digits+"e"+strconv.Itoa(d.point), 64)
	if err != nil {
		return d // beyond the largest float64
	}
	short := shortest(f)
	short.neg = d.neg
	whole := d.point >= n
	if (whole || n > 17 || f < smallestNormal) && short != d {
		return d
	}
	return short
}

const smallestNormal = 0x1p-1022

// shortest is the shortest decimal that reads back as f.
func shortest(f float64) decimal {
	b := strconv.AppendFloat(nil, f, 'e', -1, 64)
	mantissa, exp, _ := bytes.Cut(b, []byte{'e'})
	e, _ := strconv.Atoi(string(exp))
	digits := strings.Replace(string(mantissa), ".", "", 1)
	return decimal{digits: strings.TrimRight(digits, "0"), point: e + 1}
}

// append writes d in the layout of ECMAScript's Number::toString, which is the
// one RFC 8785 prescribes.
func (d decimal) append(dst []byte) []byte {
	if d.neg {
		dst = append(dst, '-')
	}
	k, n := len(d.digits), d.point
	switch {
	case k <= n && n <= 21:
		dst = append(dst, d.digits...)
		return append(dst, strings.Repeat("0", n-k)...)
	case 0 < n && n <= 21:
		dst = append(dst, d.digits[:n]...)
		return append(append(dst, '.'), d.digits[n:]...)
	case -6 < n && n <= 0:
		dst = append(append(dst, '0', '.'), strings.Repeat("0", -n)...)
		return append(dst, d.digits...)
	}
	dst = append(dst, d.digits[0])
	if k > 1 {
		dst = append(append(dst, '.'), d.digits[1:]...)
	}
	dst = append(dst, 'e')
	if n-1 > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(n-1), 10)
}
