package event

import "reflect"

// What the documents and the filler look at from outside.
var WireType = reflect.TypeFor[wire]()

func GoType(t Type) reflect.Type { return t.goType }
