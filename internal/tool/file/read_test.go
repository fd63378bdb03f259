//go:build unix

package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

func digest(s string) string { return string(belay.DigestOf([]byte(s))) }

func TestRead(t *testing.T) {
	b := tooltest.NewBench(t)
	crlf := "a\r\nb\r\n"
	five := "1\n2\n3\n4\n5\n"
	b.Put("five", five)
	b.Put("open", "1\n2\n3")
	b.Put("crlf", crlf)
	b.Put("empty", "")
	b.Put("bom", "\ufeffx\n")
	for _, c := range []struct {
		args args
		text string
		file string // whose digest is known afterwards
		kept bool
	}{
		{args{"path": "five"}, five, "five", true},
		{args{"path": "./five"}, five, "five", true},
		{args{"path": "five", "offset": 1, "limit": 5}, five, "five", true},
		{args{"path": "five", "offset": 2, "limit": 2}, "2\n3\n[lines 2-3 of 5; go on with offset 4]", "five", false},
		{args{"path": "five", "offset": 4}, "4\n5\n[lines 4-5 of 5]", "five", false},
		{args{"path": "five", "limit": 1}, "1\n[lines 1-1 of 5; go on with offset 2]", "five", false},
		{args{"path": "open", "offset": 3}, "3\n[lines 3-3 of 3]", "open", false},
		{args{"path": "open", "limit": 3}, "1\n2\n3", "open", true},
		{args{"path": "crlf"}, crlf, "crlf", true},
		{args{"path": "bom"}, "\ufeffx\n", "bom", true},
		{args{"path": "empty"}, "[empty file]", "empty", true},
	} {
		b.Sink.Forget()
		r, err := file.Read().Run(t.Context(), b.Call(c.args))
		if err != nil || r.Text != c.text {
			t.Errorf("%v: got %q, %v; want %q", c.args, r.Text, err, c.text)
			continue
		}
		want := digest(b.Get(c.file))
		if len(r.Files) != 1 || r.Files[0] != (event.FileSeen{Path: c.file, Digest: want}) {
			t.Errorf("%v: it knows %v afterwards", c.args, r.Files)
		}
		if _, err := b.Sink.Kept(belay.Digest(want)); (err == nil) != c.kept {
			t.Errorf("%v: kept is %v, want %v", c.args, err == nil, c.kept)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Put("five", "1\n2\n3\n4\n5\n")
	b.Put("elf", "\x7fELF\x02\x01\x01\x00rest")
	b.Put("latin1", "gr\xfc\xdfe\n")
	b.Put("late", strings.Repeat("text\n", 3000)+"\x00\n")
	b.Put("empty", "")
	for _, c := range []struct {
		args       args
		code, says string
	}{
		{args{"path": "none"}, file.CodeNoSuchFile, "none does not exist"},
		{args{"path": "no/folder/at/all"}, file.CodeNoSuchFile, "does not exist"},
		{args{"path": "."}, file.CodeIsDirectory, "is a folder"},
		{args{"path": ""}, file.CodeBadPath, "empty"},
		{args{"path": "five", "offset": 6}, file.CodeBeyondEnd, "five has 5 lines; offset 6"},
		{args{"path": "empty", "offset": 2}, file.CodeBeyondEnd, "empty has 0 lines"},
		{args{"path": "five", "offset": -1}, "BAD_ARGUMENTS", "negative"},
		{args{"path": "elf"}, file.CodeBinary, "a program (ELF) of 12 bytes"},
		{args{"path": "latin1"}, file.CodeBinary, "binary data of 6 bytes"},
		{args{"path": "late"}, file.CodeBinary, "not UTF-8 text"},
	} {
		r, err := file.Read().Run(t.Context(), b.Call(c.args))
		if tooltest.CodeOf(err) != c.code || !strings.Contains(tooltest.Failure(err).Message, c.says) {
			t.Errorf("%v: got %q, %v; want %s %q", c.args, r.Text, err, c.code, c.says)
		}
	}
	if _, err := b.Run(t.Context(), file.Read(), args{"path": "none"}); err == nil || b.Expect["none"] != file.Absent {
		t.Errorf("after looking for a missing file: %v, %v", b.Expect, err)
	}
	if r, err := file.Read().Run(t.Context(), b.Call(args{"path": "late", "limit": 10})); err != nil || !strings.Contains(r.Text, "lines 1-10 of 3001") {
		t.Errorf("text before binary data: %q, %v", r.Text, err)
	}
}

func TestLongFilesAreShownInPieces(t *testing.T) {
	b := tooltest.NewBench(t)
	var all strings.Builder
	for i := 1; i <= 9000; i++ {
		fmt.Fprintf(&all, "line %d with some words in it\n", i)
	}
	b.Put("long", all.String())
	var got strings.Builder
	for next, pieces := 1, 0; next > 0; pieces++ {
		r, err := b.Run(t.Context(), file.Read(), args{"path": "long", "offset": next})
		if err != nil || pieces > 20 {
			t.Fatal(pieces, err)
		}
		if len(r.Text) > file.Read().Spec().OutputLimit {
			t.Fatalf("%d bytes are more than the output limit", len(r.Text))
		}
		text, note, _ := strings.Cut(r.Text, "[lines ")
		got.WriteString(text)
		next = 0
		if _, rest, more := strings.Cut(note, "go on with offset "); more {
			fmt.Sscanf(rest, "%d", &next)
		}
	}
	if got.String() != all.String() {
		t.Error("the pieces don't make the file")
	}
	if b.Expect["long"] != digest(all.String()) {
		t.Error("a partial read doesn't know the whole file")
	}
}

func TestLineLongerThanTheLimit(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Put("min.js", "short\n"+strings.Repeat("ü", 200_000)+"\nend\n")
	r, err := b.Run(t.Context(), file.Read(), args{"path": "min.js"})
	if err != nil || !strings.HasPrefix(r.Text, "short\n[lines 1-1 of 3; go on with offset 2]") {
		t.Errorf("got %.80q, %v", r.Text, err)
	}
	r, err = b.Run(t.Context(), file.Read(), args{"path": "min.js", "offset": 2})
	if err != nil || !strings.HasPrefix(r.Text, "üüü") || !strings.Contains(r.Text, "bytes of line 2 of 3") {
		t.Errorf("got %.80q … %q, %v", r.Text, r.Text[max(0, len(r.Text)-120):], err)
	}
}

func TestGigabyteCostsNoMemory(t *testing.T) {
	b := tooltest.NewBench(t)
	f, err := os.Create(filepath.Join(b.Dir, "huge"))
	must(t, err)
	must2(f.WriteString(strings.Repeat("text\n", 2000)))
	must(t, f.Truncate(1<<30))
	must(t, f.Close())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := b.Run(t.Context(), file.Read(), args{"path": "huge", "limit": 3})
	if err != nil || r.Text != "text\ntext\ntext\n[lines 1-3 of a file of 1.0 GB; go on with offset 4]" || len(r.Files) != 0 {
		t.Errorf("got %q %v, %v", r.Text, r.Files, err)
	}
	_, err = b.Run(t.Context(), file.Read(), args{"path": "huge", "offset": 5000}) // reads to the end
	if tooltest.CodeOf(err) != file.CodeBeyondEnd {
		t.Errorf("got %v", err)
	}
	_, err = b.Run(t.Context(), file.Read(), args{"path": "huge", "offset": 2001})
	if tooltest.CodeOf(err) != file.CodeBinary {
		t.Errorf("got %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("allocated %d bytes", n)
	}
	if _, err := b.Run(t.Context(), file.Write(), args{"path": "huge", "content": ""}); tooltest.CodeOf(err) != file.CodeTooLarge {
		t.Errorf("replacing it: %v", err)
	}
}

func TestList(t *testing.T) {
	b := tooltest.NewBench(t)
	b.Put("b.txt", "12345")
	b.Put("a/y", "")
	b.Put("a/x/deep", "1")
	b.Put(".git/HEAD", "ref")
	b.Put("new\nline", "")
	must(t, os.Symlink("../elsewhere", filepath.Join(b.Dir, "link")))
	must(t, os.Symlink("a", filepath.Join(b.Dir, "zlink")))
	for _, c := range []struct {
		args args
		want string
	}{
		{args{}, ".git/\na/\nb.txt 5\nlink -> ../elsewhere\n\"new\\nline\" 0\nzlink -> a"},
		{args{"path": "a"}, "a/x/\na/y 0"},
		{args{"path": "zlink"}, "zlink/x/\nzlink/y 0"},
		{args{"path": ".", "depth": 3}, ".git/\na/\na/x/\na/x/deep 1\na/y 0\nb.txt 5\nlink -> ../elsewhere\n\"new\\nline\" 0\nzlink -> a"},
		{args{"path": ".git"}, ".git/HEAD 3"},
		{args{"depth": 3, "limit": 2}, ".git/\na/\n[2 entries shown, 7 left out; list a folder below]"},
	} {
		r, err := b.Run(t.Context(), file.List(), c.args)
		if err != nil || r.Text != c.want {
			t.Errorf("%v: %v\n got %q\nwant %q", c.args, err, r.Text, c.want)
		}
	}
	must(t, os.Mkdir(filepath.Join(b.Dir, "a/empty"), 0o755))
	if r, err := b.Run(t.Context(), file.List(), args{"path": "a/empty"}); err != nil || r.Text != "[empty folder]" {
		t.Errorf("got %q, %v", r.Text, err)
	}
	for path, want := range map[string]string{"none": file.CodeNoSuchFile, "b.txt": file.CodeNotDirectory, "link": file.CodeOutside} {
		if _, err := b.Run(t.Context(), file.List(), args{"path": path}); tooltest.CodeOf(err) != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

func TestListIsBounded(t *testing.T) {
	b := tooltest.NewBench(t)
	for i := range 1500 {
		must(t, os.WriteFile(filepath.Join(b.Dir, fmt.Sprintf("f%04d", i)), nil, 0o644))
	}
	r, err := b.Run(t.Context(), file.List(), args{})
	lines := strings.Split(r.Text, "\n")
	if err != nil || len(lines) != 1001 || lines[999] != "f0999 0" || lines[1000] != "[1000 entries shown, 500 left out; list a folder below]" {
		t.Errorf("%d lines, %v: %q", len(lines), err, lines[len(lines)-1])
	}
}

// However many files there are, listing them costs the same memory.
// Guarantee: T18.
func TestListOfAHundredThousandFilesCostsLittleMemory(t *testing.T) {
	const many = 100_000
	if fi, err := os.Stat("/dev/shm"); err == nil && fi.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // so many files needn't reach a disk
	}
	b := tooltest.NewBench(t)
	must(t, os.WriteFile(filepath.Join(b.Dir, "f"), nil, 0o644))
	for i := 1; i < many; i++ {
		if i%60_000 == 1 { // a disk may bound the names of one file
			must(t, os.WriteFile(filepath.Join(b.Dir, fmt.Sprintf("f%06d", i)), nil, 0o644))
			must(t, os.Remove(filepath.Join(b.Dir, "f")))
			must(t, os.Link(filepath.Join(b.Dir, fmt.Sprintf("f%06d", i)), filepath.Join(b.Dir, "f")))
			continue
		}
		must(t, os.Link(filepath.Join(b.Dir, "f"), filepath.Join(b.Dir, fmt.Sprintf("f%06d", i))))
	}
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		for {
			select {
			case <-stop:
				peak <- most
				return
			default:
			}
			runtime.ReadMemStats(&during)
			most = max(most, during.HeapAlloc)
			runtime.Gosched()
		}
	}()
	r, err := b.Run(t.Context(), file.List(), args{"limit": 10})
	close(stop)
	grown := int64(<-peak) - int64(before.HeapAlloc)
	if err != nil || !strings.HasSuffix(r.Text, "\n[10 entries shown, 99990 left out; list a folder below]") {
		t.Errorf("got %q, %v", r.Text, err)
	}
	if grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	t.Logf("the heap grew by %d KB at most", grown>>10)
}
