package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/policy"
)

// decided is what rules before another one allow or ask, by the names of tools.
type decided struct {
	whole map[string]bool     // every call of the tool
	part  map[string][]string // some: which rules do
	wild  []string            // the same for patterns
}

// take tells a deny what is decided before it, and notes what any other rule
// decides. A deny is final here, so what comes before it must be taken out of it.
func (b *decided) take(r *geminiSource) {
	switch {
	case r.says == policy.Deny:
		b.tell(r)
	case r.bare():
		for _, n := range r.names {
			b.whole[n] = true
		}
	default:
		place := fmt.Sprint(r.place)
		for _, n := range r.names {
			if b.part[n] = append(b.part[n], place); strings.Contains(n, "*") {
				b.wild = append(b.wild, place)
			}
		}
	}
}

func (b *decided) tell(r *geminiSource) {
	var over []string
	some := func(places []string) {
		if len(over) < maxNamed {
			over = append(over, places[:min(len(places), maxNamed)]...)
		}
	}
	some(b.wild)
	pattern := false
	for _, n := range r.names {
		some(b.part[n])
		pattern = pattern || strings.Contains(n, "*")
	}
	if pattern {
		for n := range geminiTools {
			some(b.part[n])
			if b.whole[n] {
				r.except = append(r.except, geminiTools[n].allow...)
			}
		}
	}
	slices.Sort(r.except)
	r.except = slices.Compact(r.except)
	r.names = slices.DeleteFunc(slices.Clone(r.names), func(n string) bool { return b.whole[n] || b.whole["*"] })
	if len(over) > 0 {
		slices.Sort(over)
		over = slices.Compact(over)
		r.why = append(r.why, "a deny is final here: it wins over what comes first there, such as rule "+strings.Join(over[:min(len(over), maxNamed)], ", "))
	}
}

// maxNamed is how many rules a reason names.
const maxNamed = 3
