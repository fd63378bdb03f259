//go:build unix

package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

// changes are the facts of a bench, as "op path before after".
func changes(t *testing.T, b *tooltest.Bench) []string {
	t.Helper()
	var all []string
	for _, f := range b.Sink.Facts() {
		c, ok := f.(event.ArtifactChanged)
		if !ok || c.Kind != "file" {
			t.Fatalf("fact %#v", f)
		}
		side := func(r *belay.Ref) string {
			if r == nil {
				return "-"
			}
			content, err := b.Sink.Kept(r.Digest)
			if err != nil || int64(len(content)) != r.Size {
				t.Errorf("%s names content that isn't kept: %v", c.Path, err)
			}
			return string(content)
		}
		all = append(all, fmt.Sprintf("%s %s %s %s %v", c.Op, c.Path, side(c.Before), side(c.After), c.Kept))
	}
	return all
}

func TestWriteMakesFilesWithTheirFolders(t *testing.T) {
	b := tooltest.NewBench(t)
	r, err := b.Run(t.Context(), file.Write(), args{"path": "a/b/c.txt", "content": "x\ny\n"})
	if err != nil || r.Text != "created a/b/c.txt: +2 -0 lines" || b.Get("a/b/c.txt") != "x\ny\n" {
		t.Fatalf("got %q, %v", r.Text, err)
	}
	if b.Expect["a/b/c.txt"] != digest("x\ny\n") {
		t.Errorf("it knows %v", b.Expect)
	}
	r, err = b.Run(t.Context(), file.Write(), args{"path": "a/b/c.txt", "content": "x\nz\nz"})
	if err != nil || r.Text != "replaced a/b/c.txt: +2 -1 lines" {
		t.Errorf("got %q, %v", r.Text, err)
	}
	r, err = b.Run(t.Context(), file.Write(), args{"path": "a/b/c.txt", "content": "x\nz\nz"})
	if err != nil || r.Text != "a/b/c.txt has this content already" {
		t.Errorf("got %q, %v", r.Text, err)
	}
	got := strings.Join(changes(t, b), "|")
	if want := "created a/b/c.txt - x\ny\n true|changed a/b/c.txt x\ny\n x\nz\nz true"; got != want {
		t.Errorf("got %q", got)
	}
	noLitter(t, b)
}

// noLitter fails when a temporary file is left anywhere.
func noLitter(t *testing.T, b *tooltest.Bench) {
	t.Helper()
	filepath.WalkDir(b.Dir, func(p string, d os.DirEntry, err error) error {
		if strings.HasSuffix(p, ".tmp") {
			t.Errorf("%s is left", p)
		}
		return nil
	})
}

// Guarantee: T2.
func TestAFileMustBeReadBeforeItIsChanged(t *testing.T) {
	for _, c := range []struct {
		name   string
		expect string // what the thread last saw; empty: nothing
		now    string // content; empty: no file
		code   string // of write
		edit   string // of edit
	}{
		{"a file nobody read", "", "now\n", file.CodeNotRead, file.CodeNotRead},
		{"a file that was read", "now\n", "now\n", "ok", "ok"},
		{"a file changed since", "then\n", "now\n", file.CodeConflict, file.CodeConflict},
		{"a file removed since", "then\n", "", file.CodeConflict, file.CodeConflict},
		{"a file that appeared", file.Absent, "now\n", file.CodeConflict, file.CodeConflict},
		{"no file, and none was seen", file.Absent, "", "ok", file.CodeNoSuchFile},
		{"no file, and nobody looked", "", "", "ok", file.CodeNoSuchFile},
	} {
		for _, tl := range []tool.Tool{file.Write(), file.Edit()} {
			b := tooltest.NewBench(t)
			if c.now != "" {
				b.Put("f", c.now)
			}
			switch c.expect {
			case "":
			case file.Absent:
				b.Expect["f"] = file.Absent
			default:
				ref, _ := b.Sink.Keep([]byte(c.expect), "")
				b.Expect["f"] = string(ref.Digest)
			}
			in, want := args{"path": "f", "content": "mine\n"}, c.code
			if tl.Spec().Name == "edit" {
				in, want = args{"path": "f", "old": "now", "new": "mine"}, c.edit
			}
			_, err := tl.Run(t.Context(), b.Call(in))
			if tooltest.CodeOf(err) != want {
				t.Errorf("%s, %s: got %v, want %s", c.name, tl.Spec().Name, err, want)
			}
			if e := tooltest.Failure(err); e != nil && (want == file.CodeConflict || want == file.CodeNotRead) && e.Class != tool.Conflict {
				t.Errorf("%s, %s: class %s", c.name, tl.Spec().Name, e.Class)
			}
			if want != "ok" && c.now != "" && (b.Get("f") != c.now || len(b.Sink.Facts()) != 0) {
				t.Errorf("%s, %s: refused, but the file has %q", c.name, tl.Spec().Name, b.Get("f"))
			}
		}
	}
}

