package sse

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const limit = 8 << 20

// frame is an event and the id of the stream behind it.
type frame struct{ kind, id, data string }

func decoded(r io.Reader) (all []frame, d *Reader, err error) {
	d = NewReader(r, limit)
	for {
		e, err := d.Next()
		if err != nil {
			return all, d, err
		}
		all = append(all, frame{e.Name, d.ID, string(e.Data)})
	}
}

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []frame
	}{
		"one":                         {"data: a\n\n", []frame{{data: "a"}}},
		"two lines":                   {"data: a\ndata: b\n\n", []frame{{data: "a\nb"}}},
		"two lines, the last empty":   {"data: a\ndata\n\n", []frame{{data: "a\n"}}},
		"no space":                    {"data:a\n\n", []frame{{data: "a"}}},
		"two spaces":                  {"data:  a\n\n", []frame{{data: " a"}}},
		"returns":                     {"event: e\r\ndata: a\r\n\r\ndata: b\r\rdata: c\n\r\n", []frame{{kind: "e", data: "a"}, {data: "b"}, {data: "c"}}},
		"a mark at the beginning":     {"\ufeffdata: a\n\n", []frame{{data: "a"}}},
		"a comment":                   {": beat\n\ndata: a\n: more\ndata: b\n\n", []frame{{data: "a\nb"}}},
		"an id stays":                 {"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []frame{{id: "1", data: "a"}, {id: "1", data: "b"}, {data: "c"}}},
		"an id with a zero":           {"id: 1\ndata: a\n\nid: 2\x00\ndata: b\n\n", []frame{{id: "1", data: "a"}, {id: "1", data: "b"}}},
		"an id without data":          {"id: 7\n\ndata: a\n\n", []frame{{id: "7", data: "a"}}},
		"a type without data":         {"event: x\n\ndata: a\n\n", []frame{{data: "a"}}},
		"unknown fields":              {"foo: bar\n data: no\ndata: a\n\n", []frame{{data: "a"}}},
		"no end":                      {"data: a\n\ndata: b\n", []frame{{data: "a"}}},
		"empty data":                  {"data\n\n", []frame{{data: ""}}},
		"a colon in the data":         {"data: a: b\n\n", []frame{{data: "a: b"}}},
		"nothing":                     {"\n\n\n", nil},
		"the same field again counts": {"event: a\nevent: b\ndata: c\n\n", []frame{{kind: "b", data: "c"}}},
	} {
		got, _, err := decoded(strings.NewReader(c.in))
		if !reflect.DeepEqual(got, c.want) || !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	_, d, _ := decoded(strings.NewReader("retry: 1500\nretry: -3\nretry: 99999999999\nretry: +7\nretry:\n\n"))
	if d.Retry != 1500*time.Millisecond {
		t.Errorf("retry %v", d.Retry)
	}
	for name, in := range map[string]string{"a line": "data: " + strings.Repeat("x", limit), "many lines": strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 9)} {
		if _, _, err := decoded(strings.NewReader(in)); !errors.Is(err, ErrTooLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// endless is a stream without a line's end.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.n += int64(len(p))
	return len(p), nil
}

func TestAStreamWithoutEndsIsGivenUp(t *testing.T) {
	e := &endless{}
	if _, _, err := decoded(e); !errors.Is(err, ErrTooLong) || e.n > 2*limit {
		t.Errorf("%v after %d bytes", err, e.n)
	}
}

// An event is there as soon as its last CR is.
func TestAnEventWaitsForNothingBehindIt(t *testing.T) {
	r, w := io.Pipe()
	go func() { io.WriteString(w, "data: a\r\r") }()
	if e, err := NewReader(r, limit).Next(); err != nil || string(e.Data) != "a" {
		t.Errorf("%q %v", e.Data, err)
	}
}

func FuzzDecoder(f *testing.F) {
	for _, s := range []string{"", "id: 1\nevent: a\ndata: {}\n\n", "data: a\r\n\r\ndata: b\r\r", "\ufeffdata\n\n", ": x\nretry: 5\n\n", "data: a\n\ndat"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		all, d, err := decoded(bytes.NewReader(in))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		slow, e, _ := decoded(iotest.OneByteReader(bytes.NewReader(in)))
		if !reflect.DeepEqual(all, slow) || d.Retry != e.Retry {
			t.Fatalf("byte by byte it is %+v, at once %+v", slow, all)
		}
		var again bytes.Buffer
		for _, fr := range all {
			if strings.Contains(fr.data, "\r") || strings.ContainsAny(fr.kind+fr.id, "\r\n") {
				t.Fatalf("a line end in %+v", fr)
			}
			again.WriteString("id: " + fr.id + "\nevent: " + fr.kind + "\n")
			for line := range strings.SplitSeq(fr.data, "\n") {
				again.WriteString("data: " + line + "\n")
			}
			again.WriteByte('\n')
		}
		if back, _, _ := decoded(&again); !reflect.DeepEqual(all, back) {
			t.Fatalf("written again it is %+v, was %+v", back, all)
		}
	})
}
