// Command testsum reads the output of "go test -json" on standard input, prints
// what failed as it comes and closes with how many tests ran, failed and were
// skipped, with the reason of every skip. It exits 1 when a test failed, and
// when a skip gives another reason than a facility that the machine lacks.
//
// With -skipped FILE it writes a line for each package with skipped tests: the
// package, and the pattern by which "go test -run" runs just these.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// line is what go test -json prints.
type line struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

type key struct{ pkg, test string }

type tally struct {
	passed, failed, skipped int
	output                  map[key][]string
	reasons                 map[string]int
	took                    map[string]float64  // seconds, by package
	lacking                 map[string][]string // patterns of skipped tests, by package
	broken                  bool
}

func main() {
	list := flag.String("skipped", "", "the `FILE` for the list of skipped tests")
	flag.Parse()
	t := tally{output: map[key][]string{}, reasons: map[string]int{}, took: map[string]float64{}, lacking: map[string][]string{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var l line
		if json.Unmarshal(in.Bytes(), &l) != nil {
			fmt.Println(in.Text()) // a build error, say
			continue
		}
		t.take(l)
	}
	t.print()
	if *list != "" {
		if err := os.WriteFile(*list, t.list(), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if t.failed > 0 || t.broken || t.passed == 0 {
		os.Exit(1)
	}
}

func (t *tally) take(l line) {
	k := key{l.Package, l.Test}
	if l.Test == "" && l.Elapsed > 0 {
		t.took[l.Package] += l.Elapsed
	}
	switch l.Action {
	case "output", "build-output":
		t.output[k] = append(t.output[k], l.Output)
		return
	case "build-fail":
		t.broken = true
	case "pass":
		if l.Test != "" {
			t.passed++
		}
	case "skip":
		if l.Test != "" {
			t.skipped++
			t.skip(k)
		}
	case "fail":
		if l.Test != "" {
			t.failed++
		} else {
			t.broken = true
		}
		fmt.Printf("FAIL %s %s\n%s", l.Package, l.Test, strings.Join(t.output[k], ""))
	default:
		return
	}
	delete(t.output, k)
}

func (t *tally) skip(k key) {
	text := strings.Join(t.output[k], " ")
	_, reason, ok := strings.Cut(text, "needs: ")
	if !ok {
		t.broken = true
		fmt.Printf("FAIL %s %s was skipped for another reason than a missing facility:%s\n", k.pkg, k.test, text)
		return
	}
	reason, _, _ = strings.Cut(reason, "\n")
	t.reasons["needs: "+reason]++
	var pattern []string
	for name := range strings.SplitSeq(k.test, "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(name)+"$")
	}
	t.lacking[k.pkg] = append(t.lacking[k.pkg], strings.Join(pattern, "/"))
}

func (t *tally) list() (b []byte) {
	for _, pkg := range slices.Sorted(maps.Keys(t.lacking)) {
		b = fmt.Appendf(b, "%s %s\n", pkg, strings.Join(t.lacking[pkg], "|"))
	}
	return b
}

// slowest is how many packages are printed with their time.
const slowest = 20

func (t *tally) print() {
	byTime := slices.SortedFunc(maps.Keys(t.took), func(a, b string) int { return cmp.Compare(t.took[b], t.took[a]) })
	for _, pkg := range byTime[:min(slowest, len(byTime))] {
		fmt.Printf("%7.1fs  %s\n", t.took[pkg], pkg)
	}
	for _, r := range slices.Sorted(maps.Keys(t.reasons)) {
		fmt.Printf("skipped %d: %s\n", t.reasons[r], r)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
}
