package work

import (
	"bytes"
	"context"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/process"
)

// Named implements chat.Desk. Of a folder that isn't on this machine nothing is named.
func (d desk) Named(dir, text string) (files []chat.File, missed []string, err error) {
	if !strings.Contains(text, "@") {
		return nil, nil, nil
	}
	t := Task{Given: app.Given{Text: text}}
	if err = t.mention(dir, dir, func(word string, _ bool) { missed = append(missed, word) }); belay.CodeOf(err) == belay.CodeWorkspace {
		return nil, nil, nil
	}
	for _, f := range t.Attached {
		files = append(files, chat.File{Name: f.Name, Content: f.Content})
	}
	return files, missed, err
}

// Image implements chat.Desk.
func (d desk) Image(path string) (*chat.File, error) {
	path = pasted(path)
	if home, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(d.Getenv("HOME"), home)
	}
	path = absolute(d.Dir, path)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	a, err := readAttached(filepath.Base(path), func() (*os.File, fs.FileInfo, error) { return files.Open(path) })
	if err != nil || a.IsText() {
		return nil, err
	}
	return &chat.File{Name: a.Name, Content: a.Content}, nil
}

// pasted is a path as terminals paste it when a file is dropped on them: in quotes, with
// backslashes, or as an address.
func pasted(text string) string {
	text = strings.TrimSpace(text)
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		return u.Path
	}
	for _, quote := range []string{`'`, `"`} {
		if inner, ok := strings.CutPrefix(text, quote); ok {
			return strings.TrimSuffix(inner, quote)
		}
	}
	var b strings.Builder
	for escaped, rest := false, text; rest != ""; rest = rest[1:] {
		if escaped = rest[0] == '\\' && !escaped; !escaped {
			b.WriteByte(rest[0])
		}
	}
	return b.String()
}

// clipboards print the clipboard's image as PNG, where the variable is set; empty: on
// macOS.
var clipboards = []struct {
	variable string
	argv     []string
}{
	{"WAYLAND_DISPLAY", []string{"wl-paste", "--no-newline", "--type", "image/png"}},
	{"DISPLAY", []string{"xclip", "-selection", "clipboard", "-target", "image/png", "-out"}},
	{"", []string{"pngpaste", "-"}},
}

// clipboardWithin is how long reading the clipboard may take: it asks another program.
const clipboardWithin = 5 * time.Second

// ClipboardImage implements chat.Desk.
func (d desk) ClipboardImage(ctx context.Context) (*chat.File, error) {
	ctx, cancel := context.WithTimeout(ctx, clipboardWithin)
	defer cancel()
	asked := false
	for _, p := range clipboards {
		if p.variable == "" && runtime.GOOS != "darwin" || p.variable != "" && d.Getenv(p.variable) == "" {
			continue
		}
		path := process.LookPath(d.Environ, p.argv[0])
		if path == "" {
			continue
		}
		asked = true
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, path, p.argv[1:]...)
		cmd.Env, cmd.Stdout, cmd.WaitDelay = d.Environ, &out, time.Second
		if cmd.Run() != nil || out.Len() == 0 {
			continue // it has none
		}
		a, err := app.NewAttachment("the clipboard's image", out.Bytes())
		if err == nil && !a.IsText() {
			return &chat.File{Content: a.Content}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if asked {
		return nil, belay.Errorf(belay.CodeNotFound, "the clipboard has no image")
	}
	return nil, belay.Errorf(belay.CodeNotFound, "no program here reads the clipboard").WithHint("install wl-paste (Wayland), xclip (X11) or pngpaste (macOS), or paste the path of an image")
}
