package tool

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type named string

type within struct {
	Below []within `json:"below"`
}

type shown struct {
	At int `json:"at"`
}

func (shown) MarshalText() ([]byte, error) { return []byte("at"), nil }

// derived compares what is derived here with what the library derives, and tells
// which of the two it was.
func derived[In any](t *testing.T, here bool) {
	t.Helper()
	want, failed := deriveByLibrary[In]()
	got, err := deriveSchema[In]()
	if (err == nil) != (failed == nil) || !bytes.Equal(got, want) {
		t.Errorf("%s: got %s, %v, want %s, %v", reflect.TypeFor[In](), got, err, want, failed)
	}
	if _, ok := schemaOfType(nil, reflect.TypeFor[In](), ""); ok != here {
		t.Errorf("%s is derived here: %v", reflect.TypeFor[In](), ok)
	}
}

// TestADerivedSchemaIsTheLibrarys: byte for byte, of types whose schema is written
// here and of those that are left to it.
func TestADerivedSchemaIsTheLibrarys(t *testing.T) {
	derived[struct {
		Text  string            `json:"text" jsonschema:"what, and *why*: [a-z] {b,c} it's !so"`
		Yes   bool              `json:"yes,omitempty"`
		N     int               `json:"n" jsonschema:"how many"`
		X     float64           `json:"x,omitempty" jsonschema:"where"`
		Maybe *string           `json:"maybe" jsonschema:"or not"`
		List  []string          `json:"list" jsonschema:"some"`
		Deep  [][]int           `json:"deep,omitempty"`
		Env   map[string]string `json:"env" jsonschema:"variables"`
		More  []struct {
			ID int `json:"id" jsonschema:"which"`
		} `json:"more" jsonschema:"others"`
		One struct {
			On *bool `json:"on,omitempty"`
		} `json:"one" jsonschema:"the one"`
		Maps map[string]map[string][]bool `json:"maps,omitempty"`
		Any  any                          `json:"any,omitempty" jsonschema:"what you like"`
		Big  *int64                       `json:"big" jsonschema:"a place"`
	}](t, true)
	derived[struct {
		All bool `json:"all,omitempty"`
	}](t, true)
	derived[struct{}](t, false)
	derived[struct {
		A any `json:"a"`
	}](t, false)
	derived[struct {
		A json.RawMessage `json:"a"`
	}](t, false)
	derived[struct {
		A []byte `json:"a"`
	}](t, false)
	derived[struct {
		A int32 `json:"a"`
		B uint  `json:"b"`
	}](t, false)
	derived[struct {
		A named `json:"a"`
	}](t, false)
	derived[struct {
		A time.Time `json:"a"`
	}](t, false)
	derived[struct {
		A shown `json:"a"`
	}](t, false)
	derived[struct {
		A string `json:"a" jsonschema:"less < more & \"quoted\""`
	}](t, false)
	derived[struct {
		A string `json:"a" jsonschema:"WORD=value"`
	}](t, false)
	derived[struct {
		A string
		b int //nolint:unused // a field that JSON doesn't see
	}](t, false)
	derived[struct {
		A int `json:"a,omitzero"`
		B int `json:"-"`
	}](t, false)
	derived[struct {
		within
		A int `json:"a"`
	}](t, false)
	derived[struct {
		A map[int]string `json:"a"`
	}](t, false)
	derived[within](t, false)
}
