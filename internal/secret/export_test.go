package secret

// Steps is how many bytes the expressions of the known forms look at in a text.
func Steps(b []byte) int {
	var s scanner
	s.look(&Known{}, b, true, true)
	return s.steps
}
