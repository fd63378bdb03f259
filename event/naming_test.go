package event_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

var quoted = regexp.MustCompile("`([^`]*)`")

func TestNamingNamesWhatExists(t *testing.T) {
	ids := map[string]bool{}
	for _, f := range fieldsOf(reflect.TypeFor[belay.IDs]()) {
		ids[f.JSON] = true
	}
	seen := map[string]bool{}
	for _, n := range event.Namings() {
		if n.Fact == "" || seen[n.Fact] {
			t.Errorf("%q is named twice or not at all", n.Fact)
		}
		seen[n.Fact] = true
		ty, ok := event.Lookup(n.Type)
		if !ok {
			t.Errorf("%s: %q is no type of the table", n.Fact, n.Type)
			continue
		}
		words := quoted.FindAllStringSubmatch(n.Note, -1)
		if len(words) == 0 {
			t.Errorf("%s: the note names no field", n.Fact)
		}
		for _, w := range words {
			path, _, _ := strings.Cut(w[1], ":")
			if !ids[path] && !hasPath(event.GoType(ty), strings.Split(path, ".")) {
				t.Errorf("%s: %s has no field %q", n.Fact, n.Type, path)
			}
		}
	}
}

// hasPath reports whether a struct has a JSON field, or one inside it.
func hasPath(t reflect.Type, path []string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if len(path) == 0 {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for _, f := range fieldsOf(t) {
		if f.JSON == path[0] {
			return hasPath(f.Type, path[1:])
		}
	}
	return false
}

// Guarantee: O5.
func TestEveryEndOfATurnHasAName(t *testing.T) {
	for _, o := range belay.Outcomes {
		if o == belay.Completed {
			continue // turn.completed
		}
		found := false
		for _, n := range event.Namings() {
			found = found || n.Type == "turn.failed" && strings.Contains(n.Note, "`outcome: "+string(o)+"`")
		}
		if !found {
			t.Errorf("no fact says that a turn ended as %s", o)
		}
	}
}
