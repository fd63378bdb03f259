package belay_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
)

// Whatever providers report, a sum of usages is no less than what is in it, and none
// that can't be changes it.
func TestUsagesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.OneOf(rapid.Int64Range(0, 1000), rapid.SampledFrom([]int64{-1, math.MinInt64, math.MaxInt64, 1e18}))
		var sum belay.Usage
		for range 12 {
			u := belay.Usage{Input: count.Draw(t, "input"), Output: count.Draw(t, "output"), Cached: count.Draw(t, "cached"), Reported: true}
			before := sum
			sum = sum.Add(u)
			if u.Input < 0 || u.Output < 0 || u.Cached < 0 {
				if sum != before {
					t.Fatalf("%+v makes %+v of %+v", u, sum, before)
				}
				continue
			}
			if !sum.Reported || sum.Input < max(before.Input, u.Input) || sum.Output < max(before.Output, u.Output) || sum.Cached < max(before.Cached, u.Cached) || sum.Total() < sum.Input {
				t.Fatalf("%+v and %+v are %+v", before, u, sum)
			}
		}
	})
}
