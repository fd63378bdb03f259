package input

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/jcs"
)

// Decode reads a body into the struct that to points to, and takes nothing that
// could be meant in two ways: every name is exactly a field's and occurs once,
// every value has the field's type, and what is required is there. An error
// names the field.
func Decode(body []byte, to any) error {
	if err := CheckUnambiguous(body); err != nil {
		return err
	}
	t := reflect.TypeOf(to).Elem()
	if err := fits(body, t, ""); err != nil {
		return err
	}
	if err := json.Unmarshal(body, to); err != nil {
		field := ""
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			field = e.Field
		}
		return At(field, belay.Errorf(belay.CodeBadCommand, "the value can't be used: %s", err).WithHint(describedThere))
	}
	return nil
}

// CheckUnambiguous refuses what isn't one JSON value with one meaning.
func CheckUnambiguous(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return belay.Errorf(belay.CodeBadCommand, "the body is empty").WithHint("send a JSON object, {} at least")
	}
	_, err := jcs.JSON(body)
	e, ok := errors.AsType[*jcs.Error](err)
	if !ok {
		return err
	}
	said := belay.Errorf(belay.CodeBadCommand, "the body is not JSON with one meaning: %s at byte %d", e.Msg, e.Offset)
	return At(cmp.Or(Shown(strings.TrimPrefix(strings.TrimPrefix(e.Path, "$"), ".")), "body"), said.WithHint("%s", mendings[e.Kind]))
}

// mendings say what to do about a body that isn't JSON with one meaning.
var mendings = map[jcs.Kind]string{
	jcs.Syntax:    "send one JSON object; bytes count from 0",
	jcs.Duplicate: "keep one of the two: which one counts would depend on who reads it",
	jcs.Encoding:  `send UTF-8; what \u writes must be whole characters`,
	jcs.Limit:     "nest less deeply, and write numbers that others can hold",
}

// describedThere is the hint where nothing better can be said.
const describedThere = "GET /v1/openapi.json describes what is taken"

// Object is a JSON object whose fields are defined elsewhere: the arguments of a
// tool. Every value stays as it was written.
type Object map[string]json.RawMessage

// JSON is the object as text; none is {}.
func (o Object) JSON() json.RawMessage {
	if o == nil {
		return json.RawMessage("{}")
	}
	b, err := json.Marshal(o)
	if err != nil {
		panic("input: " + err.Error()) // the values were JSON when they came
	}
	return b
}

// Base64 is content of any kind, as base64.
type Base64 []byte

// MarshalText encodes it.
func (b Base64) MarshalText() ([]byte, error) { return base64.StdEncoding.AppendEncode(nil, b), nil }

// UnmarshalText decodes it.
func (b *Base64) UnmarshalText(text []byte) (err error) {
	*b, err = base64.StdEncoding.AppendDecode((*b)[:0], text)
	return err
}

var textual = reflect.TypeFor[encoding.TextUnmarshaler]()

// fits reports whether a value has the shape of a type.
func fits(raw json.RawMessage, t reflect.Type, path string) error {
	raw = bytes.TrimSpace(raw)
	for t.Kind() == reflect.Pointer {
		if string(raw) == "null" {
			return nil
		}
		t = t.Elem()
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return nil
	}
	if got, want := kindOf(raw), wanted(t); got != want && (got != number || want != wholeNumber) {
		return mismatch(got, path, want)
	}
	switch {
	case readsText(t):
		return fitsText(raw, t, path)
	case t.Kind() == reflect.Struct:
		return fitsStruct(raw, t, path)
	case t.Kind() == reflect.Slice:
		return fitsSlice(raw, t, path)
	case wanted(t) == wholeNumber:
		return fitsNumber(raw, path)
	}
	return nil
}

// Kinds of values that are numbers in JSON.
const (
	number      = "a number"
	wholeNumber = "a whole number"
)

// wanted is what a value of a type is in JSON.
func wanted(t reflect.Type) string {
	if t.Kind() == reflect.String || readsText(t) {
		return "a text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return wholeNumber
	case reflect.Float64:
		return number
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	}
	panic("input: no rule for a field of type " + t.String())
}

