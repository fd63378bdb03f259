package modeltest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// Far is an endpoint below a path of a server that is h, for as long as a test
// runs. Its key is sk-secret.
func Far(t *testing.T, h http.HandlerFunc, path string) wire.Endpoint {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	base, err := netdial.ParseBase(srv.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return wire.Endpoint{Name: "far", Base: base, Key: "sk-secret", Client: client}
}

// Events answers with events, whose lines end as end says.
func Events(w http.ResponseWriter, end string, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprintf(w, "data: %s%s%s", e, end, end)
		w.(http.Flusher).Flush()
	}
}

// Sent is what a request's body says, which couldn't be made if err says so.
func Sent(t *testing.T, b *wire.Body, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(b.Reader()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Heard is an answer in one line: text, reasoning in brackets, calls, images and
// the stop, up to the error that ended it; and its chunks.
func Heard(t *testing.T, p model.Provider, r model.Request) (string, []model.Chunk, error) {
	t.Helper()
	var chunks []model.Chunk
	var b strings.Builder
	for c, err := range p.Stream(t.Context(), r) {
		if err != nil {
			return b.String(), chunks, err
		}
		chunks = append(chunks, c)
		b.WriteString(c.Text)
		switch {
		case c.Reasoning != "":
			fmt.Fprintf(&b, "[%s]", c.Reasoning)
		case c.Call != nil:
			fmt.Fprintf(&b, ";%s %s %s", c.Call.ID, c.Call.Name, c.Call.Args)
		case c.Image != nil:
			fmt.Fprintf(&b, ";%s %s", c.Image.Media, c.Image.Data)
		case c.Stop != "":
			fmt.Fprintf(&b, ";%s", c.Stop)
		}
	}
	return b.String(), chunks, nil
}

// Grow asks fifty times in a conversation that grows: some requests have a note,
// an effort or a forced tool, some have messages that were read anew, for which
// forget gives the provider a memory of so many bytes.
func Grow(t *testing.T, p model.Provider, r model.Request, forget func(size int)) {
	t.Helper()
	for i := range 50 {
		r.Messages = append(r.Messages, belay.Text(belay.RoleUser, fmt.Sprint("question ", i)))
		r.Note, r.ForceTool, r.Effort = "", "", ""
		switch i % 5 {
		case 1:
			r.Note = fmt.Sprint("note ", i)
		case 2:
			r.Effort = "low"
		case 3:
			r.ForceTool = "read"
		}
		if i%7 == 6 { // read anew from the log, or evicted
			forget(i % 2 * 300)
			r.Messages = slices.Clone(r.Messages)
		}
		if _, _, err := Heard(t, p, r); err != nil {
			t.Fatal(err)
		}
		if r.Note != "" {
			r.Messages = append(r.Messages, belay.Text(belay.RoleUser, r.Note))
		}
		r.Messages = append(r.Messages, belay.Text(belay.RoleAssistant, fmt.Sprint("answer ", i)))
	}
}

// Decoded gives a decoder each line of data as an event, and fails the test unless
// the answer has one end.
func Decoded[E any](t *testing.T, data []byte, decoder func(*wire.Out) wire.Decoder[E]) (chunks []model.Chunk) {
	t.Helper()
	ended := false
	out := &wire.Out{End: &wire.Endpoint{Name: "far"}, Yield: func(c model.Chunk, err error) bool {
		if ended {
			t.Fatal("something came after the end")
		}
		chunks = append(chunks, c)
		ended = c.Stop != "" || err != nil
		return true
	}}
	lines := bytes.ReplaceAll(data, []byte("\n"), []byte("\n\ndata: "))
	wire.Decode(io.MultiReader(strings.NewReader("data: "), bytes.NewReader(lines), strings.NewReader("\n\n")), out, decoder(out))
	if !ended {
		t.Error("the stream has no end")
	}
	return chunks
}
