package tokens

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

func answer(i int) []belay.Message {
	id := belay.CallID(fmt.Sprintf("call_%d", i))
	return []belay.Message{
		{Role: belay.RoleAssistant, Parts: []belay.Part{{Text: "I look."}, {Call: &belay.ToolCall{ID: id, Name: "read", Args: json.RawMessage(`{"path":"a.go"}`)}}}},
		{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: id, Text: strings.Repeat("package a ", i%50)}}}},
	}
}

func TestEveryPartCounts(t *testing.T) {
	with := func(p ...belay.Part) int64 {
		return Profile{}.Request(model.Request{Messages: []belay.Message{{Role: belay.RoleUser, Parts: p}}})
	}
	empty := with()
	sized := func(n int64) *belay.Attachment { return &belay.Attachment{Ref: belay.Ref{Size: n}} }
	for name, c := range map[string]struct {
		part  belay.Part
		least int64
		most  int64
	}{
		"text":        {belay.Part{Text: "four words of text"}, 3, 6},
		"call":        {belay.Part{Call: &belay.ToolCall{Name: "read", Args: json.RawMessage(`{"path":"a"}`)}}, 14, 20},
		"signed call": {belay.Part{Call: &belay.ToolCall{Name: "r", Echo: &belay.Echo{Data: make([]byte, 4000)}}}, 1000, 1020},
		"result":      {belay.Part{Result: &belay.ToolResult{Text: "done"}}, 7, 9},
		"echo":        {belay.Part{Echo: &belay.Echo{By: "x", Data: make([]byte, 400)}}, 100, 102},
		"picture":     {belay.Part{Image: sized(5)}, 2500, 2500},
		"document":    {belay.Part{File: sized(5)}, 2000, 2000},
		"longer one":  {belay.Part{File: sized(100_000)}, 10_000, 10_000},
		"scan":        {belay.Part{File: sized(1 << 30)}, 100_000, 100_000},
	} {
		if got := with(c.part) - empty; got < c.least || got > c.most {
			t.Errorf("%s: %d tokens", name, got)
		}
	}
}

// What facts say of the parts of a request is, put together, what counting the
// request gives, but for the vocabulary.
func TestFactsCountWhatARequestHas(t *testing.T) {
	r := model.Request{System: strings.Repeat("Work with care. ", 50), Tools: []model.ToolDef{{Name: "read", Doc: "Reads a file of the workspace.", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []belay.Message{belay.Text(belay.RoleUser, "Find out where the budget is spent.")}}
	sum := Instructions(r.System, r.Tools) + Text("Find out where the budget is spent.")
	for i := range 100 {
		r.Messages = append(r.Messages, answer(i)...)
		for _, m := range answer(i) {
			sum += Message(m)
		}
	}
	if got := (Profile{}).Request(r); 10*sum < 8*got || 10*sum > 12*got {
		t.Errorf("%d tokens in parts, %d as a whole", sum, got)
	}
	if one, more := (Profile{}).Request(r), (Profile{Factor: 1.5}).Request(r); 2*more < 3*one || 2*more > 3*one+2 {
		t.Errorf("%d tokens, and %d by a factor of 1.5", one, more)
	}
}

// The factor is not on what has a rule of its own: the whole is multiplied by it.
func TestPicturesCountByTheirSize(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 280, 560))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p       Profile
		media   string
		content []byte
		want    int64
	}{
		{Profile{Pictures: "patches28"}, "image/png", b.Bytes(), perMessage + 200},
		{Profile{Pictures: "patches28", Factor: 1.5}, "image/png", b.Bytes(), perMessage + 134},
		{Profile{Pictures: "patches28"}, "image/png", []byte("none"), perMessage + 1600},
		{Profile{Factor: 2}, belay.MediaPDF, make([]byte, 100_000), perMessage + 5000},
		{Profile{Factor: 2}, "text/plain", []byte("hello world"), Text("hello world")},
	} {
		if got := c.p.Attached(belay.Ref{Media: c.media, Size: int64(len(c.content))}, c.content); got != c.want {
			t.Errorf("%+v, %s: %d tokens, want %d", c.p, c.media, got, c.want)
		}
	}
}

func BenchmarkText(b *testing.B) {
	text := strings.Repeat("one step more of func main() { return }\n", 800)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Text(text)
	}
}
