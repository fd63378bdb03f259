package event_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/event/eventtest"
	"github.com/belay-run/belay/event/testdata"
)

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTableIsTheStandardsListInItsOrder(t *testing.T) {
	b, err := testdata.AgentRuntime.ReadFile("agentruntime-0.4.0/agentruntime-event.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Type struct{ Enum []string }
		}
	}
	if err := json.Unmarshal(b, &schema); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ty := range event.Types() {
		names = append(names, ty.Name)
	}
	if diff := cmp.Diff(names, schema.Properties.Type.Enum); diff != "" || len(names) != 120 {
		t.Errorf("%d types; -table +standard:\n%s", len(names), diff)
	}
}

func TestOnlyWhatFlowsIsACheckpoint(t *testing.T) {
	var got []string
	for _, ty := range event.Types() {
		if ty.Checkpoint {
			got = append(got, ty.Name)
		}
	}
	want := []string{"model.delta", "reasoning.delta", "tool.progress", "process.output"}
	if !slices.Equal(got, want) {
		t.Errorf("checkpoints are %v, want %v", got, want)
	}
}

func TestEveryPayloadHasOneLine(t *testing.T) {
	seen := map[reflect.Type]string{}
	for _, ty := range event.Types() {
		if other, twice := seen[event.GoType(ty)]; twice {
			t.Errorf("%s and %s have the same payload %s", other, ty.Name, event.GoType(ty))
		}
		seen[event.GoType(ty)] = ty.Name
		if got := event.TypeOf(payloadOf(ty)); got != ty.Name {
			t.Errorf("the payload of %s calls itself %q", ty.Name, got)
		}
	}
}

// Guarantee: O14.
func TestEveryTypeIsValidUnderBothSchemas(t *testing.T) {
	eachType(t, func(t *testing.T, ty event.Type) {
		e := sample(ty)
		if err := eventtest.Check(e); err != nil {
			t.Error(err)
		}
		eventtest.Validate(t, mustJSON(t, e))
	})
}

func TestTheStrictProfileRefusesAFactThatLacksANeed(t *testing.T) {
	eachType(t, func(t *testing.T, ty event.Type) {
		for _, need := range ty.Needs {
			var m map[string]json.RawMessage
			if err := json.Unmarshal(mustJSON(t, sample(ty)), &m); err != nil {
				t.Fatal(err)
			}
			delete(m, need)
			if err := eventtest.Invalid(mustJSON(t, m)); err == nil || !strings.Contains(err.Error(), need) {
				t.Errorf("without %s: the profile says %v", need, err)
			}
		}
	})
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	eachType(t, func(t *testing.T, ty event.Type) {
		bare := event.Envelope{Data: reflect.Zero(event.GoType(ty)).Interface().(event.Payload)}
		err := eventtest.Check(bare)
		want := ty.Name + " lacks " + strings.Join(append([]string{"stream", "sequence", "timestamp", "runtimeId", "sessionId"}, ty.Needs...), ", ")
		if err == nil || err.Error() != want {
			t.Errorf("Check says %v, want %s", err, want)
		}
		if err := eventtest.Check(sample(ty)); err != nil {
			t.Errorf("a whole fact: %v", err)
		}
	})
	if err := eventtest.Check(event.Envelope{}); err == nil {
		t.Error("a fact without payload passes")
	}
}

func TestEveryTypeSurvivesTheRoundTrip(t *testing.T) {
	eachType(t, func(t *testing.T, ty event.Type) {
		zero := reflect.Zero(event.GoType(ty)).Interface().(event.Payload)
		for _, want := range []event.Payload{payloadOf(ty), zero} {
			raw, err := event.Encode(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := event.Decode(ty.Name, ty.Version, raw)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("from %s:\ngot  %+v\nwant %+v", raw, got, want)
			}
			e := sample(ty)
			e.Data, e.Requires = want, 2
			new(filler).fill(reflect.ValueOf(&e.IDs).Elem())
			var back event.Envelope
			if err := json.Unmarshal(mustJSON(t, e), &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, e) {
				t.Errorf("the envelope:\ngot  %+v\nwant %+v", back, e)
			}
		}
	})
}

