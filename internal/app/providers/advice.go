package providers

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/model"
)

// advised adds to the failures of a provider what a person can do about them.
type advised struct {
	model.Provider
	at     config.Endpoint
	env    config.Env
	models func(provider string) []string // that the catalogue knows
}

// Abilities are the provider's.
func (a *advised) Abilities(name string) model.Abilities {
	return model.AbilitiesOf(a.Provider, name)
}

// Stream is the provider's, whose errors have a hint.
func (a *advised) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for chunk, err := range a.Provider.Stream(ctx, r) {
			if e, ok := errors.AsType[*model.Error](err); ok && e.Hint == "" {
				told := *e
				told.Hint = a.hint(r.Model, e)
				err = &told
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// hint is what a person can do about a failure; empty: nothing but to wait.
func (a *advised) hint(name string, e *model.Error) string {
	test := "belay models test --provider " + a.at.Name + " --model " + name
	switch {
	case e.Class == "auth":
		return a.keyHint()
	case e.Class == "bad_request" && e.Code == notFound:
		known := a.models(a.at.Name)
		if near := match.Nearest(name, known); near != "" && !slices.Contains(known, name) {
			return "did you mean --model " + near + "?"
		}
		if len(known) > 0 {
			return "belay models list --provider " + a.at.Name + " has models that it serves"
		}
		return test + " tries a model's name"
	case e.Code == "ADDRESS_REFUSED" || e.Code == "TLS" || e.Code == "BAD_ADDRESS" || e.Code == "NO_STREAM" || e.Code == notFound:
		return test + " tries the address"
	case e.Code == "UNREACHABLE" || e.Code == "NO_ANSWER":
		return test + " tries whether the server answers"
	case e.Class == "rate_limited":
		return "wait, or --fallback PROVIDER/MODEL"
	}
	return ""
}

// notFound is the code of an answer that knows no such address, or no such model.
const notFound = "HTTP_404"

// keyHint is how the provider gets another key.
func (a *advised) keyHint() string {
	if a.at.Key.Kind != "" {
		return "check the key that " + a.at.Where + " names: " + a.at.Key.String()
	}
	for _, name := range a.at.Keys {
		if a.at.Secret != "" && strings.TrimSpace(a.env.Get(name)) == a.at.Secret {
			return "set another " + name + ", or unset it and belay login " + a.at.Name
		}
	}
	if a.at.Secret == "" {
		return "no key is sent to " + a.at.URL.Host + ": name it with --base-url, or describe it under providers (belay config edit)"
	}
	return "belay login " + a.at.Name
}
