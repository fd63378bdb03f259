package gym_test

import (
	"testing"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/eval"
	"github.com/belay-run/belay/internal/eval/gym"
)

func player(t *testing.T) eval.Player {
	p := cli.Player()
	p.Temp = t.TempDir()
	return p
}

func TestTheSamplesPass(t *testing.T) {
	all, err := eval.Load([]string{"testdata/gym"}, gym.Read)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 9 {
		t.Fatalf("there are %d scenarios, want 9", len(all))
	}
	for _, s := range all {
		t.Run(s.ID, func(t *testing.T) {
			t.Parallel()
			r, err := player(t).Play(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Failures {
				t.Error(f)
			}
		})
	}
}
