package scripted

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestEveryFieldIsInTheReference(t *testing.T) {
	text, err := os.ReadFile("../../../docs/scripted.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range []reflect.Type{
		reflect.TypeFor[scriptFile](), reflect.TypeFor[stepFile](), reflect.TypeFor[whenFile](), reflect.TypeFor[callFile](), reflect.TypeFor[faultFile](),
	} {
		for f := range shape.Fields() {
			if name := f.Tag.Get("yaml"); !strings.Contains(string(text), "\n| `"+name+"` |") {
				t.Errorf("docs/scripted.md has no line for %s of %s", name, shape.Name())
			}
		}
	}
	for kind := range faultKinds {
		if !strings.Contains(string(text), "`"+kind+"`") {
			t.Errorf("docs/scripted.md does not name the fault %s", kind)
		}
	}
}
