//go:build unix

package file_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

// Guarantee: E5.
func TestRecover(t *testing.T) {
	write := args{"path": "f", "content": "new\n"}
	edit := args{"path": "f", "old": "old", "new": "new"}
	for _, c := range []struct {
		name   string
		expect string // content the thread saw; empty: nothing; absent
		forget bool   // the content before isn't kept
		now    string // content; empty: no file
		write  string // done, not done or a code
		edit   string
	}{
		{"not begun", "old\n", false, "old\n", "not done", "not done"},
		{"not begun, nothing kept", "old\n", true, "old\n", "not done", "not done"},
		{"done", "old\n", false, "new\n", "done", "done"},
		{"done, nothing kept", "old\n", true, "new\n", "done", file.CodeUnknownEffect},
		{"changed by somebody else", "old\n", false, "other\n", file.CodeUnknownEffect, file.CodeUnknownEffect},
		{"removed by somebody else", "old\n", false, "", file.CodeUnknownEffect, file.CodeUnknownEffect},
		{"a new file, not begun", file.Absent, false, "", "not done", "not done"},
		{"a new file, done", file.Absent, false, "new\n", "done", file.CodeUnknownEffect},
		{"a new file nobody looked for, not begun", "", false, "", "not done", "not done"},
		{"a new file nobody looked for, done", "", false, "new\n", "done", file.CodeUnknownEffect},
		{"a new file, and another's content", file.Absent, false, "other\n", file.CodeUnknownEffect, file.CodeUnknownEffect},
	} {
		for _, x := range []struct {
			tool tool.Tool
			args args
			want string
		}{{file.Write(), write, c.write}, {file.Edit(), edit, c.edit}} {
			b := tooltest.NewBench(t)
			switch c.expect {
			case "":
			case file.Absent:
				b.Expect["f"] = file.Absent
			default:
				b.Know("f", c.expect)
			}
			os.Remove(filepath.Join(b.Dir, "f"))
			if c.now != "" {
				b.Put("f", c.now)
			}
			if c.forget {
				b.Sink.Forget()
			}
			r, done, err := x.tool.(tool.Recoverer).Recover(t.Context(), b.Call(x.args))
			got := tooltest.CodeOf(err)
			if err == nil {
				got = map[bool]string{true: "done", false: "not done"}[done]
			} else if e := tooltest.Failure(err); e == nil || e.Class != tool.Lost {
				t.Errorf("%s, %s: %v", c.name, x.tool.Spec().Name, err)
			}
			if got != x.want {
				t.Errorf("%s, %s: got %s, want %s", c.name, x.tool.Spec().Name, got, x.want)
			}
			if n := len(b.Sink.Facts()); (n == 1) != (got == "done") {
				t.Errorf("%s, %s: %d facts", c.name, x.tool.Spec().Name, n)
			}
			if got == "done" && (len(r.Files) != 1 || r.Files[0].Digest != digest("new\n")) {
				t.Errorf("%s, %s: it knows %v", c.name, x.tool.Spec().Name, r.Files)
			}
		}
	}
}

// What a run did, recovering it finds; and recovering changes nothing.
// Guarantee: E5.
func TestRecoverAgreesWithRun(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Know("f", "a\r\nold\r\n")
	call := b.Call(args{"path": "f", "old": "old\n", "new": "new\nmore\n"})
	edit := file.Edit().(tool.Recoverer)
	if _, done, err := edit.Recover(t.Context(), call); done || err != nil {
		t.Fatalf("before: %v, %v", done, err)
	}
	ran, err := file.Edit().Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	found, done, err := edit.Recover(t.Context(), call)
	if !done || err != nil || found.Files[0] != ran.Files[0] {
		t.Errorf("after: %v %v, %v; want %v", done, found.Files, err, ran.Files)
	}
	got := changes(t, b)
	if len(got) != 2 || got[0] != got[1] {
		t.Errorf("run and recover record %q", got)
	}
}

func TestRecoverSweepsWhatACrashLeft(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Know("f", "old")
	call := b.Call(args{"path": "f", "content": "new"})
	must(t, os.WriteFile(filepath.Join(b.Dir, ".belay-other-ABC.tmp"), nil, 0o600))
	mine := file.TempName(call.ID)
	must(t, os.WriteFile(filepath.Join(b.Dir, mine), []byte("half"), 0o600))
	if _, done, err := file.Write().(tool.Recoverer).Recover(t.Context(), call); done || err != nil {
		t.Fatalf("got %v, %v", done, err)
	}
	if _, err := os.Stat(filepath.Join(b.Dir, mine)); err == nil {
		t.Error("the temporary file of the attempt before is still there")
	}
	if _, err := os.Stat(filepath.Join(b.Dir, ".belay-other-ABC.tmp")); err != nil {
		t.Error("another call's file is gone")
	}
}
