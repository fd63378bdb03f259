package store_test

import (
	"fmt"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
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
		for _, r := range store.RefsIn([]byte(text)) {
			got += map[string]string{a: "a", b: "b"}[string(r.Digest)] + fmt.Sprint(r.Size)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
