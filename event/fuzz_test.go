package event_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/belay-run/belay/event"
)

// Whatever stands in a log, reading it ends with a payload or an error; what is
// unknown is given back as it was, and what is known means the same when it is
// written and read again.
func FuzzDecode(f *testing.F) {
	for _, ty := range event.Types() {
		raw, err := event.Encode(payloadOf(ty))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(ty.Name, ty.Version, raw)
	}
	f.Add("star.born", 0, []byte(" {\"a\": 1e400, \"a\": \"\xff\"}"))
	f.Add("turn.started", -3, []byte(`{"limits":null}`))
	f.Add("turn.started", 99, []byte(`{`))
	f.Fuzz(func(t *testing.T, name string, version int, raw []byte) {
		p, err := event.Decode(name, version, raw)
		if err != nil {
			return
		}
		again, err := event.Encode(p)
		if err != nil {
			t.Fatalf("%s was read and can't be written: %v", name, err)
		}
		if _, unknown := p.(event.Unknown); unknown {
			if !bytes.Equal(again, raw) {
				t.Fatalf("unknown %s: got %q, want %q", name, again, raw)
			}
			return
		}
		ty, _ := event.Lookup(name)
		q, err := event.Decode(name, ty.Version, again)
		if err != nil {
			t.Fatalf("%s can't be read again: %v\n%s", name, err, again)
		}
		third, err := event.Encode(q)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%s: second %s, third %s, %v", name, again, third, err)
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	for _, ty := range event.Types() {
		b, err := json.Marshal(sample(ty))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	future := sample(event.Types()[0])
	future.Data = event.Unknown{Type: "star.born", Raw: []byte(`{"a":1.0}`)}
	b, err := json.Marshal(future)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var e, back event.Envelope
		if json.Unmarshal(b, &e) != nil {
			return
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("read and can't be written: %v", err)
		}
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("can't be read again: %v\n%s", err, again)
		}
		third, err := json.Marshal(back)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("second %s\nthird  %s, %v", again, third, err)
		}
		if e.ID() != back.ID() || !reflect.DeepEqual(e.IDs, back.IDs) {
			t.Fatalf("ids changed: %+v, %+v", e, back)
		}
	})
}
