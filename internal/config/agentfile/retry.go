package agentfile

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// retry says when a task of the agent is tried again by itself.
type retry struct {
	Max     int    `yaml:"max"`
	On      words  `yaml:"on"`
	Backoff scalar `yaml:"backoff"`
}

// again reads what follows a failure.
func (a *Agent) again(f belayFile, at func(...any) string) {
	if r := f.Retry; r != nil {
		if r.Max < 1 || r.Max > belay.MaxRetries {
			a.find(Error, CodeBadLimit, at("retry"), "retry: {max: 2, on: [failed, timed_out], backoff: 30s}", "%d attempts can't follow by themselves; 1 to %d can", r.Max, belay.MaxRetries)
		}
		a.Retry.Max = r.Max
		for _, w := range r.On {
			if o := belay.Outcome(w); !slices.Contains(belay.Outcomes, o) || o == belay.Completed || o == belay.Cancelled {
				a.find(Error, CodeUnknownWord, at("retry", "on"), "failed, no_completion, timed_out, lost, denied, blocked, budget", "a task isn't tried again after %q", short(w, 40))
				continue
			}
			a.Retry.On = append(a.Retry.On, belay.Outcome(w))
		}
		if r.Backoff != "" {
			var err error
			if a.Retry.Backoff, err = span(string(r.Backoff)); err != nil {
				a.find(Error, CodeBadLimit, at("retry", "backoff"), "30s or 5m", "%v", err)
			}
		}
	}
	for _, name := range f.Fallback {
		n, ok := a.need(name, "", at("fallback"))
		switch {
		case !ok:
		case n.Name == a.Name:
			a.find(Error, CodeCycle, at("fallback"), "name another agent", "the agent can't try its own failures: retry does that")
		case len(a.Fallback) == belay.MaxFallback:
			a.find(Error, CodeTooMany, at("fallback"), "leave some out", "at most %d agents can try what it fails at", belay.MaxFallback)
			return
		default:
			a.Fallback = append(a.Fallback, strings.TrimSpace(name))
			a.names = append(a.names, named{"a fallback", n.String(), at("fallback")})
		}
	}
}
