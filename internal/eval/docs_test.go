package eval

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestEveryFieldIsInTheReference(t *testing.T) {
	text := docs(t)
	for _, shape := range []reflect.Type{
		reflect.TypeFor[scenarioFile](), reflect.TypeFor[setupFile](), reflect.TypeFor[Settings](), reflect.TypeFor[Then](),
		reflect.TypeFor[Meanwhile](), reflect.TypeFor[Answer](), reflect.TypeFor[Fact](), reflect.TypeFor[expectFile](),
		reflect.TypeFor[Text](), reflect.TypeFor[File](), reflect.TypeFor[Called](), reflect.TypeFor[FailedCall](),
	} {
		for f := range shape.Fields() {
			name := f.Tag.Get("yaml")
			if name == "-" || name == ",inline" { // its fields are those of a type of their own
				continue
			}
			if !regexp.MustCompile("(?m)^\\|[^|]*`" + name + "`[^|]*\\|").MatchString(text) {
				t.Errorf("docs/eval.md has no line for %s of %s", name, shape.Name())
			}
		}
	}
	for _, shape := range []reflect.Type{reflect.TypeFor[CallResult](), reflect.TypeFor[together](), reflect.TypeFor[factCount](), reflect.TypeFor[Bound](), reflect.TypeFor[took]()} {
		for f := range shape.Fields() {
			if name := f.Tag.Get("yaml"); name != "" && name != ",inline" && !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/eval.md does not name %s of %s", name, shape.Name())
			}
		}
	}
}
