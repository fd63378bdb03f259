package sqlite

import "testing"

func TestTheSchemasDigestsAreThoseOfTheMigrations(t *testing.T) {
	for version := 1; version <= len(migrations); version++ {
		schema, err := expected(t.Context(), version)
		if err != nil {
			t.Fatal(err)
		}
		if got := digestOfSchema(schema); version > len(schemas) || got != schemas[version-1] {
			t.Errorf("version %d: schemas must have %q", version, got)
		}
	}
}
