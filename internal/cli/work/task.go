package work

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/files"
)

// Task is what to do: a text and what comes with it.
type Task struct {
	app.Given
	Template *belay.TemplateRef // what the text was made from

	Acceptance []belay.Check
}

// Attach sends files along; their names are relative to a folder.
func (t *Task) Attach(dir string, names []string) error {
	for _, name := range names {
		f, err := readAttached(name, func() (*os.File, fs.FileInfo, error) { return files.Open(absolute(dir, name)) })
		if err != nil {
			return err
		}
		t.Attached = append(t.Attached, f)
	}
	if len(t.Attached) > app.MaxAttached {
		return belay.Errorf(belay.CodeTooLarge, "%d files are attached; %d are the most", len(t.Attached), app.MaxAttached).WithHint("name the others in the text: the agent can read them")
	}
	return nil
}

// Read reads a task: the arguments, or standard input. A lone - among the
// arguments attaches standard input; @FILE attaches a file of the workspace, relative
// to dir.
func Read(e *term.Env, dir string, words []string, ws string) (t Task, err error) {
	switch {
	case len(words) == 0:
		t.Text, err = readTask(e, true)
	case len(words) == 1 && strings.TrimSpace(words[0]) == "-":
		t.Text, err = readTask(e, false)
	default:
		t, err = spoken(e, dir, words, ws)
	}
	return t, err
}

// spoken takes the task from the arguments. Only they can name files: text from
// a pipe may be untrusted.
func spoken(e *term.Env, dir string, words []string, ws string) (Task, error) {
	var t Task
	var said []string
	for _, w := range words {
		if w != "-" {
			said = append(said, w)
			continue
		}
		text, err := readTask(e, false)
		if err != nil {
			return t, err
		}
		t.Attached = append(t.Attached, app.Attachment{Name: "standard input", Media: "text/plain", Content: []byte(text)})
		said = append(said, "(standard input is attached)")
	}
	t.Text = strings.TrimSpace(strings.Join(said, " "))
	return t, t.mention(dir, ws, tellMissed(e))
}

// missed is told of a word after @ that names no file of the workspace, though it was
// meant as one; outside: it names another file.
type missed func(word string, outside bool)

func tellMissed(e *term.Env) missed {
	return func(word string, outside bool) {
		if word = term.Line(word); outside {
			fmt.Fprintf(e.Err, "@%s is not in the workspace and is sent as a word; --attach %s sends the file\n", word, word)
		} else {
			fmt.Fprintln(e.Err, word+" is no file here; sent as text")
		}
	}
}

// mention sends along the files of the workspace that the text names with @, relative to
// dir.
func (t *Task) mention(dir, ws string, tell missed) error {
	root, err := files.OpenRoot(ws)
	if err != nil {
		return belay.Errorf(belay.CodeWorkspace, "the workspace can't be read: %s", files.Reason(err)).At(ws).WithHint("--workspace DIR")
	}
	defer root.Close()
	seen := map[string]bool{}
	for _, m := range mention().FindAllStringSubmatch(t.Text, -1) {
		name, is := mentioned(dir, root, ws, m[1])
		if seen[name] {
			continue
		}
		seen[name] = true
		switch is {
		case noFile, outsideFile:
			tell(name, is == outsideFile)
		case aFile:
			f, err := readAttached(name, func() (*os.File, fs.FileInfo, error) { return files.OpenIn(root, name) })
			if err != nil {
				return err
			}
			t.Attached = append(t.Attached, f)
		}
	}
	return nil
}

