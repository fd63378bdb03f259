// Command mutants breaks each law on purpose, one at a time, and expects the
// tests that show the law to notice. A mutant is a change of a few characters
// that a tired person could make; it is laid over the tree with the overlay of
// the go command, so no file is touched. The command ends with 1 when a mutant
// survives, no longer fits its file or doesn't compile, and when the tests fail
// without any mutant.
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
	"sync"
	"time"
)

// mutant is one law and the change that breaks it.
type mutant struct {
	breaks string // what no longer holds, as a claim about the broken program
	edits  []edit
	caught []suite // at least one of them must fail
}

// edit replaces a text that stands exactly once in a file.
type edit struct{ file, old, new string }

// suite is some tests of a package.
type suite struct{ pkg, run string }

// mutants lists all of them by layer.
func mutants() []mutant {
	return slices.Concat(policyMutants, threadMutants, engineMutants, storeMutants, toolMutants, nounMutants, historyMutants, travelMutants, evalMutants, modelMutants, keyMutants, faultMutants, shellMutants, serverMutants, readerMutants, sandboxMutants)
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
	all := slices.DeleteFunc(mutants(), func(m mutant) bool { return !pick.MatchString(m.breaks) })
	if *some {
		changed, commits, err := lately(ctx, ".")
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(2)
		}
		whole := len(all)
		all = sample(all, changed, commits)
		fmt.Printf("%d of %d mutants; round %d of %d\n", len(all), whole, commits%parts, parts)
	}
	bad, err := run(ctx, all, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// run tries the mutants and returns how many were not caught. They are named
// once more at the end.
func run(ctx context.Context, all []mutant, verbose bool) (bad int, err error) {
	dir, err := os.MkdirTemp("", "belay-mutants-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	l := lab{root: ".", dir: dir}
	began := time.Now()
	l.unsound = l.sound(ctx, all)
	verdicts := make([]chan verdict, len(all))
	var wg sync.WaitGroup
	defer wg.Wait()
	turns := make(chan struct{}, runtime.NumCPU())
	for i, m := range all {
		verdicts[i] = make(chan verdict, 1)
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			verdicts[i] <- l.try(ctx, i, m)
		})
	}
	var not strings.Builder
	late := 0 // caught by the second run only
	for i, m := range all {
		v := <-verdicts[i]
		fmt.Printf("%-9s %5.1fs  %s%s%s\n", v.what, v.took.Seconds(), m.breaks, v.by, strings.Repeat("  by a second run", v.again))
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
	fmt.Printf("%d mutants: %d caught, %d of them by a second run, %d not, in %.0fs\n", len(all), len(all)-bad, late, bad, time.Since(began).Seconds())
	return bad, nil
}
