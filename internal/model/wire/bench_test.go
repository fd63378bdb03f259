package wire

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/model"
)

// instant answers at once.
type instant struct{}

func (instant) Stream(context.Context, model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) { yield(model.Chunk{Stop: "stop"}, nil) }
}

// BenchmarkCall is what the gateway adds to a request, its limits included.
func BenchmarkCall(b *testing.B) {
	plain := instant{}
	behind := NewGateway(time.Now).Wrap(Account{Provider: "far"}, plain, Limits{Requests: 1 << 30, Tokens: 1 << 30, Concurrent: 8})
	for name, p := range map[string]model.Provider{"plain": plain, "behind": behind} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				began := time.Now()
				if err := ask(b.Context(), p, model.Request{Model: "m"}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}
