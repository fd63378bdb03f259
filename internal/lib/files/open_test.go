//go:build unix

package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/testkit/oddfile"
)

// TestOnlyOrdinaryFilesAreOpened: whatever has the name of a file, or of a folder, who
// opens it has it at once, or an error.
// Guarantee: T115.
func TestOnlyOrdinaryFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	name := "name"
	path := filepath.Join(dir, name)
	closed := func(f io.Closer, err error) error {
		if err == nil {
			err = f.Close()
		}
		return err
	}
	file := func(f *os.File, _ fs.FileInfo, err error) error { return closed(f, err) }
	read := func(b []byte, err error) error {
		if len(b) > 1<<20 {
			t.Errorf("%d bytes were read", len(b))
		}
		return err
	}
	opens := map[string]func() error{
		"Open": func() error { return file(Open(path)) }, "OpenIn": func() error { return file(OpenIn(root, name)) },
		"OpenUnlinked": func() error { return file(OpenUnlinked(path)) }, "OpenUnlinkedIn": func() error { return file(OpenUnlinkedIn(root, name)) },
		"Tree": func() error { return closed(Tree(root).Open(name)) },
	}
	reads := map[string]func() error{
		"ReadUpTo": func() error { return read(ReadUpTo(path, 1<<10)) }, "ReadIn": func() error { return read(ReadIn(root, name, 1<<10)) },
		"ReadPrivate": func() error { return read(ReadPrivate(path, 1<<10, belay.CodeBadConfig)) },
	}
	folders := map[string]func() error{
		"OpenRoot": func() error { return closed(OpenRoot(path)) }, "OpenRootIn": func() error { return closed(OpenRootIn(root, name)) },
		"OpenDir": func() error { return closed(OpenDir(path)) },
		"ReadDir": func() error {
			_, err := ReadDir(path)
			return err
		},
		"Tree": func() error {
			_, err := fs.ReadDir(Tree(root), name)
			return err
		},
		"Glob": func() error {
			found, err := fs.Glob(Tree(root), name+"/*")
			return errors.Join(err, map[bool]error{true: errors.New("none")}[len(found) == 0])
		},
	}
	oddfile.Each(t, path, func(t *testing.T, kind string) {
		for what, open := range opens {
			err := open()
			if ordinary := kind == "a huge file" || what == "Tree" && kind == "a folder"; (err == nil) != ordinary {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, read := range reads {
			if read() == nil {
				t.Errorf("%s reads it", what)
			}
		}
		for what, open := range folders {
			if err := open(); (err == nil) != (kind == "a folder" && what != "Glob") {
				t.Errorf("%s as a folder: %v", what, err)
			}
		}
	})
}

// swapped looks like a regular file until it is opened.
type swapped struct{ opener }

func (swapped) Stat(string) (fs.FileInfo, error) { return os.Stat("open_test.go") }

// TestAFileThatIsExchangedIsNotWaitedFor: what is opened is looked at once more.
// Guarantee: T115.
func TestAFileThatIsExchangedIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "name")
	oddfile.Each(t, path, func(t *testing.T, kind string) {
		f, _, err := open(swapped{system{}}, path)
		if err == nil {
			f.Close()
		}
		if (err == nil) != (kind == "a huge file") {
			t.Errorf("%v", err)
		}
	})
}

// TestFilesOfAFolderAreRead: what the odd ones don't have.
func TestFilesOfAFolderAreRead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat(name, 10)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("a", filepath.Join(dir, "link")), os.Mkdir(filepath.Join(dir, "sub"), 0o700)); err != nil {
		t.Fatal(err)
	}
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]string{"a": "aaaaaaaaaa", "link": "aaaaaaaaaa"} {
		for what, read := range map[string]func() ([]byte, error){
			"ReadUpTo": func() ([]byte, error) { return ReadUpTo(filepath.Join(dir, name), 10) }, "ReadIn": func() ([]byte, error) { return ReadIn(root, name, 10) },
			"Tree": func() ([]byte, error) { return fs.ReadFile(Tree(root), name) }, "ReadGiven": func() ([]byte, error) { return ReadGiven(filepath.Join(dir, name), 10) },
		} {
			if got, err := read(); err != nil || string(got) != want {
				t.Errorf("%s(%s): %q, %v", what, name, got, err)
			}
		}
	}
	if _, err := ReadUpTo(filepath.Join(dir, "a"), 9); belay.CodeOf(err) != belay.CodeTooLarge {
		t.Errorf("a byte too many: %v", err)
	}
	if _, _, err := OpenUnlinked(filepath.Join(dir, "link")); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a link was opened: %v", err)
	}
	if _, _, err := open(swapped{unlinked{root}}, "link"); err == nil {
		t.Errorf("a link was followed: %v", err)
	}
	for what, list := range map[string]func() ([]fs.DirEntry, error){"ReadDir": func() ([]fs.DirEntry, error) { return ReadDir(dir) }, "Tree": func() ([]fs.DirEntry, error) { return fs.ReadDir(Tree(root), ".") }} {
		all, err := list()
		var names []string
		for _, e := range all {
			names = append(names, e.Name())
		}
		if err != nil || strings.Join(names, " ") != "a b c link sub" {
			t.Errorf("%s: %v, %v", what, names, err)
		}
	}
}