// Guarantee: T2, T20.
func TestConflictShowsWhatChanged(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Know("f", "one\ntwo\nthree\n")
	b.Put("f", "one\n2\nthree\n")
	_, err := b.Run(t.Context(), file.Write(), args{"path": "f", "content": "mine"})
	if e := tooltest.Failure(err); e == nil || !strings.Contains(e.Text, "-two\n+2\n") || !strings.Contains(e.Hint, "read f again") {
		t.Errorf("got %+v", err)
	}
	b.Put("f", strings.Repeat("other line ü\n", 5000))
	_, err = b.Run(t.Context(), file.Write(), args{"path": "f", "content": "mine"})
	if e := tooltest.Failure(err); len(e.Text) > 4200 || !strings.Contains(e.Text, "more bytes of the diff left out") {
		t.Errorf("a long diff has %d bytes", len(e.Text))
	}
	b.Sink.Forget()
	_, err = b.Run(t.Context(), file.Write(), args{"path": "f", "content": "mine"})
	if e := tooltest.Failure(err); e.Code != file.CodeConflict || e.Text != "" {
		t.Errorf("without the content it knew: %+v", e)
	}
}

func TestModeIsKeptAndReadOnlyIsRespected(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Know("script", "#!/bin/sh\n")
	must(t, os.Chmod(filepath.Join(b.Dir, "script"), 0o751))
	must2(b.Run(t.Context(), file.Edit(), args{"path": "script", "old": "/sh", "new": "/bash"}))
	info, err := os.Stat(filepath.Join(b.Dir, "script"))
	if err != nil || info.Mode().Perm() != 0o751 || b.Get("script") != "#!/bin/bash\n" {
		t.Errorf("got %v %q", info.Mode(), b.Get("script"))
	}
	b.Know("locked", "x")
	must(t, os.Chmod(filepath.Join(b.Dir, "locked"), 0o444))
	if _, err := b.Run(t.Context(), file.Write(), args{"path": "locked", "content": "y"}); tooltest.CodeOf(err) != file.CodeReadOnlyFile {
		t.Errorf("got %v", err)
	}
}

func TestHardLinkIsBroken(t *testing.T) {
	b := tooltest.NewBench(t)
	out := filepath.Join(filepath.Dir(b.Dir), "outside.txt")
	must(t, os.WriteFile(out, []byte("shared\n"), 0o644))
	must(t, os.Link(out, filepath.Join(b.Dir, "linked")))
	if r, err := b.Run(t.Context(), file.Read(), args{"path": "linked"}); err != nil || r.Text != "shared\n" {
		t.Fatalf("got %q, %v", r.Text, err)
	}
	r, err := b.Run(t.Context(), file.Write(), args{"path": "linked", "content": "mine\n"})
	if err != nil || !strings.Contains(r.Text, "other hard links") {
		t.Errorf("got %q, %v", r.Text, err)
	}
	if c, err := os.ReadFile(out); err != nil || string(c) != "shared\n" || b.Get("linked") != "mine\n" {
		t.Errorf("outside has %q, %v", c, err)
	}
}

// Guarantee: T5.
func TestNothingChangesWhenContentCannotBeKept(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Know("f", "old")
	b.Sink.Refuse = errors.New("store is full")
	for _, c := range []struct {
		tool tool.Tool
		args args
	}{
		{file.Write(), args{"path": "f", "content": "new"}}, {file.Write(), args{"path": "g", "content": "new"}},
		{file.Edit(), args{"path": "f", "old": "old", "new": "new"}},
	} {
		if _, err := b.Run(t.Context(), c.tool, c.args); err == nil {
			t.Errorf("%v succeeds", c.args)
		}
	}
	if _, err := os.Stat(filepath.Join(b.Dir, "g")); b.Get("f") != "old" || err == nil {
		t.Error("a file was changed though nothing could be kept")
	}
}

