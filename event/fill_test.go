package event_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// filler sets every field of a value to something that isn't zero, the same
// each time.
type filler struct{ n int }

var special = map[reflect.Type]func(n int) any{
	reflect.TypeFor[time.Time]():           func(n int) any { return start.Add(time.Duration(n) * time.Microsecond) },
	reflect.TypeFor[json.RawMessage]():     func(n int) any { return json.RawMessage(fmt.Sprintf(`{"a":%d}`, n)) },
	reflect.TypeFor[belay.Digest]():        func(n int) any { return belay.DigestOf([]byte{byte(n)}) },
	reflect.TypeFor[event.BenchmarkRole](): func(int) any { return event.RoleCandidate },
	reflect.TypeFor[event.ExportStatus]():  func(int) any { return event.ExportDone },
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (f *filler) fill(v reflect.Value) {
	f.n++
	if make, ok := special[v.Type()]; ok {
		v.Set(reflect.ValueOf(make(f.n)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d <&> \u2028 ü", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) / 8)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		f.fill(e)
		v.SetMapIndex(reflect.ValueOf("role").Convert(v.Type().Key()), e)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i))
			}
		}
	default:
		panic("no sample for " + v.Type().String())
	}
}

// payloadOf is a filled payload of a type.
func payloadOf(ty event.Type) event.Payload {
	v := reflect.New(event.GoType(ty)).Elem()
	new(filler).fill(v)
	return v.Interface().(event.Payload)
}

// sample is a filled fact of a type with the ids it needs and no other.
func sample(ty event.Type) event.Envelope {
	e := event.Envelope{Stream: "thread/thr_1", Seq: 7, Time: start, Runtime: "rt_1", Version: ty.Version,
		IDs: belay.IDs{Session: "sess_1"}, Data: payloadOf(ty)}
	for _, need := range ty.Needs {
		give(&e, need)
	}
	return e
}

func give(e *event.Envelope, need string) {
	switch need {
	case "refs":
		e.Refs = map[string]belay.Ref{"input": {Digest: belay.DigestOf(nil), Size: 3, Media: "text/plain"}}
		return
	case "benchmark", "comparison":
		return // a filled payload has them
	}
	v := reflect.ValueOf(&e.IDs).Elem()
	for i, f := range fieldsOf(v.Type()) {
		if f.JSON == need {
			v.Field(i).SetString("id-of." + need)
		}
	}
}

// eachType runs a claim for every line of the table.
func eachType(t *testing.T, claim func(t *testing.T, ty event.Type)) {
	t.Helper()
	for _, ty := range event.Types() {
		t.Run(ty.Name, func(t *testing.T) { claim(t, ty) })
	}
}