// mention is a word that begins with @.
var mention = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)@([^\s@]\S*)`) })

// What a word after @ is.
const (
	aWord       = iota // it wasn't meant as a file
	aFile              // of the workspace
	outsideFile        // a file that isn't in the workspace
	noFile             // it was meant as a file
)

// mentioned returns what a word after @ is, and the name: of a file of the workspace
// relative to that.
func mentioned(dir string, root *os.Root, ws, word string) (name string, is int) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	bare := strings.TrimRight(word, `.,;:!?)]}"'`)
	for _, w := range []string{word, bare} {
		if w == "" {
			continue
		}
		full := absolute(dir, w)
		if rel, err := filepath.Rel(ws, full); err == nil && filepath.IsLocal(rel) {
			if info, err := root.Stat(rel); err == nil && info.Mode().IsRegular() {
				return rel, aFile
			}
		}
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() {
			return w, outsideFile
		}
	}
	if bare != "" && meansFile(dir, bare) {
		return bare, noFile
	}
	return "", aWord
}

// absolute is a path relative to a folder.
func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// meansFile reports whether a word after @ was probably meant as a file: it
// begins like a path, lies in an existing folder, is a folder itself, or ends as
// files of text do. People, decorators (@app.get, @Override) and packages
// (@types/node) are words.
func meansFile(dir, word string) bool {
	if strings.ContainsAny(word, "@(){}<>\"'`=,") || strings.Contains(word, "://") || strings.Count(word, ":") > 1 { // SERVER:URI is a server's
		return false
	}
	if strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") || strings.HasPrefix(word, "/") || fileEnding().MatchString(word) {
		return true
	}
	full := filepath.Join(dir, word)
	if in := filepath.Dir(full); in != dir {
		full = in
	}
	info, err := os.Stat(full)
	return err == nil && info.IsDir()
}

// fileEnding is how names of files end that people talk about with an agent.
var fileEnding = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\.(c|cc|cpp|cs|css|csv|dart|diff|env|ex|exs|go|gradle|h|hpp|hs|html?|ini|ipynb|java|jpe?g|js|jsonl?|jsx|kt|lock|log|lua|md|mjs|mod|patch|pdf|php|pl|png|proto|ps1|py|r|rb|rs|rst|scala|scss|sh|sql|sum|svelte|swift|tf|toml|tsx?|txt|vue|xml|ya?ml|zig)$`)
})

func readAttached(name string, open func() (*os.File, fs.FileInfo, error)) (app.Attachment, error) {
	bad := func(hint string, err error) (app.Attachment, error) {
		return app.Attachment{}, belay.Errorf(belay.CodeUsage, "it can't be attached: %s", files.Reason(err)).At(name).WithHint("%s", hint)
	}
	f, _, err := open()
	if err != nil {
		return bad("attach a file that exists and can be read", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, app.MaxText+1))
	if err != nil {
		return bad("attach a file that can be read", err)
	}
	return app.NewAttachment(name, b)
}

// readTask reads standard input; implied means that it was read without "-".
func readTask(e *term.Env, implied bool) (string, error) {
	const hint = "belay run TEXT, or belay run - <FILE"
	if e.In == nil || implied && e.IsTerminal(e.In) {
		return "", belay.Errorf(belay.CodeUsage, "there is nothing to do: no text was given").WithHint(hint)
	}
	b, err := io.ReadAll(io.LimitReader(e.In, app.MaxText+1))
	switch {
	case err != nil:
		return "", belay.Errorf(belay.CodeUsage, "it can't be read: %s", files.Reason(err)).At("standard input").WithHint(hint)
	case len(b) > app.MaxText:
		return "", belay.Errorf(belay.CodeTooLarge, "it is larger than %d MiB", app.MaxText>>20).At("standard input").WithHint("put it into a file of the workspace and name the file")
	case !utf8.Valid(b):
		return "", belay.Errorf(belay.CodeUsage, "it is not UTF-8 text").At("standard input").WithHint("put it into a file of the workspace and name the file")
	case strings.ContainsRune(string(b), 0):
		return "", belay.Errorf(belay.CodeUsage, "it contains a NUL character").At("standard input").WithHint("leave the character out")
	}
	return strings.TrimSpace(string(b)), nil
}
