// Package sample picks, of many cases of a test, those that a run of every commit tries.
package sample

import (
	"fmt"
	"hash/fnv"
	"os"
)

// Has reports whether a case is tried. BELAY_SAMPLE says which are: "4 abc" is one of four,
// and another word picks others. Without it all are.
func Has(name string) bool {
	of, word := asked()
	h := fnv.New32a()
	fmt.Fprint(h, name, " ", word)
	return h.Sum32()%of == 0
}

// Of is how many of n random cases are tried.
func Of(n int) int {
	of, _ := asked()
	return max(n/int(of), 1)
}

func asked() (of uint32, word string) {
	if n, err := fmt.Sscan(os.Getenv("BELAY_SAMPLE"), &of, &word); err != nil || n < 2 || of < 1 {
		return 1, ""
	}
	return of, word
}