// Guarantee: O15.
func TestUnknownIsCarriedByteForByte(t *testing.T) {
	tests := []struct {
		name, typ string
		version   int
		raw       string
	}{
		{"a type of the future", "star.born", 1, `{ "b":1.50, "a":"<\u00e9>" , "b":2}`},
		{"a version of the future", "turn.started", 9, "{\"kind\":\t\"user\"}"},
		{"numbers that no float holds", "star.born", 3, `{"n":12345678901234567890.10}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := event.Decode(tt.typ, tt.version, []byte(tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := p.(event.Unknown); !ok || event.TypeOf(p) != tt.typ {
				t.Fatalf("got %#v", p)
			}
			if raw, err := event.Encode(p); err != nil || string(raw) != tt.raw {
				t.Errorf("got %s, %v; want %s", raw, err, tt.raw)
			}
			e := event.Envelope{Stream: "thread/t", Seq: 1, Time: start, Version: tt.version, Data: p}
			var back event.Envelope
			if err := json.Unmarshal(mustJSON(t, e), &back); err != nil {
				t.Fatal(err)
			}
			var tight bytes.Buffer
			if err := json.Compact(&tight, []byte(tt.raw)); err != nil {
				t.Fatal(err)
			}
			got := unescapeHTML(string(back.Data.(event.Unknown).Raw))
			if got != tight.String() || back.Version != tt.version {
				t.Errorf("the envelope carries %s in version %d, want %s in %d", got, back.Version, tight.String(), tt.version)
			}
		})
	}
}

// unescapeHTML undoes what json.Marshal adds around every Marshaler.
func unescapeHTML(s string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(s)
}

func TestDecodeCopiesWhatItKeeps(t *testing.T) {
	raw := []byte(`{"a":1}`)
	p, err := event.Decode("star.born", 1, raw)
	if err != nil {
		t.Fatal(err)
	}
	raw[1] = 'X'
	if got := string(p.(event.Unknown).Raw); got != `{"a":1}` {
		t.Errorf("the payload changed with the buffer: %s", got)
	}
}

func TestANewerBenchmarkFactKeepsItsObjects(t *testing.T) {
	ty, _ := event.Lookup("benchmark.comparison.completed")
	raw, err := event.Encode(payloadOf(ty))
	if err != nil {
		t.Fatal(err)
	}
	e := sample(ty)
	e.Version = ty.Version + 1
	if e.Data, err = event.Decode(ty.Name, e.Version, raw); err != nil {
		t.Fatal(err)
	}
	eventtest.Validate(t, mustJSON(t, e))
}

func TestDecodeRefusesWhatIsNoPayload(t *testing.T) {
	tests := []struct{ name, typ, raw string }{
		{"no type", "", `{}`},
		{"nothing", "turn.started", ``},
		{"null", "turn.started", `null`},
		{"a list", "star.born", `[]`},
		{"a wrong field", "turn.started", `{"limits":3}`},
		{"half an object", "turn.started", `{"kind":`},
	}
	for _, tt := range tests {
		if p, err := event.Decode(tt.typ, 1, []byte(tt.raw)); err == nil {
			t.Errorf("%s: got %#v", tt.name, p)
		}
	}
}

func TestEncodeRefusesWhatIsInNoTable(t *testing.T) {
	for _, p := range []event.Payload{nil, &event.TurnStarted{}} {
		if raw, err := event.Encode(p); err == nil {
			t.Errorf("%T became %s", p, raw)
		}
		if _, err := json.Marshal(event.Envelope{Stream: "thread/t", Seq: 1, Data: p}); err == nil {
			t.Errorf("an envelope with %T has JSON", p)
		}
	}
}

func TestAnEventIDMustFollowFromItsPlace(t *testing.T) {
	ty, _ := event.Lookup("turn.submitted")
	b := mustJSON(t, sample(ty))
	var e event.Envelope
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	moved := bytes.Replace(b, []byte(`"sequence":7`), []byte(`"sequence":8`), 1)
	if err := json.Unmarshal(moved, &e); err == nil || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("a moved fact is read: %v", err)
	}
}

func TestTimesAreUTC(t *testing.T) {
	ty, _ := event.Lookup("turn.submitted")
	e := sample(ty)
	e.Time = start.In(time.FixedZone("east", 2*3600))
	b := mustJSON(t, e)
	if !bytes.Contains(b, []byte(`"timestamp":"2026-03-01T12:00:00Z"`)) {
		t.Errorf("written as %s", b)
	}
	east := bytes.Replace(b, []byte("12:00:00Z"), []byte("14:00:00+02:00"), 1)
	var back event.Envelope
	if err := json.Unmarshal(east, &back); err != nil || back.Time != start {
		t.Errorf("read as %v, %v; want %v", back.Time, err, start)
	}
}

func TestEmittedRefusesDrafts(t *testing.T) {
	for _, ty := range event.Types() {
		probe := &recorder{TB: t}
		eventtest.Emitted(probe, sample(ty))
		if probe.failed == ty.Stable {
			t.Errorf("%s, stable %v: the check failed %v", ty.Name, ty.Stable, probe.failed)
		}
	}
}

// recorder is a test that only notes that it failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestTheTableCantBeChangedFromOutside(t *testing.T) {
	event.Types()[0] = event.Type{}
	if event.Types()[0].Name != "session.created" {
		t.Error("a caller changed the table")
	}
}

// What is empty costs no bytes: fields that are often empty are left out then.
func TestEmptyFieldsAreLeftOut(t *testing.T) {
	always := map[string]bool{ // their emptiness says something
		"ToolCatalogResolved.Tools": true, "ActionRequired.Decisions": true, "ProcessStarted.Argv": true,
		"ActionRequired.Until": true, "PermissionRequested.Until": true,
	}
	for _, ty := range event.Types() {
		names := map[string]bool{}
		for _, f := range fieldsOf(event.GoType(ty)) {
			if names[f.JSON] {
				t.Errorf("%s: two fields are called %q", ty.Name, f.JSON)
			}
			names[f.JSON] = true
			switch k := f.Type.Kind(); {
			case f.JSON == "" || strings.ToLower(f.JSON[:1]) != f.JSON[:1]:
				t.Errorf("%s: %s has no camelCase name", ty.Name, f.Go)
			case k == reflect.Struct && f.Tag == "omitempty":
				t.Errorf("%s: omitempty does nothing for a struct; use omitzero", f.Go)
			case (k == reflect.Pointer || k == reflect.Slice || k == reflect.Map || f.Type == reflect.TypeFor[time.Time]()) && !f.Optional && !always[f.Go]:
				t.Errorf("%s is written when it is empty", f.Go)
			}
		}
	}
}

func TestNoIDIsWrittenWhenEmpty(t *testing.T) {
	b := mustJSON(t, belay.IDs{})
	if string(b) != "{}" {
		t.Errorf("empty ids are written as %s", b)
	}
}

func TestTextIsWrittenWithoutHTMLEscapes(t *testing.T) {
	raw, err := event.Encode(event.RuntimeWarning{Code: "ODD", Message: "a <b> & c"})
	if want := `{"code":"ODD","message":"a <b> & c"}`; err != nil || string(raw) != want {
		t.Errorf("got %s, %v; want %s", raw, err, want)
	}
}
