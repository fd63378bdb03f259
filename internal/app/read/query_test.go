package read_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// TestAQuerySaysNothingElse: what a route doesn't know, and what is said twice, is
// refused with what it does know.
func TestAQuerySaysNothingElse(t *testing.T) {
	params := []read.Param{{Name: "after"}, {Name: "tag", Many: true}, {Name: "status", OneOf: []string{"running", "ended"}}}
	long := strings.Repeat("n", 100)
	for query, want := range map[string]struct{ field, hint string }{
		"": {}, "after=1": {}, "status=ended": {}, "status=": {}, "after=": {}, "tag=a&tag=b&after=2": {},
		"afer=1":          {"query afer", "the parameters are after, tag, status"},
		"After=1":         {"query After", "the parameters are after, tag, status"},
		"status=over":     {"query status", "status=running"},
		"status=Ended":    {"query status", "status=running"},
		"after=1&after=1": {"query after", "say it once"},
		"after=%zz":       {"query", "write name=value, with & between them and everything else percent-encoded"},
		"a;b":             {"query", "write name=value, with & between them and everything else percent-encoded"},
		long + "=1":       {"query " + long[:64] + "…", "the parameters are after, tag, status"},
	} {
		err := read.Only(httptest.NewRequest("GET", "/v1/x?"+query, nil), params)
		if want.field == "" && err == nil {
			continue
		}
		if p := input.ProblemOf(err); err == nil || p.Code != belay.CodeUsage || p.Field != want.field || p.Hint != want.hint {
			t.Errorf("%q: %+v, want %+v", query, err, want)
		}
	}
	if p := input.ProblemOf(read.Only(httptest.NewRequest("GET", "/v1/x?q=1", nil), nil)); p.Hint != "this route takes no parameters" {
		t.Errorf("%+v", p)
	}
}

// TestATypeThatThereIsNotIsRefused: it would never come, so a stream that is asked
// for it would be silent for ever, and a window empty.
func TestATypeThatThereIsNotIsRefused(t *testing.T) {
	st := memory.Open(memory.Options{})
	history(t, st, 2)
	get := reads(st)
	var page struct{ Position int64 }
	for _, k := range event.Types() {
		for _, types := range []string{k.Name, strings.SplitAfter(k.Name, ".")[0] + "*"} {
			if code := get(t, "/v1/sessions/sess_a/events?types="+types, &page); code != "" {
				t.Errorf("%s: %s", types, code)
			}
		}
	}
	for types, want := range map[string]belay.Code{"text,end,resync,deleted": "", "turn.completed, model.*": "",
		"turn.complete": belay.CodeUsage, "turns.*": belay.CodeUsage, "turn": belay.CodeUsage, "text,modl.*": belay.CodeUsage, ",,": belay.CodeUsage, "%20": belay.CodeUsage} {
		types = strings.ReplaceAll(types, " ", "%20")
		if code := get(t, "/v1/sessions/sess_a/events?types="+types, &page); code != want {
			t.Errorf("%q: %q, want %q", types, code, want)
		}
	}
}