// readsText reports whether a type reads its values from texts itself.
func readsText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textual) }

func fitsText(raw []byte, t reflect.Type, path string) error {
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		return At(path, belay.Errorf(belay.CodeBadCommand, "the text can't be read as a %s", strings.ToLower(t.Name())).WithHint("%s", cmp.Or(examples[t], describedThere)))
	}
	return nil
}

// ExampleTime is a time as fields take it.
const ExampleTime = "2026-01-31T16:00:00Z"

// examples are texts as types take them.
var examples = map[reflect.Type]string{reflect.TypeFor[time.Time](): ExampleTime, reflect.TypeFor[belay.Duration](): "30m"}

func fitsStruct(raw []byte, t reflect.Type, path string) error {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(raw, &has); err != nil {
		return At(path, belay.Errorf(belay.CodeBadCommand, "the object can't be read").WithHint(describedThere))
	}
	fields := Fields(t)
	for name := range has {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
			return At(join(path, Shown(name)), belay.Errorf(belay.CodeBadCommand, "there is no such field").WithHint("%s", fieldsText(fields)))
		}
	}
	for _, f := range fields {
		value, ok := has[f.Name]
		switch {
		case !ok && f.Required:
			return At(join(path, f.Name), belay.Errorf(belay.CodeBadCommand, "the field is missing").WithHint("it is %s", whatIs(f.Of)))
		case ok:
			if err := fits(value, f.Of, join(path, f.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxItems bounds a list of a body.
const maxItems = 1000

func fitsSlice(raw []byte, t reflect.Type, path string) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return At(path, belay.Errorf(belay.CodeBadCommand, "the list can't be read").WithHint(describedThere))
	}
	if len(items) > maxItems {
		return At(path, belay.Errorf(belay.CodeTooLarge, "the list has %d items; at most %d are taken", len(items), maxItems).WithHint("send fewer"))
	}
	for i, item := range items {
		if err := fits(item, t.Elem(), path+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return nil
}

// fitsNumber takes whole numbers that survive a float64 only.
func fitsNumber(raw []byte, path string) error {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return mismatch(number, path, wholeNumber)
	}
	if n > 1<<53 || n < -(1<<53) || n > math.MaxInt {
		return At(path, belay.Errorf(belay.CodeBadCommand, "the number is too large").WithHint("numbers go up to 2^53 on both sides of 0"))
	}
	return nil
}

func mismatch(got, path, want string) error {
	return At(cmp.Or(path, "body"), belay.Errorf(belay.CodeBadCommand, "%s stands where %s is wanted", got, want).WithHint("send %s", want))
}

// whatIs returns what a field of a type is.
func whatIs(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[time.Time]() {
		return "a time, such as " + examples[t]
	}
	return wanted(t)
}

func kindOf(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return number
}

// Field is a field of a struct as JSON has it.
type Field struct {
	Name     string
	Of       reflect.Type
	Required bool
}

// Fields returns the fields of a struct, those of embedded structs too. A field
// that isn't omitted when it is empty is required.
func Fields(t reflect.Type) []Field {
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, Fields(f.Type)...)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" {
			out = append(out, Field{name, f.Type, !strings.Contains(rest, "omit")})
		}
	}
	return out
}

func fieldsText(fields []Field) string {
	if len(fields) == 0 {
		return "this command takes no fields: send {}"
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return "the fields are " + strings.Join(names, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Text refuses a text that can't be recorded, or is too long.
func Text(field, s string, most int) error {
	switch {
	case len(s) > most:
		return At(field, belay.Errorf(belay.CodeTooLarge, "the text has %d bytes; at most %d are taken", len(s), most).WithHint("make it shorter"))
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return At(field, belay.Errorf(belay.CodeBadCommand, "the text has characters that can't be recorded").WithHint("leave NUL characters out"))
	}
	return nil
}

// ID refuses what can't be an id; an empty one is one that wasn't given.
func ID(field, s string) error {
	if s == "" {
		return nil
	}
	return At(field, belay.CheckID(field, s))
}

// Named refuses an id that is empty too.
func Named(field, s string) error { return At(field, belay.CheckID(field, s)) }
