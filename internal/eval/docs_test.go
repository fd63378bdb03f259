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
		reflect.TypeFor[scenarioFile](), reflect.TypeFor[setupFile](), reflect.TypeFor[settingsFile](), reflect.TypeFor[thenFile](),
		reflect.TypeFor[meanwhileFile](), reflect.TypeFor[answerFile](), reflect.TypeFor[factFile](), reflect.TypeFor[expectFile](),
		reflect.TypeFor[textFile](), reflect.TypeFor[fileFile](), reflect.TypeFor[calledFile](), reflect.TypeFor[failedFile](),
	} {
		for f := range shape.Fields() {
			name := f.Tag.Get("yaml")
			if !regexp.MustCompile("(?m)^\\|[^|]*`" + name + "`[^|]*\\|").MatchString(text) {
				t.Errorf("docs/eval.md has no line for %s of %s", name, shape.Name())
			}
		}
	}
	for _, shape := range []reflect.Type{reflect.TypeFor[resultFile](), reflect.TypeFor[togetherFile](), reflect.TypeFor[factCountFile](), reflect.TypeFor[boundFile](), reflect.TypeFor[tookFile]()} {
		for f := range shape.Fields() {
			if name := f.Tag.Get("yaml"); !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/eval.md does not name %s of %s", name, shape.Name())
			}
		}
	}
}
