package event

import (
	"reflect"
	"strings"
)

// What the documents and the filler look at from outside.
var WireType = reflect.TypeFor[wire]()

func GoType(t Type) reflect.Type { return t.goType }

// Family is the part of a type's name before the first dot.
func (t Type) Family() string { f, _, _ := strings.Cut(t.Name, "."); return f }
