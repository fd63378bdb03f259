//go:build unix

package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

// envelope is a patch in the form with marks.
func envelope(body string) string { return "*** Begin Patch\n" + body + "*** End Patch\n" }

// everything is a patch of four files: one changed, one made in a new folder,
// one removed and one moved into a new folder.
var everything = envelope("*** Update File: f\n@@\n 1\n-2\n+two\n*** Add File: new/made\n+fresh\n*** Delete File: gone\n*** Update File: old\n*** Move to: new/moved\n@@\n-o\n+O\n")

var (
	beforeAll = map[string]string{"f": "1\n2\n3\n", "gone": "bye\n", "old": "o\nx\n"}
	afterAll  = map[string]string{"f": "1\ntwo\n3\n", "new/made": "fresh\n", "new/moved": "O\nx\n"}
)

func knowing(t *testing.T, files map[string]string) *tooltest.Bench {
	t.Helper()
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // hundreds of crashes: their syncs needn't reach a disk
	}
	b := tooltest.NewBench(t)
	for name, content := range files {
		b.Know(name, content)
	}
	return b
}

// has is everything in a bench's workspace, folders without files too.
func has(t testing.TB, b *tooltest.Bench) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(b.Dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(b.Dir, p)
		if d.IsDir() {
			entries, err := os.ReadDir(p)
			if len(entries) == 0 && name != "." {
				all[name+"/"] = ""
			}
			return err
		}
		c, err := os.ReadFile(p)
		all[name] = string(c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPatchChangesAllFiles(t *testing.T) {
	b := knowing(t, beforeAll)
	must(t, os.Chmod(filepath.Join(b.Dir, "old"), 0o751))
	r, err := b.Run(t.Context(), file.Patch(), args{"patch": everything})
	if err != nil || !maps.Equal(has(t, b), afterAll) {
		t.Fatalf("got %v, %v", has(t, b), err)
	}
	want := "patched 4 files:\nchanged f: +1 -1 lines\ncreated new/made: +1 -0 lines\nmoved old to new/moved: +1 -1 lines\nremoved gone"
	if r.Text != want {
		t.Errorf("got %q\nwant %q", r.Text, want)
	}
	for name, content := range afterAll {
		if b.Expect[name] != digest(content) {
			t.Errorf("it knows %s as %s", name, b.Expect[name])
		}
	}
	for _, name := range []string{"gone", "old"} {
		if b.Expect[name] != file.Absent {
			t.Errorf("it knows %s as %s", name, b.Expect[name])
		}
	}
	facts := changes(t, b)
	wantFacts := []string{"changed f 1\n2\n3\n 1\ntwo\n3\n true", "created new/made - fresh\n true", "created new/moved - O\nx\n true", "removed gone bye\n - true", "removed old o\nx\n - true"}
	if !slices.Equal(facts, wantFacts) {
		t.Errorf("facts %q", facts)
	}
	if info, err := os.Stat(filepath.Join(b.Dir, "new/moved")); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("the moved file has mode %v, %v", info.Mode(), err)
	}
}

func TestPatchSaysWhatIsNotExact(t *testing.T) {
	b := knowing(t, map[string]string{"f": "0\n0\n1  \n2\n"})
	r, err := b.Run(t.Context(), file.Patch(), args{"patch": "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n"})
	want := "patched 1 file:\nchanged f: +1 -1 lines\nNot exactly as in the patch:\nf, hunk 1: at line 3 instead of 1, white space, quotes or the end of the file differ"
	if err != nil || r.Text != want || b.Get("f") != "0\n0\n1  \ntwo\n" {
		t.Errorf("got %q, %v", r.Text, err)
	}
}

func TestPatchMakesExecutableFiles(t *testing.T) {
	b := tooltest.NewBench(t)
	must2(b.Run(t.Context(), file.Patch(), args{"patch": "diff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+#!/bin/sh\n"}))
	if info, err := os.Stat(filepath.Join(b.Dir, "run")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("got %v, %v", info, err)
	}
}

// Whatever is wrong with one file, no file changes.
// Guarantee: T14.
func TestAPatchThatCanNotBeMadeChangesNothing(t *testing.T) {
	good := "*** Update File: f\n@@\n-2\n+two\n"
	for _, c := range []struct{ name, patch, code, class, says string }{
		{"no patch", "hello", "NOT_A_PATCH", tool.BadArguments, "no change of a file"},
		{"half a patch", envelope(good + "*** Update File: g\nx\n"), "BAD_PATCH", tool.BadArguments, "g, hunk 1 (line 7 of the patch)"},
		{"a hunk that doesn't fit", envelope(good + "*** Update File: g\n@@\n-x\n+y\n"), "HUNK_MISMATCH", tool.BadArguments, `g, hunk 1 (line 7 of the patch): line 8 of the patch expects "x", but line 1 of the file is "gee"`},
		{"a file nobody read", envelope(good + "*** Update File: unread\n@@\n-u\n+v\n"), file.CodeNotRead, tool.Conflict, "unread exists and was not read"},
		{"several files nobody read", envelope(good + "*** Update File: unread\n@@\n-u\n+v\n*** Delete File: unread2\n"), file.CodeNotRead, tool.Conflict, "unread exists and was not read; unread2 exists and was not read"},
		{"a file changed since", envelope(good + "*** Update File: stale\n@@\n-s\n+S\n"), file.CodeConflict, tool.Conflict, "changed by others"},
		{"a file that isn't there", envelope(good + "*** Update File: none\n@@\n-x\n+y\n"), "NO_SUCH_FILE", tool.NotFound, "none does not exist"},
		{"a new file that is there", envelope(good + "*** Add File: g\n+x\n"), "FILE_EXISTS", tool.Conflict, "g exists already"},
		{"outside", envelope(good + "*** Add File: ../x\n+x\n"), file.CodeOutside, tool.Denied, "outside the workspace"},
		{"absolute", envelope(good + "*** Delete File: /etc/passwd\n"), file.CodeOutside, tool.Denied, "outside the workspace"},
		{"a link outside", envelope(good + "*** Add File: out/x\n+x\n"), file.CodeOutside, tool.Denied, "outside the workspace"},
		{"a protected name", envelope(good + "*** Add File: .git/hooks/pre-commit\n+x\n"), file.CodeProtected, tool.Denied, "protected"},
		{"a folder", envelope(good + "*** Delete File: dir\n"), file.CodeIsDirectory, tool.BadArguments, "dir is a folder"},
		{"a file below a file", envelope(good + "*** Add File: g/x\n+x\n"), file.CodeNotDirectory, tool.BadArguments, "g is not a folder"},
		{"a file and a folder of one name", envelope(good + "*** Add File: n\n+x\n*** Add File: n/m\n+x\n"), file.CodeNotDirectory, tool.BadArguments, "n can't be a file and a folder"},
		{"one file by two names", envelope(good + "*** Update File: same\n@@\n-3\n+three\n"), file.CodeBadPath, tool.BadArguments, "the same file"},
		{"the workspace", envelope(good + "*** Delete File: .\n"), file.CodeIsDirectory, tool.BadArguments, "is a folder"},
		{"a read-only file", envelope(good + "*** Update File: locked\n@@\n-l\n+L\n"), file.CodeReadOnlyFile, tool.Denied, "read-only"},
		{"no change", envelope("*** Update File: f\n@@\n-2\n+2\n"), "NO_CHANGE", tool.BadArguments, "changes nothing"},
	} {
		b := knowing(t, map[string]string{"f": "1\n2\n3\n", "g": "gee\n", "dir/x": "", "locked": "l\n", "stale": "was\n"})
		b.Put("unread", "u\n")
		b.Put("unread2", "u\n")
		b.Put("stale", "s\n")
		must(t, os.Chmod(filepath.Join(b.Dir, "locked"), 0o444))
		must(t, os.Symlink("..", filepath.Join(b.Dir, "out")))
		must(t, os.Symlink("f", filepath.Join(b.Dir, "same")))
		b.Expect["same"] = b.Expect["f"]
		before := listing(t, b)
		_, err := b.Run(t.Context(), file.Patch(), args{"patch": c.patch})
		e := tooltest.Failure(err)
		if e == nil || e.Code != c.code || e.Class != c.class || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: got %v, want %s %s %q", c.name, err, c.class, c.code, c.says)
		}
		if after := listing(t, b); after != before || len(b.Sink.Facts()) != 0 {
			t.Errorf("%s: refused, but there is\n%s\nnot\n%s", c.name, after, before)
		}
	}
}

