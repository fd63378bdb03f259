package command

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/config"
)

// TestRequestsTakeTheSettingsOfTheTable: each field of the settings in a request is
// a row of the table, and each row that requests may set is a field.
func TestRequestsTakeTheSettingsOfTheTable(t *testing.T) {
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[app.SettingsInput]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, name)
		i := slices.IndexFunc(config.All(), func(s config.Setting) bool { return s.JSON == name })
		if i < 0 {
			t.Errorf("no row has the name %q", name)
			continue
		}
		want := reflect.String
		switch s := config.All()[i]; {
		case s.List:
			want = reflect.Slice
		case s.Switch():
			want = reflect.Bool
		}
		if f.Type.Kind() != want {
			t.Errorf("%s is a %s, want a %s", name, f.Type, want)
		}
	}
	for _, s := range config.All() {
		if s.JSON != "" && !slices.Contains(fields, s.JSON) {
			t.Errorf("requests have no field %q", s.JSON)
		}
	}
}
