package lru

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestItKeepsWhatWasUsedLast: after any use a cache has what a plain list of it would
// have, and never more bytes than its limit but for one value.
func TestItKeepsWhatWasUsedLast(t *testing.T) {
	type held struct {
		key  any // a string is of the one part, an int of the other
		size int
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 100).Draw(t, "limit")
		c := New(limit)
		texts, numbers := Of[string, *string](c), Of[int, int](c)
		var want []held // the one used last in front
		drop := func(key any) (had held) {
			if i := slices.IndexFunc(want, func(h held) bool { return h.key == key }); i >= 0 {
				had = want[i]
				want = slices.Delete(want, i, i+1)
			}
			return had
		}
		use := func(key any, size int) {
			want = slices.Insert(want, 0, held{key, size})
			for sum := 0; ; sum = 0 {
				for _, h := range want {
					sum += h.size
				}
				if sum <= limit || len(want) == 1 {
					return
				}
				want = want[:len(want)-1]
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "uses") {
			n := rapid.IntRange(0, 5).Draw(t, "key")
			key, size := string(rune('0'+n)), rapid.IntRange(0, 60).Draw(t, "size")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				drop(n)
				numbers.Put(n, n, size)
				use(n, size)
			case 1:
				had := slices.ContainsFunc(want, func(h held) bool { return h.key == n })
				if v, ok := numbers.Take(n); ok != had || ok && v != n {
					t.Fatalf("took %d: %d, %v", n, v, ok)
				}
				drop(n)
			case 2, 3:
				if got := texts.Share(key, func() *string { return &key }); *got != key {
					t.Fatalf("%q is %q", key, *got)
				}
				use(key, drop(key).size)
			case 4:
				limit = size
				c.Resize(limit)
				if len(want) > 0 {
					last := want[0]
					want = want[1:]
					use(last.key, last.size)
				}
			}
			var got []held
			sum := 0
			for el := c.order.Front(); el != nil; el = el.Next() {
				e := el.Value.(*entry)
				h := held{size: e.size}
				switch k := e.key.(type) {
				case keyOf[string, *string]:
					h.key = k.key
				case keyOf[int, int]:
					h.key = k.key
				}
				got = append(got, h)
				sum += e.size
			}
			if !slices.Equal(got, want) || sum != c.size || len(c.byKey) != len(got) || sum > limit && len(got) > 1 {
				t.Fatalf("it has %v, %d bytes of %d, %d keys; want %v", got, c.size, limit, len(c.byKey), want)
			}
		}
	})
}