// listing is names and contents of a workspace with links.
func listing(t *testing.T, b *tooltest.Bench) string {
	t.Helper()
	var s strings.Builder
	must(t, filepath.WalkDir(b.Dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			fmt.Fprintln(&s, p)
			return err
		}
		c, _ := os.ReadFile(p)
		fmt.Fprintf(&s, "%s %v %q\n", p, d.Type(), c)
		return nil
	}))
	return s.String()
}

var errPower = errors.New("the power went off")

// outage is a power cut at the n-th operation on disk.
func outage(n int) (steps func(string) error, count *int) {
	count = new(int)
	return func(string) error {
		if *count++; *count >= n && n > 0 {
			return errPower
		}
		return nil
	}, count
}

// The power goes off at each operation on disk, and again at each while the
// attempt is looked up: in the end all files are as after the patch.
// Guarantee: T14.
func TestAPatchSurvivesACrashAtEveryOperation(t *testing.T) {
	steps, count := outage(0)
	b := knowing(t, beforeAll)
	must2(file.Patch().Run(file.WithSteps(t.Context(), steps), b.Call(args{"patch": everything})))
	ops := *count
	if ops < 15 {
		t.Fatalf("only %d operations", ops)
	}
	crashes, halves := 0, 0
	for first := 1; first <= ops; first++ {
		for second := 0; second <= ops; second += 1 + second/6 {
			b := knowing(t, beforeAll)
			call := b.Call(args{"patch": everything})
			facts := b.Sink
			call.Sink = &dead{Sink: facts}
			steps, _ := outage(first)
			if _, err := file.Patch().Run(file.WithSteps(t.Context(), steps), call); err == nil {
				t.Fatalf("it succeeds without power at %d", first)
			}
			for name, content := range has(t, b) {
				if content != beforeAll[name] && content != afterAll[name] && !strings.HasSuffix(name, ".tmp") {
					t.Fatalf("cut at %d: %s has %q", first, name, content)
				}
			}
			if second > 0 {
				steps, _ = outage(second)
				again(t, b, call, steps)
			}
			call.Sink = facts
			if got := again(t, b, call, nil); got == "half" {
				halves++
			}
			crashes++
			if got := has(t, b); !maps.Equal(got, afterAll) {
				t.Fatalf("cut at %d and %d: there is %q", first, second, got)
			}
			if got := touched(b); !slices.Equal(got, []string{"f", "gone", "new/made", "new/moved", "old"}) {
				t.Fatalf("cut at %d and %d: facts of %v", first, second, got)
			}
		}
	}
	if halves == 0 {
		t.Error("no crash came between two names")
	}
	t.Logf("%d operations, %d crashes, %d of them between two names", ops, crashes, halves)
}

