package modeltest

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// stage is a provider made of a function.
type stage func(ctx context.Context, r model.Request, yield func(model.Chunk, error) bool)

func (f stage) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) { f(ctx, r, yield) }
}

// good says a scene as it should be said.
func good(s Scene) stage {
	return func(ctx context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
		if ctx.Err() != nil {
			yield(model.Chunk{}, ctx.Err())
			return
		}
		if s.Reasoning != "" && !yield(model.Chunk{Reasoning: s.Reasoning}, nil) {
			return
		}
		for _, r := range s.Text {
			if !yield(model.Chunk{Text: string(r)}, nil) {
				return
			}
		}
		switch {
		case s.Hang:
			<-ctx.Done()
			yield(model.Chunk{}, ctx.Err())
			return
		case s.Fail != "":
			yield(model.Chunk{}, &model.Error{Class: s.Fail, Message: "as staged", RetryAfter: s.RetryAfter})
			return
		case s.Cut:
			return
		}
		for i, c := range s.Calls {
			c.ID = string(rune('a' + i))
			if !yield(model.Chunk{Call: &c}, nil) {
				return
			}
		}
		yield(model.Chunk{Stop: s.Stop, Usage: s.Usage}, nil)
	}
}

func staged(f func(Scene) stage) Config {
	return Config{Bound: 100 * time.Millisecond, Stage: func(t *testing.T, s Scene) (model.Provider, model.Request) {
		return f(s), model.Request{Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}, Attempt: 1}
	}}
}

func TestAGoodProviderPasses(t *testing.T) { Run(t, staged(good)) }

// chunkwise is good with every chunk and error passed through f.
func chunkwise(f func(model.Chunk, error) (model.Chunk, error)) func(Scene) stage {
	return func(s Scene) stage {
		return func(ctx context.Context, r model.Request, yield func(model.Chunk, error) bool) {
			good(s)(ctx, r, func(c model.Chunk, err error) bool { return yield(f(c, err)) })
		}
	}
}

// instead says another scene than the one staged.
func instead(f func(*Scene)) func(Scene) stage {
	return func(s Scene) stage { f(&s); return good(s) }
}

// broken is, for every law, a provider that breaks it.
var broken = map[string]func(Scene) stage{
	"the chunks are the text, in order": instead(func(s *Scene) { s.Text += "!" }),
	"reasoning comes as reasoning": chunkwise(func(c model.Chunk, err error) (model.Chunk, error) {
		c.Text, c.Reasoning = c.Reasoning+c.Text, ""
		return c, err
	}),
	"the last chunk has the stop, and no other": chunkwise(func(c model.Chunk, err error) (model.Chunk, error) {
		c.Stop = "stop"
		return c, err
	}),
	"a call comes whole, as the model wrote it": chunkwise(func(c model.Chunk, err error) (model.Chunk, error) {
		if c.Call != nil {
			c.Call.Args += " "
		}
		return c, err
	}),
	"usage comes once, or not at all": chunkwise(func(c model.Chunk, err error) (model.Chunk, error) {
		c.Usage = &belay.Usage{Input: 120, Output: 7, Cached: 100, Reported: true}
		return c, err
	}),
	"a failure has its class and is the end": chunkwise(func(c model.Chunk, err error) (model.Chunk, error) {
		if err != nil {
			err = errors.New(err.Error())
		}
		return c, err
	}),
	"a wait the far end asks for is handed on": instead(func(s *Scene) { s.RetryAfter = 0 }),
	"text before a failure is not lost": instead(func(s *Scene) {
		if s.Fail != "" {
			s.Text = ""
		}
	}),
	"a stream cut off never looks finished": instead(func(s *Scene) { s.Cut, s.Stop = false, "stop" }),
	"a consumer that leaves ends the stream": func(s Scene) stage {
		return func(ctx context.Context, r model.Request, yield func(model.Chunk, error) bool) {
			good(s)(ctx, r, func(c model.Chunk, err error) bool { yield(c, err); return true })
		}
	},
	"an ended context ends a stream that hangs": func(s Scene) stage {
		return func(ctx context.Context, r model.Request, yield func(model.Chunk, error) bool) {
			good(s)(context.WithoutCancel(ctx), r, yield)
		}
	},
	"an ended context gets no answer": func(s Scene) stage {
		return func(ctx context.Context, r model.Request, yield func(model.Chunk, error) bool) {
			good(s)(context.WithoutCancel(ctx), r, yield)
		}
	},
	"the same request gets the same answer": func(s Scene) stage {
		asked := 0
		return func(ctx context.Context, r model.Request, yield func(model.Chunk, error) bool) {
			said := s
			if asked++; asked > 1 {
				said.Text = "I looked."
			}
			good(said)(ctx, r, yield)
		}
	},
	"streams don't mix": func(s Scene) stage {
		turn := make(chan int, 8)
		return func(ctx context.Context, r model.Request, yield func(model.Chunk, error) bool) {
			said := s
			turn <- 1
			if len(turn) > 4 {
				said.Text = "what another was told"
			}
			good(said)(ctx, r, yield)
		}
	},
	"a request is only read": func(s Scene) stage {
		return func(ctx context.Context, r model.Request, yield func(model.Chunk, error) bool) {
			r.Messages[0].Role = belay.RoleAssistant
			good(s)(ctx, r, yield)
		}
	},
}

func TestEveryLawIsBrokenBySomeProvider(t *testing.T) {
	for _, l := range laws {
		t.Run(l.name, func(t *testing.T) {
			f, ok := broken[l.name]
			if !ok {
				t.Fatal("no provider here breaks this law")
			}
			if err := hold(t, l, staged(f)); err == nil {
				t.Error("a provider that breaks the law passes")
			} else {
				t.Log(err)
			}
		})
	}
}

func TestAGoroutineLeftBehindBreaksALaw(t *testing.T) {
	quit := make(chan struct{})
	t.Cleanup(func() { close(quit) })
	leaky := func(s Scene) stage {
		return func(ctx context.Context, r model.Request, yield func(model.Chunk, error) bool) {
			go func() { <-quit }()
			good(s)(ctx, r, yield)
		}
	}
	if err := hold(t, laws[0], staged(leaky)); err == nil {
		t.Error("a provider that leaves a goroutine behind passes")
	}
}
