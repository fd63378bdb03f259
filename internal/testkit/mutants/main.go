// Command mutants breaks each law on purpose, one at a time, and expects the
// tests that show the law to notice. A mutant is a change of a few characters
// that a tired person could make. All of them are woven into one program, where
// at most one is on, with the overlay of the go command: no file is touched, and
// a package's tests are compiled once. The command ends with 1 when a mutant
// survives and when its tests fail without it, with 2 when one doesn't fit the
// tree or doesn't compile.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// mutant is one law and the change that breaks it.
type mutant struct {
	breaks string // what no longer holds, as a claim about the broken program
	edits  []edit
	caught string // where a test must fail: the end of a package's path, and a pattern of tests
}

// suite is some tests of a package.
type suite struct{ pkg, run string }

func (m mutant) suite() suite {
	pkg, run, _ := strings.Cut(m.caught, " ")
	return suite{pkg, run}
}

// most is how many mutants there are at most: one for a family of guarantees.
const most = 120

// mutants lists all of them by layer.
func mutants() []mutant {
	return slices.Concat(gateMutants(), loopMutants(), storeMutants(), toolMutants(), serverMutants())
}

func main() {
	only := flag.String("run", "", "only mutants whose claim matches this regular expression")
	some := flag.Bool("sample", false, "only those of packages that changed lately, and a part of the others that rotates by commit")
	verbose := flag.Bool("v", false, "show what the tests print")
	flag.Parse()
	pick, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bad, err := run(ctx, pick, *some, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// run tries the mutants that are picked and returns how many were not caught.
// They are named once more at the end.
func run(ctx context.Context, pick *regexp.Regexp, some, verbose bool) (bad int, err error) {
	began := time.Now()
	t, err := newTree(".")
	if err != nil {
		return 0, err
	}
	all := mutants()
	var chosen []int
	for i, m := range all {
		if pick.MatchString(m.breaks) {
			chosen = append(chosen, i)
		}
	}
	if some {
		changed, commits, err := lately(ctx, ".")
		if err != nil {
			return 0, err
		}
		whole := len(chosen)
		chosen = sample(t, all, chosen, changed, commits)
		fmt.Printf("%d of %d mutants; round %d of %d\n", len(chosen), whole, commits%parts, parts)
	}
	dir, err := os.MkdirTemp("", "belay-mutants-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // some tests go on as another user
		return 0, err
	}
	l := &lab{tree: t, dir: dir}
	var suites []suite
	for _, i := range chosen {
		if s := all[i].suite(); !slices.Contains(suites, s) {
			suites = append(suites, s)
		}
	}
	if err := l.build(ctx, all, suites); err != nil {
		return 0, err
	}
	built := time.Since(began)
	unsound := l.unsound(ctx, suites)
	verdicts := eachOf(chosen, func(i int) verdict {
		if why := unsound[all[i].suite()]; why != "" {
			return verdict{what: misfit, output: why}
		}
		return l.try(ctx, i, all[i].suite())
	})
	var not strings.Builder
	late := 0 // caught by the second run only
	for n, i := range chosen {
		v, m := <-verdicts[n], all[i]
		fmt.Printf("%-9s %5.1fs  %s  (%s)%s\n", v.what, v.took.Seconds(), m.breaks, m.caught, strings.Repeat("  by a second run", v.again))
		late += v.again
		if verbose || v.what != caught {
			fmt.Print(v.output)
		}
		if v.what != caught {
			bad++
			fmt.Fprintf(&not, "%-9s %s\n%s", v.what, m.breaks, v.output)
		}
	}
	if err := ctx.Err(); err != nil {
		return bad, err
	}
	fmt.Print(not.String())
	fmt.Printf("%d mutants: %d caught, %d of them by a second run, %d not, in %.0fs, of which %.0fs to build\n", len(chosen), len(chosen)-bad, late, bad, time.Since(began).Seconds(), built.Seconds())
	return bad, nil
}

// unsound returns the suites that can't tell anything, and why.
func (l *lab) unsound(ctx context.Context, suites []suite) map[suite]string {
	whys := eachOf(suites, func(s suite) string { return l.sound(ctx, s) })
	unsound := map[suite]string{}
	for i, s := range suites {
		if why := <-whys[i]; why != "" {
			unsound[s] = why
		}
	}
	return unsound
}

// eachOf does something with each, as many at once as there are processors.
func eachOf[T, R any](all []T, do func(T) R) []chan R {
	results := make([]chan R, len(all))
	turns := make(chan struct{}, runtime.NumCPU())
	for i, x := range all {
		results[i] = make(chan R, 1)
		go func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			results[i] <- do(x)
		}()
	}
	return results
}
