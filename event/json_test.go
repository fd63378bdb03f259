package event_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// TestAnEnvelopeIsWrittenAsTheLibraryWould compares the hand-written form with
// what encoding/json makes of the same fields, for facts of every type and for
// texts of every kind.
func TestAnEnvelopeIsWrittenAsTheLibraryWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[a-z]+_[0-9a-f-]{0,36}`), rapid.String(), rapid.StringMatching(`[\x00-\x20"\\<>&\x{2028}]{0,10}`),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }))
		e := event.Envelope{Stream: belay.StreamID(text.Draw(t, "stream")), Seq: rapid.Int64().Draw(t, "seq"), Runtime: belay.RuntimeID(text.Draw(t, "runtime")),
			Time:    time.UnixMicro(rapid.Int64Range(-1<<57, 1<<58).Draw(t, "time")),
			Version: rapid.IntRange(0, 3).Draw(t, "version"), Requires: rapid.IntRange(0, 2).Draw(t, "requires")}
		for i := range reflect.TypeFor[belay.IDs]().NumField() {
			if rapid.Bool().Draw(t, "has") {
				reflect.ValueOf(&e.IDs).Elem().Field(i).SetString(text.Draw(t, "id"))
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "refs") {
			if e.Refs == nil {
				e.Refs = map[string]belay.Ref{}
			}
			e.Refs[text.Draw(t, "role")] = belay.Ref{Digest: belay.Digest(text.Draw(t, "digest")), Size: rapid.Int64().Draw(t, "size"), Media: text.Draw(t, "media")}
		}
		switch ty := rapid.SampledFrom(event.Types()).Draw(t, "type"); rapid.IntRange(0, 3).Draw(t, "payload") {
		case 0: // of a type, or a version, that isn't known
			raw := rapid.SampledFrom([]string{"{}", `{ "a" : "b c" , "benchmark": {"benchmarkId": "x <"} }`, "{\n\"u\":\"\u2028\"}"}).Draw(t, "raw")
			e.Data = event.Unknown{Type: rapid.SampledFrom([]string{ty.Name, "vendor.thing", "benchmark.newer"}).Draw(t, "unknown"), Raw: []byte(raw)}
		default:
			e.Data = payloadOf(ty)
		}
		got, err := e.MarshalJSON()
		want, wantErr := event.LibraryJSON(e)
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("got  %s, %v\nwant %s, %v", got, err, want, wantErr)
		}
		if err == nil && !json.Valid(got) {
			t.Fatalf("no JSON: %s", got)
		}
	})
}
