package verify

import (
	"fmt"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

func TestReferencesAreFoundWhereverTheyAre(t *testing.T) {
	a, b := string(belay.DigestOf([]byte("a"))), string(belay.DigestOf([]byte("b")))
	for text, want := range map[string]string{
		`{"x":{"digest":"` + a + `","size":3},"y":[{"digest":"` + b + `","size":4,"media":"m"}]}`: "a3b4",
		`{"x":{"size":3,"digest":"` + a + `"},"y":[1,{"size":4,"digest":"` + b + `"},"z"]}`:       "a3b4",
		`{"hash":"` + b + `","ref":{"digest":"` + a + `","size":3}}`:                              "a3",
		`{"digest":"` + a + `"}`:                         "",
		`{"x":["digest","` + a + `","size",3]}`:          "",
		`{"text":"\"digest\":\"` + a + `\",\"size\":1"}`: "",
		`{"digest":"` + a[:20]:                           "",
	} {
		got := ""
		for _, r := range refsIn(nil, "", []byte(text)) {
			got += map[string]string{a: "a", b: "b"}[string(r.ref.Digest)] + fmt.Sprint(r.ref.Size)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestTheSchemasDigestsAreThoseOfTheMigrations(t *testing.T) {
	for version := 1; version <= len(layout.Migrations); version++ {
		schema, err := expected(t.Context(), version)
		if err != nil {
			t.Fatal(err)
		}
		if got := digestOfSchema(schema); version > len(layout.SchemaDigests) || got != layout.SchemaDigests[version-1] {
			t.Errorf("version %d: schemas must have %q", version, got)
		}
	}
}
