// Package match finds what a text means: the name that was probably meant, which is
// a guess for a person or a model to read and decides nothing, and what a regular
// expression says, which is compiled when it is first used.
package match

import "strings"

// Hint suggests the name most like s, or says something else when none is much
// like it.
func Hint(s string, names []string, otherwise string) string {
	if near := Nearest(s, names); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// Nearest is the name most like s, or empty when none is much like it.
func Nearest(s string, names []string) string {
	if len(s) > 80 {
		return ""
	}
	best, least, closest := "", len(s)/3+2, 0
	a := plain(s)
	for _, name := range names {
		b := plain(name)
		d := distance(a, b, len(s)/3+2)
		exact := d
		if len(b) >= 3 && len(a) >= 3 && (strings.Contains(a, b) || strings.Contains(b, a)) {
			d = min(d, 1) // read_file is read, cmd.exec is exec
		}
		if d < least || d == least && best != "" && exact < closest {
			best, least, closest = name, d, exact
		}
	}
	return best
}

// plain is a name without case and separators.
func plain(s string) string { return unseparated.Replace(strings.ToLower(s)) }

var unseparated = strings.NewReplacer("_", "", "-", "", ".", "")

// distance is the number of bytes to insert, remove or replace between a and b.
// From most on it isn't counted to the end.
func distance(a, b string, most int) int {
	if apart := max(len(a)-len(b), len(b)-len(a)); apart >= most {
		return apart
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least >= most { // no row after this one has less
			return least
		}
	}
	return row[len(b)]
}