// dead is the sink of a process that is gone: it keeps content, but no fact
// reaches the log.
type dead struct{ *tooltest.Sink }

func (dead) Fact(event.Payload) {}

// again is what the runtime does after a crash: look up, and run if nothing was done.
func again(t *testing.T, b *tooltest.Bench, call tool.Call, steps func(string) error) string {
	t.Helper()
	ctx := t.Context()
	if steps != nil {
		ctx = file.WithSteps(ctx, steps)
		call.Sink = &dead{Sink: b.Sink}
	}
	r, done, err := file.Patch().(tool.Recoverer).Recover(ctx, call)
	if steps == nil && err != nil {
		t.Fatalf("looking it up: %v", err)
	}
	if done || err != nil {
		if steps == nil && len(r.Files) < len(touched(b)) {
			t.Fatalf("it knows %v, and changed %v", r.Files, touched(b))
		}
		return "half"
	}
	if _, err := file.Patch().Run(ctx, call); steps == nil && err != nil {
		t.Fatalf("running it again: %v", err)
	}
	return "none"
}

// touched are the files that facts tell of.
func touched(b *tooltest.Bench) (names []string) {
	for _, f := range b.Sink.Facts() {
		names = append(names, f.(event.ArtifactChanged).Path)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Guarantee: T14.
func TestAPatchWithAChangeFromOutsideIsLost(t *testing.T) {
	for name, meddle := range map[string]func(b *tooltest.Bench){
		"a file that was to change": func(b *tooltest.Bench) { b.Put("f", "mine\n") },
		"a file that was made":      func(b *tooltest.Bench) { b.Put("new/made", "mine\n") },
		"a file that was moved":     func(b *tooltest.Bench) { b.Put("old", "mine\n") },
	} {
		b := knowing(t, beforeAll)
		call := b.Call(args{"patch": everything})
		must2(file.Patch().Run(t.Context(), call))
		meddle(b)
		before := has(t, b)
		_, done, err := file.Patch().(tool.Recoverer).Recover(t.Context(), call)
		if e := tooltest.Failure(err); done || e == nil || e.Class != tool.Lost {
			t.Errorf("%s: %v, %v", name, done, err)
		}
		if !maps.Equal(before, has(t, b)) {
			t.Errorf("%s: looking it up changed something", name)
		}
	}
}

func TestAPatchThatWasRefusedIsNotLost(t *testing.T) {
	for name, p := range map[string]string{
		"no patch": "hello", "outside": envelope("*** Delete File: ../x\n"), "a misfit": envelope("*** Update File: f\n@@\n-no\n+x\n"),
		"unread": envelope("*** Update File: unread\n@@\n-u\n+x\n"), "protected": envelope("*** Add File: .belay/x\n+x\n"),
	} {
		b := knowing(t, beforeAll)
		b.Put("unread", "u\n")
		if _, done, err := file.Patch().(tool.Recoverer).Recover(t.Context(), b.Call(args{"patch": p})); done || err != nil {
			t.Errorf("%s: %v, %v", name, done, err)
		}
	}
}

// The facts of the largest patch there may be fit into the log.
func TestTheFactsOfALargePatchFit(t *testing.T) {
	b := tooltest.NewBench(t)
	var p strings.Builder
	for i := range 50 {
		name := fmt.Sprintf("%02d%s", i, strings.Repeat("n", 55))
		b.Know("real/"+name, "old\n")
		must(t, os.Symlink("real/"+name, filepath.Join(b.Dir, name)))
		b.Expect[name] = b.Expect["real/"+name]
		fmt.Fprintf(&p, "*** Update File: %s\n@@\n-old\n+new\n", name)
	}
	r, err := b.Run(t.Context(), file.Patch(), args{"patch": envelope(p.String())})
	must(t, err)
	raw, err := event.Encode(event.ToolResult{Name: "patch", Files: r.Files, Output: belay.Content{Text: strings.Repeat("x", 4<<10)}})
	if err != nil || len(raw) > event.MaxPayload || len(r.Files) < 50 {
		t.Errorf("%d files, a fact of %d bytes, %v", len(r.Files), len(raw), err)
	}
	for i, f := range r.Files[:50] {
		if !strings.HasPrefix(f.Path, fmt.Sprintf("%02dn", i)) {
			t.Fatalf("it knows %s before all names of the patch", f.Path)
		}
	}
	long := envelope("*** Delete File: " + strings.Repeat("d/", 1600) + "f\n")
	if _, err := b.Run(t.Context(), file.Patch(), args{"patch": long}); tooltest.CodeOf(err) != file.CodeTooLarge {
		t.Errorf("names that are too long: %v", err)
	}
}

// When a name can't be changed, those before it are taken back.
// Guarantee: T14.
func TestAPatchThatFailsInTheMiddleIsTakenBack(t *testing.T) {
	steps, count := outage(0)
	b := knowing(t, beforeAll)
	must2(file.Patch().Run(file.WithSteps(t.Context(), steps), b.Call(args{"patch": everything})))
	for n := 1; n <= *count; n++ {
		b := knowing(t, beforeAll)
		i := 0
		_, err := file.Patch().Run(file.WithSteps(t.Context(), func(string) error {
			if i++; i == n {
				return errors.New("this one fails")
			}
			return nil
		}), b.Call(args{"patch": everything}))
		if tooltest.Failure(err) == nil {
			t.Fatalf("operation %d fails: %v", n, err)
		}
		if got := has(t, b); !maps.Equal(got, beforeAll) || len(b.Sink.Facts()) != 0 {
			t.Fatalf("operation %d fails with %v, and there is %q, %d facts", n, err, got, len(b.Sink.Facts()))
		}
	}
}

// FuzzPatch: afterwards all files are as they were, or each is as the patch
// says, and a crash in between ends the same way.
func FuzzPatch(f *testing.F) {
	f.Add(everything, "1\n2\n3\n", 0)
	f.Add("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n", "1\r\n2\r\n", 3)
	f.Add("diff --git a/f b/g/h\nrename from f\nrename to g/h\n", "x", 9)
	f.Add(envelope("*** Add File: f/x\n+x\n"), "x", 0)
	f.Fuzz(func(t *testing.T, p, content string, cut int) {
		if !utf8.ValidString(p) || strings.ContainsRune(p, 0) {
			return
		}
		before := map[string]string{"f": content, "gone": "bye\n", "old": "o\nx\n"}
		b := knowing(t, before)
		call := b.Call(args{"patch": p})
		call.Sink = &dead{Sink: b.Sink}
		steps, _ := outage(cut % 40)
		_, err := file.Patch().Run(file.WithSteps(t.Context(), steps), call)
		if err != nil && !strings.Contains(err.Error(), errPower.Error()) {
			if got := has(t, b); !maps.Equal(got, before) {
				t.Fatalf("%q: %v, and there is %q", p, err, got)
			}
			return
		}
		call.Sink = b.Sink
		if err != nil {
			again(t, b, call, nil)
		}
		clean := knowing(t, before)
		must2(file.Patch().Run(t.Context(), clean.Call(args{"patch": p})))
		if got, want := has(t, b), has(t, clean); !maps.Equal(got, want) {
			t.Fatalf("%q cut at %d: there is %q, not %q", p, cut, got, want)
		}
	})
}
