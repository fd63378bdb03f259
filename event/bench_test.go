package event_test

import (
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// typical is the fact a log has most of: the result of a call.
var typical = event.ToolResult{
	Name: "read_file", Attempt: 1, Digest: belay.DigestOf([]byte("x")), Millis: 12,
	Output: belay.Content{Text: "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n"},
	Files:  []event.FileSeen{{Path: "cmd/hello/main.go", Digest: string(belay.DigestOf([]byte("x")))}},
}

func BenchmarkEncode(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.Encode(typical); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	raw, err := event.Encode(typical)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("table", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := event.Decode("tool.result", 1, raw); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plain", func(b *testing.B) { // what the table is measured against
		b.ReportAllocs()
		for b.Loop() {
			var p event.ToolResult
			if err := json.Unmarshal(raw, &p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEnvelope(b *testing.B) {
	e := event.Envelope{Stream: "thread/thr_1", Seq: 7, Time: start, Runtime: "rt_1", Version: 1,
		IDs: belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Step: "step_1", Call: "call_1"}, Data: typical}
	line, err := json.Marshal(e)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("marshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(e); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var back event.Envelope
			if err := json.Unmarshal(line, &back); err != nil {
				b.Fatal(err)
			}
		}
	})
}
