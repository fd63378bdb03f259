package manifest

import (
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay/internal/lib/strictyaml"
)

const limitsHint = "limits: {requests: 60, tokens: 100000, concurrent: 4, first: 5m, idle: 1m, total: 30m}"

// limits reads what a provider is asked for at most.
func limits(t strictyaml.Text, n ast.Node) (l Limits, err error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return l, t.ErrorAt(n, nil, "want limits by name here").WithHint("%s", limitsHint)
	}
	for _, f := range m.Values {
		if err := l.field(t, f); err != nil {
			return l, err
		}
	}
	return l, nil
}

func (l *Limits) field(t strictyaml.Text, f *ast.MappingValueNode) error {
	key := f.Key.GetToken()
	counts := map[string]*int{"requests": &l.Requests, "tokens": &l.Tokens, "concurrent": &l.Concurrent}
	times := map[string]*time.Duration{"first": &l.First, "idle": &l.Idle, "total": &l.Total}
	count, at := counts[key.Value], times[key.Value]
	if count == nil && at == nil {
		return t.Errorf(key, "there is no limit %q", key.Value).WithHint("%s", limitsHint)
	}
	s, err := scalar(t, f.Value)
	if err != nil {
		return err
	}
	if count != nil {
		if *count, err = strconv.Atoi(s); err != nil || *count < 1 || *count > 1_000_000_000 {
			return t.Errorf(f.Value.GetToken(), "%q is not a number from 1", s).WithHint("%s", limitsHint)
		}
		return nil
	}
	if *at, err = time.ParseDuration(s); err != nil || *at < time.Second || *at > 24*time.Hour {
		return t.Errorf(f.Value.GetToken(), "%q is not a length of time from 1s to 24h", s).WithHint("%s", limitsHint)
	}
	return nil
}
