package read

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/view/feed"
)

// Param is something that a query may say.
type Param struct {
	Name     string
	Doc      string   // in one line, for the interface's description
	OneOf    []string // the values that there are; empty: others decide
	Whole    bool     // its value is a whole number
	Many     bool     // it may be said more than once
	Required bool
}

// Query is what a read is asked: whose, and with which parameters.
type Query struct {
	ID        string // of the session, thread or run
	Values    url.Values
	LastEvent string // the cursor behind which a stream continues; empty: as the values say
}

// QueryOf returns the query of a request.
func QueryOf(r *http.Request) Query {
	return Query{ID: r.PathValue("id"), Values: r.URL.Query(), LastEvent: r.Header.Get("Last-Event-ID")}
}

// Only refuses what Check does, and a query that can't be read.
func Only(r *http.Request, params []Param) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return input.At("query", belay.Errorf(belay.CodeUsage, "the query can't be read").WithHint("write name=value, with & between them and everything else percent-encoded"))
	}
	return Check(q, params)
}

// Check refuses an ambiguous or mistaken query: one with a parameter that isn't
// among params, that is given twice, or whose value isn't one of its values. An empty
// value is none.
func Check(q url.Values, params []Param) error {
	for name, values := range q {
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		switch {
		case i < 0:
			return input.At("query "+input.Shown(name), belay.Errorf(belay.CodeUsage, "there is no such parameter").WithHint("%s", paramsText(params)))
		case len(values) > 1 && !params[i].Many:
			return input.At("query "+name, belay.Errorf(belay.CodeUsage, "it is said %d times", len(values)).WithHint("say it once"))
		case len(params[i].OneOf) > 0 && values[0] != "" && !slices.Contains(params[i].OneOf, values[0]):
			return input.At("query "+name, belay.Errorf(belay.CodeUsage, "%q is none of %s", input.Shown(values[0]), strings.Join(params[i].OneOf, ", ")).WithHint("%s=%s", name, params[i].OneOf[0]))
		}
	}
	return nil
}

func paramsText(params []Param) string {
	if len(params) == 0 {
		return "this route takes no parameters"
	}
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Name
	}
	return "the parameters are " + strings.Join(names, ", ")
}

// besides are the types of what a stream has besides facts.
var besides = []string{feed.TypeText, feed.TypeOutput, feed.TypeResync, feed.TypeDeleted, feed.TypeEnd}

// filter is what a request's types choose. A type that there isn't would never
// come, so whoever misspelt it would wait for ever.
func filter(q url.Values) (feed.Filter, error) {
	f, err := feed.NewFilter(q.Get("types"))
	if err != nil {
		return nil, input.At("query types", err)
	}
	if q.Get("types") != "" && len(f) == 0 {
		return nil, input.At("query types", belay.Errorf(belay.CodeUsage, "it names no type").WithHint("leave it out for all of them"))
	}
	for _, name := range f {
		if !slices.Contains(besides, name) && !known(name) {
			return nil, input.At("query types", belay.Errorf(belay.CodeUsage, "there is no type %q", name).WithHint("types=turn.completed,model.*,text,output; docs/events.md lists them"))
		}
	}
	return f, nil
}

// known reports whether facts can have a type, or be of a family.
func known(name string) bool {
	if _, ok := event.Lookup(name); ok {
		return true
	}
	family, ok := strings.CutSuffix(name, "*")
	return ok && slices.ContainsFunc(event.Types(), func(t event.Type) bool { return strings.HasPrefix(t.Name, family) })
}
