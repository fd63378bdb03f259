package storetest

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// everyEvent is an envelope for each type of the table with every field set,
// and the odd ones: empty, unknown, of a later version, with all identities.
func everyEvent(l *lab, b *store.Batch) (all []event.Envelope) {
	base := event.Envelope{Time: l.env.Now(), Runtime: l.Runtime(), IDs: belay.IDs{Session: b.Session, Thread: belay.ThreadID(b.Stream.ID())}}
	add := func(change func(*event.Envelope)) {
		e := base
		change(&e)
		all = append(all, e)
	}
	n := 0
	for _, t := range event.Types() {
		zero, err := event.Decode(t.Name, t.Version, []byte("{}"))
		l.must(err)
		full := reflect.New(reflect.TypeOf(zero)).Elem()
		fill(full, &n)
		add(func(e *event.Envelope) { e.Data = full.Interface().(event.Payload) })
		add(func(e *event.Envelope) { e.Data = zero })
	}
	add(func(e *event.Envelope) {
		e.Data, e.IDs = event.Unknown{Type: "later.than.this", Raw: []byte(`{"z":1, "a" : [1.50,"é"]}`)}, belay.IDs{}
	})
	add(func(e *event.Envelope) {
		e.Data, e.Version, e.Requires = event.Unknown{Type: all[0].Type(), Raw: []byte(`{"from":"the future"}`)}, 99, 3
	})
	add(func(e *event.Envelope) {
		e.Data = event.RuntimeWarning{}
		e.Refs = map[string]belay.Ref{"output": {Digest: belay.DigestOf([]byte("o")), Size: 12, Media: "text/plain"}, "odd": {Digest: "no digest"}}
		fill(reflect.ValueOf(&e.IDs).Elem(), &n)
	})
	add(func(e *event.Envelope) { // identities of other streams, and others' own
		e.Data, e.Version = event.RuntimeWarning{}, 1
		e.IDs = belay.IDs{Session: "sess_other", Thread: "thr_other", Task: belay.TaskID(belay.NewID(belay.PrefixTask)),
			Turn: belay.TurnID(belay.NewID(belay.PrefixTurn)), Step: "STEP_00000000-0000-0000-0000-00000000000A", Request: "my:own.id"}
	})
	return all
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	digestType = reflect.TypeFor[belay.Digest]()
)

// fill sets everything that can be set to something that JSON keeps.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Type() {
	case timeType:
		v.Set(reflect.ValueOf(time.Date(2026, 2, 3, 4, 5, 6, *n*1000, time.UTC)))
		return
	case rawType:
		v.SetBytes([]byte(`{"n":` + number("", *n) + `}`))
		return
	case digestType:
		v.SetString(string(belay.DigestOf([]byte{byte(*n)})))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(number("text <&> é ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n % 200))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(number("any ", *n)))
	}
}
