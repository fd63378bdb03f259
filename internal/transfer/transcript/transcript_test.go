package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/transfer/transcript"
)

// written is a conversation as one of our own transcripts.
func written(t testing.TB, all []transcript.Message) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := transcript.WriteHeader(&out, transcript.Header{Session: "sess_1", Title: "T", Workspace: "/w", Model: "m"}); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		l := transcript.Line{Thread: "thr_1", Turn: belay.TurnID(fmt.Sprint("turn_", m.Turn)), Time: m.Time, Role: m.Role}
		for _, p := range m.Parts {
			part := transcript.LinePart{Text: p.Text, Call: p.Call, Result: p.Result}
			if p.Image != nil {
				part.Image = transcript.Picture(p.Image.Name, p.Image.Media, p.Image.Data)
			}
			l.Parts = append(l.Parts, part)
		}
		if err := transcript.WriteLine(&out, l); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// TestATranscriptReadsItsOwnOutput: every sample, written as a transcript of
// ours, reads the same.
// Guarantee: S45.
func TestATranscriptReadsItsOwnOutput(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.jsonl")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, all, err := read(t, raw, transcript.Detect(t.Context(), bytes.NewReader(raw), int64(len(raw))))
		if err != nil {
			t.Fatal(err)
		}
		c, again, err := read(t, written(t, all), transcript.Own)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if i < len(again) && !reflect.DeepEqual(all[i], again[i]) {
				t.Errorf("%s: message %d is %+v, was %+v", file, i, again[i], all[i])
			}
		}
		if len(again) != len(all) || len(c.Left()) != 0 {
			t.Errorf("%s: %d messages, were %d; left %v", file, len(again), len(all), c.Left())
		}
		if a := c.About; a.Session != "sess_1" || a.Title != "T" || a.Workspace != "/w" || a.Model != "m" || a.Format != "transcript" {
			t.Errorf("%s: about %+v", file, a)
		}
	}
}

