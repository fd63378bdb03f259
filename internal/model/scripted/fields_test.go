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
		reflect.TypeFor[scriptFile](), reflect.TypeFor[step](), reflect.TypeFor[when](), reflect.TypeFor[callFile](), reflect.TypeFor[fault](),
	} {
		for f := range shape.Fields() {
			if name := f.Tag.Get("yaml"); name != "" && !strings.Contains(string(text), "\n| `"+name+"` |") {
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
