package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/testkit/failfs"
)

// TestWholeOrNotAtAll fails each operation of a write once: the name stands for
// the old content or for the new, and nothing else is left beside it.
// Guarantee: S43.
func TestWholeOrNotAtAll(t *testing.T) {
	old, fresh := []byte("what was there"), bytes.Repeat([]byte("new content "), 20_000)
	for _, problem := range []error{syscall.ENOSPC, syscall.EIO} {
		for at := 1; ; at++ {
			what := fmt.Sprintf("%v at %d", problem, at)
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			if err := os.WriteFile(path, old, 0o600); err != nil {
				t.Fatal(err)
			}
			sys := &failfs.Failing{At: at, Err: problem}
			err := files.WriteWhole(sys, path, func(w io.Writer) error {
				_, err := w.Write(fresh)
				return err
			})
			got, _ := os.ReadFile(path)
			switch {
			case err == nil && !sys.Hit:
				if !bytes.Equal(got, fresh) {
					t.Fatalf("%s: %d bytes", what, len(got))
				}
				if got, want := strings.Join(sys.Ops[len(sys.Ops)-5:], ", "), "write, sync, close, rename, sync directory"; got != want {
					t.Errorf("the last operations are %s, want %s", got, want)
				}
			case err == nil:
				t.Errorf("%s: nobody was told", what)
			case !errors.Is(err, problem):
				t.Errorf("%s: told %v", what, err)
			case !bytes.Equal(got, old) && !(sys.Renamed && bytes.Equal(got, fresh)):
				t.Errorf("%s: the name stands for %d bytes", what, len(got))
			}
			if err != nil && (belay.CodeOf(err) == belay.CodeDiskFull) != (problem == syscall.ENOSPC) {
				t.Errorf("%s: code %s", what, belay.CodeOf(err))
			}
			if rest, _ := os.ReadDir(dir); len(rest) != 1 && sys.Op != "remove" {
				t.Errorf("%s: beside it: %v", what, rest)
			}
			if !sys.Hit {
				break
			}
		}
	}
}

// TestAFileThatCannotBeFilledIsNotThere: an error of what fills the file is the
// caller's, as it is.
func TestAFileThatCannotBeFilledIsNotThere(t *testing.T) {
	dir := t.TempDir()
	own := belay.Errorf(belay.CodeStoreDamaged, "a fact isn't what was written")
	err := files.WriteWhole(files.System{}, filepath.Join(dir, "file"), func(w io.Writer) error {
		io.WriteString(w, "half")
		return own
	})
	if !errors.Is(err, own) || belay.CodeOf(err) != belay.CodeStoreDamaged {
		t.Errorf("told %v", err)
	}
	if rest, _ := os.ReadDir(dir); len(rest) != 0 {
		t.Errorf("left %v", rest)
	}
	err = files.WriteWhole(files.System{}, filepath.Join(dir, "none", "file"), func(io.Writer) error { return nil })
	if belay.CodeOf(err) != belay.CodeNotWritten {
		t.Errorf("into a directory that isn't there: %v", err)
	}
}