// TestMessagesCanBeReadTwice: the second reading gives the same, and counts the
// same losses.
func TestMessagesCanBeReadTwice(t *testing.T) {
	raw, err := os.ReadFile("testdata/claude.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	c, first, err := read(t, raw, transcript.Claude)
	if err != nil {
		t.Fatal(err)
	}
	left := fmt.Sprint(c.Left())
	var second []transcript.Message
	for m, err := range c.Messages(name) {
		if err != nil {
			t.Fatal(err)
		}
		second = append(second, m)
	}
	if !reflect.DeepEqual(first, second) || fmt.Sprint(c.Left()) != left {
		t.Errorf("the second reading differs: %v, was %v", c.Left(), left)
	}
	for range c.Messages(name) {
		break // whoever has seen enough may stop
	}
}

// TestWhatCannotBeReadIsTold with its line and what to do.
// Guarantee: S45.
func TestWhatCannotBeReadIsTold(t *testing.T) {
	for _, c := range []struct {
		what, file string
		format     transcript.Format
		where      string
		text       string
	}{
		{"nothing", "", transcript.Claude, "", "it has no conversation"},
		{"no conversation", `{"type":"summary","summary":"x","leafUuid":"y"}`, transcript.Claude, "", "it has no conversation"},
		{"no header", "\n\n" + `{"type":"message"}`, transcript.OpenClaw, "line 3", "the first line is no header of a session"},
		{"only a header", `{"type":"session","id":"x"}`, transcript.OpenClaw, "", "it has no conversation"},
		{"a header that isn't one", "{", transcript.OpenClaw, "line 1", "the header can't be read"},
		{"no ids", `{"type":"session","version":3,"id":"x"}` + "\n" + `{"type":"message","message":{"role":"user","content":"x"}}`, transcript.OpenClaw,
			"line 2", "the entries have no ids, as they should have in this version"},
		{"a loop", `{"type":"session","version":3,"id":"x"}` + "\n" + `{"type":"message","id":"a","parentId":"a"}`, transcript.OpenClaw,
			"line 2", "the entry comes before itself"},
		{"another format", `{"format":"else"}`, transcript.Own, "line 1", "the first line is no header of a transcript"},
		{"a header alone", `{"format":"belay-transcript","version":1,"session":"s"}`, transcript.Own, "", "it has no conversation"},
	} {
		_, _, err := read(t, []byte(c.file), c.format)
		e, ok := err.(*belay.Error)
		if !ok || e.Code != belay.CodeBadTranscript || e.Where != c.where || e.Message != c.text || e.Hint == "" {
			t.Errorf("%s: %#v", c.what, err)
		}
	}
	_, _, err := read(t, []byte(`{"format":"belay-transcript","version":9,"session":"s"}`), transcript.Own)
	if belay.CodeOf(err) != belay.CodeRequires {
		t.Errorf("a newer version: %v", err)
	}
	if _, _, err := read(t, nil, "word"); belay.CodeOf(err) != belay.CodeUsage {
		t.Errorf("no format: %v", err)
	}
}

// TestALineHasALimit: a file that is one endless line isn't read into memory.
// Guarantee: S45.
func TestALineHasALimit(t *testing.T) {
	long := bytes.Repeat([]byte(" "), 65<<20)
	copy(long, `{"type":"user","uuid":"u","sessionId":"s"`)
	_, _, err := read(t, append([]byte("\n"), long...), transcript.Claude)
	if e, ok := err.(*belay.Error); !ok || e.Code != belay.CodeBadTranscript || e.Where != "line 2" {
		t.Errorf("told %v", err)
	}
}

// TestFieldsOfOtherTypesAreAsGoodAsAbsent: a file may have them as it likes.
func TestFieldsOfOtherTypesAreAsGoodAsAbsent(t *testing.T) {
	_, all, err := read(t, []byte(strings.Join([]string{
		`{"type":"user","uuid":"u","parentUuid":7,"sessionId":["s"],"timestamp":12,"cwd":{},"message":{"id":1,"content":"hello"}}`,
		`{"type":"assistant","uuid":"a","parentUuid":"u","timestamp":"yesterday","message":{"id":"m","content":[{"type":"text","text":"hi"},7,{"type":"tool_use","id":"t","name":"","input":"{\"a\":1}"}]}}`,
		`[1,2]`, `"x"`, `null`, ``,
	}, "\n")), transcript.Claude)
	if err != nil || len(all) == 0 || all[0].Parts[0].Text != "hello" || !all[0].Time.Equal(time.Time{}) {
		t.Fatalf("%+v, %v", all, err)
	}
	valid(t, all)
}

// TestAFileOfASubAgentIsItsConversation: there all lines are beside the main one.
func TestAFileOfASubAgentIsItsConversation(t *testing.T) {
	c, all, err := read(t, []byte(strings.Join([]string{
		`{"type":"user","uuid":"u","sessionId":"s","isSidechain":true,"message":{"content":"look"}}`,
		`{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"s","isSidechain":true,"message":{"id":"m","content":[{"type":"text","text":"seen"}]}}`,
	}, "\n")), transcript.Claude)
	if err != nil || len(all) != 2 || len(c.Left()) != 0 {
		t.Errorf("%+v, %v, %v", all, c, err)
	}
}

// TestLinesThatNameNoParentAreReadInTheirOrder: whether the field is absent,
// null in every line, or absent in a few lines of a file whose other lines have it.
// Guarantee: S45.
func TestLinesThatNameNoParentAreReadInTheirOrder(t *testing.T) {
	claude := func(parents ...string) string {
		var b strings.Builder
		for i, p := range parents {
			role := []string{"user", "assistant"}[i%2]
			fmt.Fprintf(&b, `{"type":%q,"uuid":"u%d","sessionId":"s"%s,"message":{"id":"m%d","content":[{"type":"text","text":"said %d"}]}}`+"\n", role, i, p, i, i)
		}
		return b.String()
	}
	claw := func(parents ...string) string {
		b := strings.Builder{}
		b.WriteString(`{"type":"session","version":3,"id":"x"}` + "\n")
		for i, p := range parents {
			role := []string{"user", "assistant"}[i%2]
			fmt.Fprintf(&b, `{"type":"message","id":"e%d"%s,"message":{"role":%q,"content":"said %d"}}`+"\n", i, p, role, i)
		}
		return b.String()
	}
	null, nullID := `,"parentUuid":null`, `,"parentId":null`
	for _, c := range []struct {
		what, file string
		format     transcript.Format
		want       int
		left       int
	}{
		{"no field", claude("", "", "", ""), transcript.Claude, 4, 0},
		{"null in every line", claude(null, null, null, null), transcript.Claude, 4, 0},
		{"no field in some lines", claude(null, `,"parentUuid":"u0"`, "", ""), transcript.Claude, 4, 0},
		{"no field and no id", strings.NewReplacer(`"uuid":"u0",`, "", `"uuid":"u1",`, "", `"uuid":"u2",`, "").Replace(claude("", "", "")), transcript.Claude, 3, 0},
		{"null begins another branch", claude(null, `,"parentUuid":"u0"`, null, `,"parentUuid":"u2"`), transcript.Claude, 2, 2},
		{"no field", claw("", "", ""), transcript.OpenClaw, 3, 0},
		{"null in every line", claw(nullID, nullID, nullID), transcript.OpenClaw, 3, 0},
		{"no field in some lines", claw(nullID, `,"parentId":"e0"`, "", ""), transcript.OpenClaw, 4, 0},
		{"null begins another branch", claw(nullID, `,"parentId":"e0"`, nullID), transcript.OpenClaw, 1, 2},
	} {
		conv, all, err := read(t, []byte(c.file), c.format)
		if err != nil {
			t.Errorf("%s of %s: %v", c.what, c.format, err)
			continue
		}
		left := 0
		for _, l := range conv.Left() {
			left += l.Count
		}
		if len(all) != c.want || left != c.left {
			t.Errorf("%s of %s: %d messages, %d left, not %d and %d: %+v", c.what, c.format, len(all), left, c.want, c.left, all)
		}
		for i := 1; i < len(all); i++ {
			if all[i-1].Parts[0].Text >= all[i].Parts[0].Text {
				t.Errorf("%s of %s: out of order: %+v", c.what, c.format, all)
			}
		}
	}
}

func TestArgumentsStayJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"b": 1, "a": [ ]}`: `{"b":1,"a":[]}`,
		`"{\"a\": 1}"`:       `{"a":1}`,
		`"not {json"`:        `"\"not {json\""`,
		`[1]`:                `"[1]"`,
		`null`:               `{}`,
	} {
		line := `{"type":"assistant","uuid":"a","sessionId":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"n","input":` + in + `}]}}`
		_, all, err := read(t, []byte(line), transcript.Claude)
		if err != nil || len(all) != 2 || string(all[0].Parts[0].Call.Args) != want {
			t.Errorf("%s: %+v, %v", in, all, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.jsonl")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for n := range transcript.Formats {
			f.Add(raw, n)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, n int) {
		format := transcript.Formats[uint(n)%uint(len(transcript.Formats))]
		transcript.Detect(t.Context(), bytes.NewReader(raw), int64(len(raw)))
		_, all, err := read(t, raw, format)
		if err != nil {
			if code := belay.CodeOf(err); code != belay.CodeBadTranscript && code != belay.CodeRequires {
				t.Fatalf("code %s: %v", code, err)
			}
			return
		}
		valid(t, all)
		for _, m := range all {
			for _, p := range m.Parts {
				if p.Call != nil && !json.Valid(p.Call.Args) {
					t.Fatalf("arguments %q", p.Call.Args)
				}
			}
		}
		if len(all) == 0 {
			return
		}
		if _, again, err := read(t, written(t, all), transcript.Own); err != nil || len(again) != len(all) {
			t.Fatalf("%d messages read back, were %d: %v", len(again), len(all), err)
		}
	})
}
