package sqlite

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
)

// whole is a closed store with something of everything.
func whole(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	db := openStore(t, dir, Options{})
	m, err := newMix(t.Context(), db, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.steps(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func verified(t *testing.T, dir string, against ...store.Head) verify.Report {
	t.Helper()
	r, err := verify.Run(t.Context(), dir, verify.Options{Against: against})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// listing is every file below a directory with its content and time.
func listing(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		info, _ := d.Info()
		line := path + info.ModTime().String()
		if !d.IsDir() {
			b, _ := os.ReadFile(path)
			line += string(belay.DigestOf(b))
		}
		files = append(files, line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestVerifyReadsAllAndChangesNothing(t *testing.T) {
	dir, temp := whole(t), t.TempDir()
	before := listing(t, dir)
	r, err := verify.Run(t.Context(), dir, verify.Options{Temp: temp})
	if err != nil || !r.OK() || len(r.Warnings) > 0 {
		t.Fatalf("%v, %v, %v", err, r.Problems, r.Warnings)
	}
	if r.Streams != 2 || r.Events != 45 || r.Blobs != 30 || len(r.Heads) != 2 || !strings.HasPrefix(string(r.Runtime), "rt_") {
		t.Errorf("got %+v", r)
	}
	if after := listing(t, dir); !slices.Equal(before, after) {
		t.Errorf("before %q\nafter %q", before, after)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestVerifySaysWhenItCannotCheck(t *testing.T) {
	empty := t.TempDir()
	_, err := verify.Run(t.Context(), empty, verify.Options{})
	wantCode(t, err, belay.CodeNotFound)
	if err := os.MkdirAll(layout.Path(empty), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = verify.Run(t.Context(), empty, verify.Options{}) // a directory in the file's place
	wantCode(t, err, belay.CodeStoreFailed)
	dir := whole(t)
	sqlExec(t, placeOf(t, dir), newerVersion)
	_, err = verify.Run(t.Context(), dir, verify.Options{})
	wantCode(t, err, belay.CodeStoreNewer)
}

func TestVerifyNamesWhatWasChanged(t *testing.T) {
	const stream = "thread/thr_mix0"
	for _, c := range []struct{ statement, place, what string }{
		{"UPDATE events SET data=CAST(replace(CAST(data AS TEXT), 'step 4 ', 'step 5 ') AS BLOB) WHERE stream=2 AND seq=2", stream + "#2", "its bytes were changed: byte 26 of the payload is 0x35, was 0x34"},
		{"UPDATE events SET time=time+1 WHERE stream=2 AND seq=3", stream + "#3", "its bytes were changed"},
		{"UPDATE events SET hash=zeroblob(32) WHERE stream=2 AND seq=4", stream + "#4", "its hash was changed"},
		{"UPDATE events SET hash=zeroblob(32) WHERE stream=2 AND seq=15", stream + "#15", "its hash was changed"},
		{"DELETE FROM events WHERE stream=2 AND seq=5", stream + "#5", "not there"},
		{"DELETE FROM events WHERE stream=2 AND seq=15", stream + "#15", "not there"},
		{"UPDATE events SET pos=pos+1000 WHERE stream=2 AND seq=3", stream + "#4", "position"},
		{"UPDATE events SET stream=9 WHERE stream=2 AND seq=15", "events", "number 9, which has no row"},
		{"UPDATE types SET name='turn.started' WHERE name='turn.submitted'", "thread/thr_mix1#2", "bytes were changed"},
		{"DELETE FROM types", stream + "#1", "has no name"},
		{"UPDATE sqlite_sequence SET seq=3", "events", "the next would be after 3"},
		{"UPDATE streams SET wake=wake+1 WHERE id=2", "streams/" + stream, "isn't what was written"},
		{"UPDATE streams SET seq=14 WHERE id=2", "streams/" + stream, "its row says 14"},
		{"UPDATE inbox SET body=CAST(replace(CAST(body AS TEXT), 'text', 'test') AS BLOB)", "inbox/cmd_thread/thr_mix0_10_1", "isn't what was written"},
		{"UPDATE inbox SET stream=9", "inbox", "number 9, which has no row"},
		{"UPDATE commands SET id='cmd_other' WHERE id='cmd_thread/thr_mix0_10_1'", "commands/cmd_other", "isn't what was written"},
		{"UPDATE keys SET key=x'00' WHERE stream=2 AND pos=3", "keys/2/00", "isn't what was written"},
		{"UPDATE owners SET epoch=epoch-1", "owners/sess_mix0", "isn't what was written"},
		{"UPDATE meta SET value='rt_other' WHERE key='runtime'", "meta", "isn't what was written"},
		{"DELETE FROM meta WHERE key='sum'", "meta", "it holds"},
		{"UPDATE blobs SET data=zeroblob(10) WHERE id=3", "blobs/3", "isn't what its digest names"},
		{"DELETE FROM blobs WHERE id=3", "thread/thr_mix1#4", "is not there: sha256:"},
		{"UPDATE blobs SET digest=CAST(digest AS TEXT) WHERE id=3", "blobs", "another kind"},
		{"DROP INDEX waiting", "belay.db: schema", `index "waiting"`},
		{"CREATE TABLE more (x)", "belay.db: schema", `table "more" isn't one`},
	} {
		dir := whole(t)
		sqlExec(t, placeOf(t, dir), c.statement)
		r := verified(t, dir)
		if !slices.ContainsFunc(r.Problems, func(p layout.Problem) bool { return p.Place == c.place && strings.Contains(p.What, c.what) }) {
			t.Errorf("%s:\nwant %s: %s\ngot %q", c.statement, c.place, c.what, r.Problems)
		}
	}
}

func TestVerifyOnlyWarnsOfWhatCanBeMadeAnew(t *testing.T) {
	dir := whole(t)
	db := placeOf(t, dir)
	sqlExec(t, db, "UPDATE states SET data=x'00'")
	db.leaveMark()
	r := verified(t, dir)
	if !r.OK() || len(r.Warnings) != 3 || !strings.Contains(fmt.Sprint(r.Warnings), "states/thread/thr_mix0") {
		t.Errorf("got %v, %v", r.Problems, r.Warnings)
	}
}

func TestVerifyChecksFilesOfContent(t *testing.T) {
	dir := t.TempDir()
	db := openStore(t, dir, Options{})
	ref, err := db.Put(t.Context(), bytes.Repeat([]byte("x"), 100_000), "")
	if err != nil {
		t.Fatal(err)
	}
	w := newWork(t, db, "a")
	w.b.Sends = []belay.Order{{ID: "c", Session: w.b.Session, Stream: w.b.Stream, Command: belay.ResumeThread{Rules: ref}}}
	w.append(t, db, "x")
	path := layout.ContentFile(db.blobs, ref.Digest)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	name, _ := filepath.Rel(filepath.Dir(layout.Path(dir)), path)
	other := filepath.Join(layout.BlobDir(dir), "readme")
	for _, c := range []struct {
		do          func() error
		place, what string
	}{
		{func() error { return os.WriteFile(other, nil, 0o600) }, "blobs/readme", "no digest"},
		{func() error { return os.Truncate(path, 99_999) }, name, "(99999 bytes) isn't what its digest names"},
		{func() error { return errors.Join(os.Remove(path), os.Remove(other)) }, "inbox/c", "is not there: " + string(ref.Digest)},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		r := verified(t, dir)
		if !slices.ContainsFunc(r.Problems, func(p layout.Problem) bool { return p.Place == c.place && strings.Contains(p.What, c.what) }) {
			t.Errorf("want %s: %s\ngot %q", c.place, c.what, r.Problems)
		}
	}
}

func TestTheLogIsReadBeyondWhatSQLiteTakes(t *testing.T) {
	dir, _ := killed(t)
	log := layout.Path(dir) + "-wal"
	intact, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	scan, err := layout.ScanLog(bytes.NewReader(intact), "log")
	if err != nil || len(scan.Problems) > 0 || scan.Frames < 30 {
		t.Fatalf("the log: %+v, %v", scan, err)
	}
	const frame = 4096 + layout.FrameBytes
	last := layout.HeaderBytes + int(scan.Frames-1)*frame
	for _, c := range []struct {
		at   int
		want string
	}{
		{5, "belay.db-wal: header, byte 0"},
		{layout.HeaderBytes + 2*frame + 100, "belay.db-wal: frame 3, byte 8272: its checksum is wrong: SQLite would leave out"},
		{layout.HeaderBytes + 2*frame + 9, "belay.db-wal: frame 3, byte 8272: its salts were changed: SQLite would leave out"},
		{last + 50, "tail: torn or damaged: its checksum is wrong"},
		{last + 9, "tail: torn or damaged: its salts were changed"},
	} {
		patched(t, log, func(b []byte) []byte { b[c.at] ^= 4; return b }, func() {
			if r := verified(t, dir); len(r.Problems) == 0 || !strings.Contains(r.Problems[0].String(), c.want) {
				t.Errorf("byte %d: got %v, want %s", c.at, r.Problems, c.want)
			}
		})
	}
	if len(intact) < last+2*frame {
		t.Fatalf("no frames of an earlier generation: %d bytes, the last frame at %d", len(intact), last)
	}
	patched(t, log, func(b []byte) []byte { b[last+frame+100] ^= 4; return b }, func() {
		if r := verified(t, dir); !r.OK() {
			t.Errorf("an old frame doesn't count: %v", r.Problems)
		}
	})
}

// TestWhatWasNeverCommittedIsNoDamage puts behind a killed process's log what one
// leaves that is killed, or has no space, in the middle of a write; and then takes
// away what was committed.
// Guarantee: S72.
func TestWhatWasNeverCommittedIsNoDamage(t *testing.T) {
	var dir, log string
	var intact []byte
	var scan layout.Log
	for range 20 { // until one was killed between a commit and the next write
		dir, _ = killed(t)
		log = layout.Path(dir) + "-wal"
		var err error
		if intact, err = os.ReadFile(log); err != nil {
			t.Fatal(err)
		}
		scan, _ = layout.ScanLog(bytes.NewReader(intact), "log")
		if x, ok := layout.ReadIndex(layout.Path(dir) + "-index"); ok && x.Salts == scan.Salts && x.Frames == scan.Frames {
			break
		}
	}
	const frame = 4096 + layout.FrameBytes
	end := layout.HeaderBytes + int(scan.Frames)*frame
	facts := verified(t, dir).Events
	begun := slices.Clone(intact[end-frame : end]) // of the last commit, so its checksum doesn't follow
	page := slices.Concat(begun[:4], make([]byte, 4), begun[8:])
	for _, c := range []struct {
		name string
		tail []byte
	}{
		{"nothing", nil},
		{"half a frame", page[:1000]},
		{"half of a frame that would commit", begun[:1000]},
		{"a frame's header", page[:layout.FrameBytes]},
		{"ten bytes", page[:10]},
		{"a frame and a half", slices.Concat(page, page[:1000])},
		{"space", make([]byte, 3*frame)},
	} {
		patched(t, log, func(b []byte) []byte { return append(b[:end:end], c.tail...) }, func() {
			r := verified(t, dir)
			if !r.OK() || r.Events != facts || (len(r.Warnings) == 0) != (c.tail == nil) {
				t.Errorf("%s: %d facts of %d, %v, %v", c.name, r.Events, facts, r.Problems, r.Warnings)
			}
		})
	}
	if err := os.Rename(layout.Path(dir)+"-index", layout.Path(dir)+"-shm"); err != nil { // it says what was committed
		t.Fatal(err)
	}
	patched(t, log, func(b []byte) []byte { return append(b[:end:end], begun[:1000]...) }, func() {
		if r := verified(t, dir); !r.OK() || len(r.Warnings) != 1 {
			t.Errorf("half a frame, beside the index: %v, %v", r.Problems, r.Warnings)
		}
	})
	for _, cut := range []int{end - 1000, end - frame, end - 3*frame + 100} {
		patched(t, log, func(b []byte) []byte { return b[:cut] }, func() {
			if r := verified(t, dir); len(r.Problems) == 0 || !strings.Contains(r.Problems[len(r.Problems)-1].What, "were committed and can't be read") {
				t.Errorf("%d bytes of committed frames are gone: %v", end-cut, r.Problems)
			}
		})
	}
}

func TestHeadsKeptElsewhereAreHeldAgainstTheStore(t *testing.T) {
	dir := whole(t)
	kept := verified(t, dir).Heads
	var file bytes.Buffer
	if err := verify.WriteHeads(&file, kept); err != nil {
		t.Fatal(err)
	}
	file.WriteString(`{"ok":true}` + "\n")
	heads, err := verify.ReadHeads(&file)
	if err != nil || len(heads) != 2 || heads[0].Stream != kept[0].Stream || heads[0].Seq != kept[0].Seq || heads[0].Hash != kept[0].Hash {
		t.Fatalf("got %+v, %v, want %+v", heads, err, kept)
	}
	if r := verified(t, dir, heads...); !r.OK() || r.Compared != 2 {
		t.Errorf("%+v", r.Differences)
	}
	shorter, other, gone := heads[0], heads[1], heads[0]
	shorter.Seq++
	other.Hash[0]++
	gone.Stream = "thread/thr_gone"
	got := fmt.Sprint(verified(t, dir, shorter, other, gone).Differences)
	for _, want := range []string{
		"thread/thr_mix1: it had 31 facts when the heads were kept, now 30",
		"thread/thr_mix0: up to fact 15 it isn't what it was",
		"thread/thr_gone: it had 30 facts when the heads were kept, and is gone",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, bad := range []string{"no json", `{"stream":"s","sequence":1,"hash":"12"}`, `{"stream":"s","sequence":0,"hash":"` + hex.EncodeToString(make([]byte, 32)) + `"}`} {
		_, err := verify.ReadHeads(strings.NewReader("{}\n" + bad))
		wantCode(t, err, belay.CodeUsage)
		if !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAStoreInUseCanBeVerified(t *testing.T) {
	dir := t.TempDir()
	cmd := process(t, "append", dir, "a", "1000000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := bufio.NewScanner(out)
	told.Scan()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for told.Scan() {
		}
	}()
	began, events := time.Now(), 0
	for n := 0; n < 10 && time.Since(began) < time.Minute; n++ {
		r, err := verify.Run(t.Context(), dir, verify.Options{})
		if belay.CodeOf(err) == belay.CodeStoreBusy && err != nil {
			continue
		}
		if err != nil || !r.OK() || r.Events < events {
			t.Fatalf("%d facts after %d: %v, %v", r.Events, events, err, r.Problems)
		}
		events = r.Events
	}
	cmd.Process.Kill()
	<-drained
	cmd.Wait()
	if events == 0 {
		t.Error("it was never verified")
	}
}

func TestDumpsAreEqualWhenStoresAre(t *testing.T) {
	dir, same := whole(t), t.TempDir()
	if err := os.CopyFS(same, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	dump := func(dir string) string {
		b, err := dumpOf(t.Context(), dir)
		if err != nil || bytes.Count(b, []byte("\n")) < 100 {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		return string(b)
	}
	if dump(dir) != dump(same) {
		t.Error("copies differ")
	}
	db := openStore(t, same, Options{})
	w := newWork(t, db, "more")
	w.append(t, db, "x")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if dump(dir) == dump(same) {
		t.Error("another fact makes no difference")
	}
}
