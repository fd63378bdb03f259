package match

import (
	"math/rand/v2"
	"testing"
)

func TestWhatIsMuchLikeANameIsSuggested(t *testing.T) {
	tools := []string{"artifact_publish", "edit", "exec", "read"}
	for typed, want := range map[string]string{"execc": "did you mean exec?", "exce": "did you mean exec?", "read_file": "did you mean read?", "publish": "did you mean artifact_publish?", "zzzzzz": "belay tool list"} {
		if got := Hint(typed, tools, "belay tool list"); got != want {
			t.Errorf("%s: %s, want %s", typed, got, want)
		}
	}
}

func TestDistanceIsExactUpToItsBound(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"read", "raed", 2}, {"read", "reads", 1}, {"kitten", "sitting", 3}, {"list", "exec", 4}} {
		if d := distance(c.a, c.b, 100); d != c.want {
			t.Errorf("%q and %q are %d apart, %d was counted", c.a, c.b, c.want, d)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, r.IntN(9))
		for i := range b {
			b[i] = "abc"[r.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		a, b := word(), word()
		full := distance(a, b, 100)
		for most := range 10 {
			if d := distance(a, b, most); d != full && (full < most || d < most) {
				t.Fatalf("%q and %q are %d apart; up to %d, %d was counted", a, b, full, most, d)
			}
		}
	}
}