func TestEdit(t *testing.T) {
	for _, c := range []struct {
		name, before, old, new string
		all                    bool
		after, text            string
	}{
		{"one place", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n", "edited f: 1 replacement at line 2, +1 -1 lines"},
		{"several lines", "a\nb\nc\n", "a\nb\n", "", false, "c\n", "edited f: 1 replacement at line 1, +0 -2 lines"},
		{"everywhere", "x x\nx\n", "x", "yy", true, "yy yy\nyy\n", "edited f: 3 replacements, +2 -2 lines"},
		{"all with one place", "x\n", "x", "y", true, "y\n", "edited f: 1 replacement at line 1, +1 -1 lines"},
		{"no newline at the end", "a\nb", "b", "c", false, "a\nc", "edited f: 1 replacement at line 2, +1 -1 lines"},
		{"CR LF stays, asked with LF", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n", "edited f: 1 replacement at line 1, +3 -2 lines"},
		{"CR LF stays, asked with CR LF", "a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n", "edited f: 1 replacement at line 1, +2 -2 lines"},
		{"CR LF stays, from a line's end", "a\r\nb\r\n", "\nb", "\nc", false, "a\r\nc\r\n", "edited f: 1 replacement at line 1, +1 -1 lines"},
		{"mixed line ends stay as they are", "a\r\nb\nc\n", "b\nc", "x\ny", false, "a\r\nx\ny\n", "edited f: 1 replacement at line 2, +2 -2 lines"},
		{"a byte order mark stays", "\ufeffa\n", "a", "b", false, "\ufeffb\n", "edited f: 1 replacement at line 1, +1 -1 lines"},
		{"pattern characters mean themselves", "a.*$1\n", ".*$1", "$2\\", false, "a$2\\\n", "edited f: 1 replacement at line 1, +1 -1 lines"},
		{"bytes around the place don't matter", "\xff\xfe a\n", "a", "b", false, "\xff\xfe b\n", "edited f: 1 replacement at line 1, +1 -1 lines"},
	} {
		b := tooltest.NewBench(t)
		b.Know("f", c.before)
		r, err := b.Run(t.Context(), file.Edit(), args{"path": "f", "old": c.old, "new": c.new, "all": c.all})
		if err != nil || b.Get("f") != c.after || r.Text != c.text || b.Expect["f"] != digest(c.after) {
			t.Errorf("%s: got %q %q, %v", c.name, b.Get("f"), r.Text, err)
		}
		if got, want := strings.Join(changes(t, b), ""), fmt.Sprintf("changed f %s %s true", c.before, c.after); got != want {
			t.Errorf("%s: fact %q, want %q", c.name, got, want)
		}
		noLitter(t, b)
	}
}

func TestEditRefuses(t *testing.T) {
	src := "func main() {\n\tfmt.Println(\"hello\")\n}\n\nfunc other() {\n}\naaa\n"
	for _, c := range []struct{ name, old, new, code, says string }{
		{"nothing to replace", "", "x", "BAD_ARGUMENTS", "old is empty"},
		{"no change", "x", "x", file.CodeNoChange, "the same"},
		{"text that isn't there", "nowhere to be found", "x", file.CodeNotFoundText, "copy the text exactly"},
		{"other white space", "    fmt.Println(\"hello\")", "x", file.CodeNotFoundText, "line 2 is the first line of old but for white space"},
		{"a line that is almost there", "\tfmt.Printn(\"helo\")", "x", file.CodeNotFoundText, "most like it is 2"},
		{"two places", "func ", "x", file.CodeAmbiguous, "2 times in f, at lines 1, 5"},
		{"places that overlap", "aa", "b", file.CodeAmbiguous, "2 times in f, at lines 7, 7"},
		{"places that begin with a newline", "\n", "", file.CodeAmbiguous, "7 times in f, at lines 1, 2, 3, 4, 5, 6, 7"},
	} {
		b := tooltest.NewBench(t)
		b.Know("f", src)
		_, err := b.Run(t.Context(), file.Edit(), args{"path": "f", "old": c.old, "new": c.new})
		e := tooltest.Failure(err)
		if e == nil || e.Code != c.code || !strings.Contains(e.Message+" "+e.Hint, c.says) {
			t.Errorf("%s: got %+v, want %s %q", c.name, err, c.code, c.says)
		}
		if b.Get("f") != src || len(b.Sink.Facts()) != 0 {
			t.Errorf("%s: the file has %q", c.name, b.Get("f"))
		}
	}
}

func TestTenThousandLinesAreEditedFast(t *testing.T) {
	b := tooltest.NewBench(t)
	var before, replaced strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&before, "line %d\n", i)
		fmt.Fprintf(&replaced, "other %d\n", i*7)
	}
	b.Know("f", "head\n"+before.String()+"tail\n")
	began := time.Now()
	r, err := b.Run(t.Context(), file.Edit(), args{"path": "f", "old": before.String(), "new": replaced.String()})
	if err != nil || b.Get("f") != "head\n"+replaced.String()+"tail\n" || !strings.Contains(r.Text, "+10000 -10000 lines") {
		t.Errorf("got %q, %v", r.Text, err)
	}
	_, err = b.Run(t.Context(), file.Edit(), args{"path": "f", "old": "other 34x", "new": ""})
	if tooltest.CodeOf(err) != file.CodeNotFoundText {
		t.Error(err)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
}

// FuzzEdit: afterwards the file is as it was or as the edit says, and nothing else.
func FuzzEdit(f *testing.F) {
	f.Add("a\nb\nc\n", "b", "B", false)
	f.Add("a\r\nb\r\n", "\nb", "x\n", false)
	f.Add("aaaa", "aa", "a", true)
	f.Add("\ufeffx", "x", "", true)
	f.Fuzz(func(t *testing.T, before, old, repl string, all bool) {
		if !utf8.ValidString(old) || !utf8.ValidString(repl) {
			return // arguments are JSON
		}
		b := tooltest.NewBench(t)
		b.Know("f", before)
		_, err := b.Run(t.Context(), file.Edit(), args{"path": "f", "old": old, "new": repl, "all": all})
		got := b.Get("f")
		if err != nil {
			if tooltest.Failure(err) == nil || got != before {
				t.Fatalf("%q with %q for %q: %v, and the file has %q", before, repl, old, err, got)
			}
			return
		}
		n := 1
		if all {
			n = -1
		}
		crlf := strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n")
		if got != strings.Replace(before, old, repl, n) && got != strings.Replace(before, crlf.Replace(old), crlf.Replace(repl), n) {
			t.Fatalf("%q with %q for %q became %q", before, repl, old, got)
		}
		if !all && strings.Count(before, old) > 1 {
			t.Fatalf("%q occurs more than once in %q", old, before)
		}
		noLitter(t, b)
	})
}

// Guarantee: T4.
func TestReadersSeeTheOldOrTheNewContent(t *testing.T) {
	b := tooltest.NewBench(t)
	contents := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)}
	b.Know("f", contents[0])
	stop, seen := make(chan struct{}), make(chan error)
	go func() {
		defer close(seen)
		for {
			select {
			case <-stop:
				return
			default:
			}
			c, err := os.ReadFile(filepath.Join(b.Dir, "f"))
			if err != nil || string(c) != contents[0] && string(c) != contents[1] {
				seen <- fmt.Errorf("%d bytes that are neither, %v", len(c), err)
				return
			}
		}
	}()
	for i := range 40 {
		if _, err := b.Run(t.Context(), file.Write(), args{"path": "f", "content": contents[(i+1)%2]}); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-seen; err != nil {
		t.Error(err)
	}
}

// Content with a secret in it must not reach the store, and must not keep a
// person from changing the file.
// Guarantee: T5.
func TestAChangeOfAFileWithASecretIsMadeAndNotKept(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Put("env", "KEY=old\n")
	b.Sink.Refuse = tool.ErrHoldsSecret
	if r, err := b.Run(t.Context(), file.Read(), args{"path": "env"}); err != nil || r.Text != "KEY=old\n" {
		t.Fatalf("read: %+v %v", r, err)
	}
	if _, err := b.Run(t.Context(), file.Edit(), args{"path": "env", "old": "old", "new": "new"}); err != nil {
		t.Fatal(err)
	}
	if got := b.Get("env"); got != "KEY=new\n" {
		t.Errorf("the file has %q", got)
	}
	fact, ok := b.Sink.Facts()[0].(event.ArtifactChanged)
	if !ok || fact.Kept || fact.Before != nil || fact.After != nil || fact.Note == "" {
		t.Errorf("the fact is %+v", fact)
	}
}
